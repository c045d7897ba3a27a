/** A compiled pattern of `branches`, `tags` or `paths`. */
export type FilterPattern = {
  /** It began with `!`. */
  readonly isNegative: boolean;
  /** Whether the whole name fits. Cost is O(name × pattern). An invalid pattern fits nothing. */
  readonly matches: (name: string) => boolean;
  /** Why the pattern is invalid. */
  readonly problem?: string | undefined;
};

/** One state: takes a character that `fits`; may be passed over, may be taken again. */
type Atom = {
  readonly fits: (char: string) => boolean;
  canSkip: boolean;
  canRepeat: boolean;
  /** How many atoms from here can be passed over together: 2 for the `**` and `/` of a `**` + `/`. */
  readonly skipCount: number;
  readonly isStar: boolean;
};

const CACHE_ENTRIES_MAX = 1_000;
const CACHE = new Map<string, FilterPattern>();

/**
 * GitHub's filter patterns: `*` within a path segment, `**` across segments (`**` + `/` also nothing),
 * `?` and `+` of the character before, `[a-z0-9]`, `\` before a special character, `!` in front.
 * Source: GitHub's "Workflow syntax", filter pattern cheat sheet.
 */
export function filterPattern(pattern: string): FilterPattern {
  const known = CACHE.get(pattern);
  if (known !== undefined) {
    return known;
  }
  const compiled = compile(pattern);
  if (CACHE.size >= CACHE_ENTRIES_MAX) {
    CACHE.clear();
  }
  CACHE.set(pattern, compiled);
  return compiled;
}

function compile(pattern: string): FilterPattern {
  const isNegative = pattern.startsWith('!');
  const atoms = atomsOf(isNegative ? pattern.slice(1) : pattern);
  return typeof atoms === 'string'
    ? { isNegative, matches: () => false, problem: atoms }
    : { isNegative, matches: (name) => runs(atoms, name) };
}

/** The atoms, or what is wrong. */
function atomsOf(pattern: string): readonly Atom[] | string {
  const atoms: Atom[] = [];
  for (let at = 0; at < pattern.length;) {
    const char = pattern.charAt(at);
    if (pattern.startsWith('**/', at)) {
      atoms.push(
        atom(() => true, { canRepeat: true, skipCount: 2 }),
        atom(isSlash),
      );
      at += 3;
    } else if (pattern.startsWith('**', at)) {
      atoms.push(atom(() => true, { canRepeat: true, canSkip: true, isStar: true }));
      at += 2;
    } else if (char === '*') {
      atoms.push(
        atom((found) => !isSlash(found), { canRepeat: true, canSkip: true, isStar: true }),
      );
      at += 1;
    } else if ((char === '?' || char === '+') && atoms.length > 0) {
      quantify(atoms.at(-1), char);
      at += 1;
    } else if (char === '[') {
      const end = pattern.indexOf(']', at);
      const set = end < 0 ? "Missing closing bracket ']'" : charSet(pattern.slice(at + 1, end));
      if (typeof set === 'string') {
        return set;
      }
      atoms.push(atom((found) => set.has(found)));
      at = end + 1;
    } else {
      const isEscape = char === '\\';
      const literal = isEscape ? pattern.charAt(at + 1) : char;
      if (literal === '') {
        return "Missing character after '\\'";
      }
      atoms.push(atom((found) => found === literal));
      at += isEscape ? 2 : 1;
    }
  }
  return atoms;
}

function atom(fits: (char: string) => boolean, more: Partial<Atom> = {}): Atom {
  return { fits, canSkip: false, canRepeat: false, skipCount: 0, isStar: false, ...more };
}

function isSlash(char: string): boolean {
  return char === '/';
}

/** `?` and `+` after a star change nothing that the star does not allow already. */
function quantify(target: Atom | undefined, char: string): void {
  if (target === undefined || target.isStar) {
    return;
  }
  if (char === '?') {
    target.canSkip = true;
  } else {
    target.canRepeat = true;
  }
}

/** The characters of a bracket, or what is wrong with it. */
function charSet(text: string): ReadonlySet<string> | string {
  if (text === '') {
    return "Unexpected empty brackets '[]'";
  }
  const chars = new Set<string>();
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    const last = text.charAt(at + 2);
    if (text.charAt(at + 1) === '-' && last !== '') {
      if (!/^(?:[A-Za-z]{2}|\d{2})$/.test(char + last) || char > last) {
        return 'Ranges can only include a-z, A-Z, and 0-9';
      }
      for (let code = char.charCodeAt(0); code <= last.charCodeAt(0); code += 1) {
        chars.add(String.fromCharCode(code));
      }
      at += 2;
    } else if (/[\w^`\\]/.test(char)) {
      chars.add(char);
    } else {
      return 'Brackets can only include a-z, A-Z, and 0-9';
    }
  }
  return chars;
}

/** Runs all states side by side, so that no pattern makes it slow. */
function runs(atoms: readonly Atom[], name: string): boolean {
  let states = reach(atoms, [0]);
  for (const char of name) {
    const next: number[] = [];
    for (const state of states) {
      const index = indexOf(state);
      const current = atoms[index];
      if (current?.fits(char) === true) {
        next.push(index + 1);
        if (current.canRepeat) {
          next.push(~index);
        }
      }
    }
    states = reach(atoms, next);
    if (states.size === 0) {
      return false;
    }
  }
  return states.has(atoms.length);
}

function indexOf(state: number): number {
  return state < 0 ? ~state : state;
}

/** With what can be passed over. `~state` is a state that is repeated: it was taken once. */
function reach(atoms: readonly Atom[], from: readonly number[]): Set<number> {
  const states = new Set<number>();
  const pending = [...from];
  for (let state = pending.pop(); state !== undefined; state = pending.pop()) {
    if (states.has(state)) {
      continue;
    }
    states.add(state);
    const index = indexOf(state);
    const current = atoms[index];
    if (current === undefined) {
      continue;
    }
    if (current.canSkip) {
      pending.push(index + 1);
    }
    if (current.skipCount > 0 && state >= 0) {
      pending.push(index + current.skipCount);
    }
  }
  return states;
}
