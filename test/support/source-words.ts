/* Names and comments of a TypeScript source, without the compiler: enough to look for words. */

/** Names that a source uses, without those in strings, and its comments; each with its line. */
type SourceWords = {
  readonly names: readonly (readonly [name: string, line: number])[];
  readonly comments: readonly (readonly [text: string, line: number])[];
};

const TOKEN =
  /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`|(?=\/)(?<=[=(,:!&|?{};[\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*|Math\.\w+|[A-Za-z_$][\w$]*/g;

/** Cuts a source. Names in the holes of templates count. O(length). */
export function wordsOfSource(source: string): SourceWords {
  const names: [string, number][] = [];
  const comments: [string, number][] = [];
  let line = 1;
  let at = 0;
  for (const match of source.matchAll(TOKEN)) {
    const [text] = match;
    line += source.slice(at, match.index).split('\n').length - 1;
    at = match.index;
    if (text.startsWith('/*') || text.startsWith('//')) comments.push([text, line]);
    else if (text.startsWith('`')) {
      for (const [hole] of text.matchAll(/\$\{[^}]*\}/g)) {
        for (const [name] of hole.matchAll(/[A-Za-z_$][\w$]*/g)) names.push([name, line]);
      }
    } else if (/^[A-Za-z_$]/.test(text) && !text.startsWith('Math.')) names.push([text, line]);
  }
  return { names, comments };
}

/** What a name is made of, in lower case: `minSeqOf` → min, seq, of. Constants keep their whole name beside it. */
export function partsOfName(name: string): readonly string[] {
  const parts = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? [];
  const lower = parts.map((part) => part.toLowerCase());
  return [...lower, lower.join('_'), ...(parts.length === 1 ? [name] : [])];
}
