/**
 * Finds many fixed strings in a text at once. Patterns are kept in classes by length; of each class only
 * the first m characters of its patterns drive the search, after Wu and Manber, "A fast algorithm for
 * multi-pattern searching" (1994): blocks that end no pattern let it skip up to m characters, so long
 * patterns cost less than one look a character. Adding a pattern is O(m).
 */
export interface PatternSet {
  add(pattern: string): void;
  /** Whether any pattern occurs. Hot: no allocation. */
  occursIn(text: string): boolean;
  /** Appends start and end (exclusive) of every occurrence, the longest at each place, unordered. */
  collect(text: string, intervals: number[]): void;
}

/** Prefix lengths of the classes, longest first. Shorter patterns are looked for one by one. */
const PREFIX_LENGTHS = [16, 8, 4] as const;
const TABLE_SIZE = 32_768;

export function createPatternSet(): PatternSet {
  const all = new Set<string>();
  const tiny: string[] = [];
  const classes: PrefixClass[] = [];
  return {
    add(pattern) {
      if (pattern === '' || all.has(pattern)) {
        return;
      }
      all.add(pattern);
      const length = PREFIX_LENGTHS.find((candidate) => pattern.length >= candidate);
      if (length === undefined) {
        tiny.push(pattern);
        return;
      }
      let prefixClass = classes.find((candidate) => candidate.prefixLength === length);
      if (prefixClass === undefined) {
        prefixClass = createPrefixClass(length);
        classes.push(prefixClass);
      }
      insert(prefixClass, pattern);
    },
    occursIn(text) {
      for (const pattern of tiny) {
        if (text.includes(pattern)) {
          return true;
        }
      }
      for (const prefixClass of classes) {
        if (search(prefixClass, text, undefined)) {
          return true;
        }
      }
      return false;
    },
    collect(text, intervals) {
      for (const pattern of tiny) {
        for (let at = text.indexOf(pattern); at !== -1; at = text.indexOf(pattern, at + 1)) {
          intervals.push(at, at + pattern.length);
        }
      }
      for (const prefixClass of classes) {
        search(prefixClass, text, intervals);
      }
    },
  };
}

type PrefixClass = {
  readonly prefixLength: number;
  /** By hash of a block of three characters: how far the search may skip; 0 ends some prefix. */
  readonly skips: Uint8Array;
  /** By hash of the last block of the prefix, longest pattern first. */
  readonly patterns: Map<number, string[]>;
};

function createPrefixClass(prefixLength: number): PrefixClass {
  return {
    prefixLength,
    skips: new Uint8Array(TABLE_SIZE).fill(prefixLength - 2),
    patterns: new Map(),
  };
}

/** Of the block of three characters that ends at `end` (inclusive). */
function blockHash(text: string, end: number): number {
  return (
    ((text.charCodeAt(end - 2) << 10) ^ (text.charCodeAt(end - 1) << 5) ^ text.charCodeAt(end)) &
    (TABLE_SIZE - 1)
  );
}

function insert(prefixClass: PrefixClass, pattern: string): void {
  const last = prefixClass.prefixLength - 1;
  for (let end = 2; end <= last; end += 1) {
    const hash = blockHash(pattern, end);
    prefixClass.skips[hash] = Math.min(prefixClass.skips[hash] as number, last - end);
  }
  const hash = blockHash(pattern, last);
  const bucket = prefixClass.patterns.get(hash) ?? [];
  bucket.push(pattern);
  bucket.sort((a, b) => b.length - a.length);
  prefixClass.patterns.set(hash, bucket);
}

function search(prefixClass: PrefixClass, text: string, intervals: number[] | undefined): boolean {
  const { skips, patterns, prefixLength } = prefixClass;
  const length = text.length;
  let at = prefixLength - 1;
  let isFound = false;
  while (at < length) {
    const hash = blockHash(text, at);
    const skip = skips[hash] as number;
    if (skip > 0) {
      at += skip;
      continue;
    }
    const start = at - prefixLength + 1;
    const pattern = longestAt(patterns.get(hash), text, start);
    if (pattern !== undefined) {
      if (intervals === undefined) {
        return true;
      }
      isFound = true;
      intervals.push(start, start + pattern.length);
    }
    at += 1;
  }
  return isFound;
}

function longestAt(
  bucket: readonly string[] | undefined,
  text: string,
  start: number,
): string | undefined {
  if (bucket !== undefined) {
    for (const pattern of bucket) {
      if (text.startsWith(pattern, start)) {
        return pattern;
      }
    }
  }
  return undefined;
}
