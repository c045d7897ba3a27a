const NEWLINE = 0x0a;
/** Of the lines of one page, as UTF-16: a page of long lines has fewer of them. */
const PAGE_CHARACTERS_MAX = 4 * 1024 * 1024;

/** Some lines of a step; the number of the first, and how many lines the step has by now. */
export type LogPage = {
  readonly first: number;
  readonly lines: readonly string[];
  readonly total: number;
};

export type LogSearch = {
  /** Looked for without regard to case. Not empty. */
  readonly text: string;
  /** The line before the first that is looked at; backward the one behind it. 0 is before the first. */
  readonly from: number;
  readonly isBackward: boolean;
};

/**
 * At most `count` lines from number `first` (from 1) on, at least one where there is one. Reads the whole log:
 * O(bytes), in pieces. Memory: the page.
 */
export async function linesAt(
  chunks: AsyncIterable<Uint8Array>,
  first: number,
  count: number,
): Promise<LogPage> {
  const found: string[] = [];
  let total = 0;
  let characters = 0;
  for await (const lines of linesOf(chunks)) {
    const from = Math.max(0, first + found.length - 1 - total);
    for (const line of lines.slice(from, from + count - found.length)) {
      characters += line.length;
      if (found.length > 0 && characters > PAGE_CHARACTERS_MAX) break;
      found.push(line);
    }
    // A page that is full takes none of the next piece.
    if (characters > PAGE_CHARACTERS_MAX) count = found.length;
    total += lines.length;
  }
  return { first, lines: found, total };
}

/** The number of the next line that has the text, around the ends; undefined where none has it. O(bytes). */
export async function findLine(
  chunks: AsyncIterable<Uint8Array>,
  { text, from, isBackward }: LogSearch,
): Promise<number | undefined> {
  const wanted = text.toLowerCase();
  let number = 0;
  let first: number | undefined;
  let before: number | undefined;
  let last: number | undefined;
  for await (const lines of linesOf(chunks)) {
    for (const line of lines) {
      number += 1;
      if (!line.toLowerCase().includes(wanted)) continue;
      if (!isBackward && number > from) return number;
      first ??= number;
      if (number < from) before = number;
      last = number;
    }
  }
  return isBackward ? (before ?? last) : first;
}

/** Whole lines of a file; a last one that is still being written is left to the events. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly string[]> {
  let rest: Uint8Array = new Uint8Array(0);
  for await (const chunk of chunks) {
    const bytes = rest.byteLength === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    const end = bytes.lastIndexOf(NEWLINE);
    rest = bytes.subarray(end + 1);
    if (end >= 0) yield bytes.toString('utf8', 0, end).split('\n');
  }
}
