import { RE2JS } from '@bufbuild/re2';

/** Characters of a pattern at most. */
const PATTERN_LENGTH_MAX = 256;
/** States of a pattern's automaton at most, as its text and repetitions bound them. */
const STATES_MAX = 500;
/** Patterns kept compiled by one thread. */
const PATTERNS_MAX = 256;
/**
 * Characters that compiled patterns read together before all are compiled anew: each can add a state, of
 * a kilobyte and more, to what its pattern remembers.
 */
const CHARACTERS_MAX = 16_384;
/** One atom or sign of a pattern: an escape, a class, a repetition, a group's start, or a character. */
const PART =
  /\\[pPx]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|\[:[a-z^]+:\]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|\(\?[^:)]*[:)]?|./gsu;

const compiled = new Map<string, RE2JS>();
let charactersLeft = CHARACTERS_MAX;

/** Why `pattern` is not taken, or undefined. Cost: compiles it. */
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
 * How many states a pattern can have at most: what is repeated counts as often as it may be repeated.
 * Errors: throws Error for one that is too large. Cost: O(length).
 */
export function patternStates(pattern: string): number {
  if (pattern.length > PATTERN_LENGTH_MAX) {
    throw new Error(`a pattern has at most ${PATTERN_LENGTH_MAX} characters`);
  }
  // Quoted text would need other rules.
  if (pattern.includes('\\Q')) throw new Error('a pattern quotes with \\, not with \\Q');
  /** States before each open group, with the atom that a repetition repeats. */
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
 * Whether any part of `text` matches an RE2 pattern that `patternStates` took. Linear in the text.
 * Errors: throws Error for a pattern that is not valid.
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
