import { RE2JS } from '@bufbuild/re2';

/** Maximum number of characters in a pattern. */
const PATTERN_LENGTH_MAX = 256;
/** Maximum number of states of a pattern's automaton, as estimated from its text and repetitions. */
const STATES_MAX = 500;
/** Maximum number of compiled patterns that one thread caches. */
const PATTERNS_MAX = 256;
/**
 * Number of characters that compiled patterns read together before all are compiled again. Each can add a state, of a
 * kilobyte and more, to the cache of its pattern.
 */
const CHARACTERS_MAX = 16_384;
/** One token of a pattern: an escape, a class, a repetition, the start of a group, or a character. */
const PART =
  /\\[pPx]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|\[:[a-z^]+:\]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|\(\?[^:)]*[:)]?|./gsu;

const compiled = new Map<string, RE2JS>();
let charactersLeft = CHARACTERS_MAX;

/** Reason for which `pattern` is rejected, or undefined. Cost: compiles it. */
export function patternFault(pattern: string): string | undefined {
  try {
    patternStates(pattern);
    RE2JS.compile(pattern);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : 'is not valid';
  }
}

/**
 * Maximum number of states of a pattern. A repeated part counts as often as it may be repeated. Errors: throws Error
 * for a pattern that is too large, or quotes with `\Q`. Cost: O(length).
 */
export function patternStates(pattern: string): number {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    throw new Error(`a pattern has at most ${PATTERN_LENGTH_MAX} characters`);
  }
  // Text quoted by \Q would need other rules than those below.
  if (pattern.includes('\\Q')) throw new Error('a pattern quotes with \\, not with \\Q');
  /**
   * States before each open group. `states` counts those in the innermost group, and `atom` those that a repetition
   * repeats.
   */
  const open: number[] = [];
  let states = 1;
  let atom = 0;
  for (const [part, least, most] of pattern.matchAll(PART)) {
    if (part === '(' || (part.startsWith('(?') && !part.endsWith(')'))) {
      open.push(states + atom);
      [states, atom] = [1, 0];
    } else if (part === ')') {
      atom += states;
      states = open.pop() ?? 1;
    } else if (least !== undefined) {
      atom *= Math.max(1, Number(least), Number(most ?? 0));
    } else {
      states += atom;
      atom = 2;
    }
    if (states + atom > STATES_MAX) throw new Error('a pattern repeats too much of itself');
  }
  return open.reduce((sum, before) => sum + before, states + atom);
}

/**
 * Whether any part of `text` matches an RE2 pattern that `patternStates` accepted. Linear in the text. Errors: throws
 * Error for a pattern that is not valid.
 */
export function matchesPattern(text: string, pattern: string): boolean {
  let regex = compiled.get(pattern);
  if (regex === undefined) {
    regex = RE2JS.compile(pattern);
    if (compiled.size >= PATTERNS_MAX) compiled.clear();
    compiled.set(pattern, regex);
  }
  charactersLeft -= text.length;
  if (charactersLeft < 0) {
    compiled.clear();
    charactersLeft = CHARACTERS_MAX;
  }
  return regex.test(text);
}
