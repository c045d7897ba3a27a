/** A word that documents do not use, and what to write instead. */
export type BannedWord = readonly [pattern: RegExp, instead: string];

/** Home-made words of former documents. The glossary (glossary.ts) says what each replacement means. */
export const BANNED_WORDS: readonly BannedWord[] = [
  [/\bspread(s|ing)?\b/i, 'replicate'],
  [/\b(un)?fold(s|ed|ing)?\b/i, 'pack or hydrate'],
  [/\bseqs?\b/i, 'revision'],
  [/\bstamps?\b/i, 'fork id'],
  [/\bminSeq\b/, 'minRevision'],
  [/\bquestions?\b/i, 'query'],
  [
    /\b(tells?|telling|told|announces?|announced|obeys?|obeyed)\b/i,
    'notify, report, emit or apply',
  ],
  [/\b(let go|lets go|(give|gives|given|giving|gave) back)\b/i, 'release or evict'],
  [/\b(take|takes|taken|taking|took) over\b/i, 'adopt or copy'],
  [/\b(floors?|rooms?|house)\b/i, 'layer, module or space'],
  [/\b(shelf|shelves|ladders?|wardens?|purses?)\b/i, 'registry, escalation, subreaper, bucket'],
  [/\blegs?\b/i, 'matrix job'],
  [/\b(earns?|earned|earning)\b/i, 'refill'],
  [/\b(dear|dearer|dearest)\b/i, 'expensive'],
];

/** Openings of a clause that hides its verb. */
const BARE_OPENING = /^(Of|As|With|For|Those)\b/;

/** Shorter ones are labels and cells of tables, not sentences. */
const WORDS_MIN = 4;

/**
 * The sentences of a document in Markdown, without its code. A code span or a link counts as the words
 * that a reader sees, a span as one. A cell of a table, an item of a list and a label before a colon end
 * a sentence.
 */
export function sentencesOf(markdown: string): readonly string[] {
  const prose = markdown
    .replaceAll(/^ *(`{3,}|~{3,})[^]*?^ *\1/gm, '\n')
    .replaceAll(/<!--[^]*?-->/g, '')
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/(`+)[^]*?\1/g, 'CODE')
    .replaceAll(/^#+ .*$/gm, '\n')
    .replaceAll(/^\|[\s:|-]+\|$/gm, '')
    .replaceAll(/\*\*|__/g, '');
  return prose
    .split(/\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)|\n(?=\s*\|)|(?<=\|)|\s\|/)
    .map((block) => block.replaceAll(/^\s*(?:[-*+]|\d+\.)\s+|[|\n]/g, ' ').replaceAll(/\s+/g, ' '))
    .flatMap((block) => block.trim().split(/(?<=[.!?])["')]*\s+|(?<=^(?:\S+ ){0,5}\S+:)\s/))
    .filter((sentence) => wordsOf(sentence) >= WORDS_MIN);
}

/** How many words a sentence has. */
export function wordsOf(sentence: string): number {
  return sentence.split(' ').filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/** Words of a sentence at the median and at the 90th percentile, of a document that has any. */
export function lengthsOf(markdown: string): { readonly median: number; readonly p90: number } {
  const lengths = sentencesOf(markdown)
    .map(wordsOf)
    .toSorted((a, b) => a - b);
  const at = (part: number): number => lengths[Math.floor((lengths.length - 1) * part)] ?? 0;
  return { median: at(0.5), p90: at(0.9) };
}

/** What a document says in a way that it may not: bare openings and banned words, each with its place. */
export function proseFaults(markdown: string): readonly string[] {
  return sentencesOf(markdown).flatMap((sentence) => {
    const opening = BARE_OPENING.exec(sentence)?.[0];
    const words = BANNED_WORDS.flatMap(([pattern, instead]) => {
      const word = pattern.exec(sentence)?.[0];
      return word === undefined ? [] : [`"${word}" (write ${instead}): ${sentence}`];
    });
    return opening === undefined ? words : [`opens with "${opening}": ${sentence}`, ...words];
  });
}

const BARE_COMMENT = /\/\*\*\s+(?:\*\s+)?((?:Of|As|With|For|Those|What|Who|Told|Where)\b.*)/g;

/** Doc comments of a source that begin with a bare clause: the first line of each. */
export function bareDocComments(source: string): readonly string[] {
  return [...source.matchAll(BARE_COMMENT)].map(([, line = '']) => line);
}
