import { nameProblem } from './names.ts';

export type DotenvEntry = {
  /** Upper case. */
  readonly name: string;
  readonly value: string;
  /** From 1; where the entry begins. */
  readonly line: number;
};
export type DotenvSkip = { readonly line: number; readonly reason: string };
export type DotenvText = {
  readonly entries: readonly DotenvEntry[];
  /** In the order of the lines. */
  readonly skipped: readonly DotenvSkip[];
};

const HEAD = /^[ \t]*(?:export[ \t]+)?(?<name>[^=\n]*?)[ \t]*=[ \t]*/;
const REST_OF_QUOTED = /[ \t]*(?:#.*)?(?:\n|$)/y;
const QUOTES = new Set(["'", '"', '`']);

/**
 * Reads `.env` text as npm's dotenv does: `KEY=VALUE`, optional `export`, `#` comments at the start of a line and
 * after a value (`a#b` is `a`), `'…'`, `"…"` (with \n and \r) and backticks over several lines, the
 * last of duplicates wins; BOM and CRLF are dropped. Unlike dotenv it reports what it leaves out:
 * names that are none, reserved ones, lines without `=`, quotes that do not close, text after a closing quote, and
 * earlier duplicates. Reasons never quote the text. Cost: O(length).
 */
export function parseDotenv(text: string): DotenvText {
  const source = text.replace(/^\uFEFF/, '').replaceAll(/\r\n?/g, '\n');
  const entries = new Map<string, DotenvEntry>();
  const skipped: DotenvSkip[] = [];
  let line = 1;
  for (let at = 0; at < source.length;) {
    const read = readLine(source, at);
    if (read.problem !== undefined) {
      skipped.push({ line, reason: read.problem });
    } else if (read.name !== undefined) {
      const name = read.name.toUpperCase();
      const earlier = entries.get(name);
      if (earlier !== undefined) {
        skipped.push({ line: earlier.line, reason: `given again on line ${line}` });
      }
      entries.set(name, { name, value: read.value, line });
    }
    line += countNewlines(source, at, read.end);
    at = read.end;
  }
  return {
    entries: [...entries.values()],
    skipped: skipped.sort((left, right) => left.line - right.line),
  };
}

type ReadLine = {
  /** Where the next entry begins. */
  readonly end: number;
  readonly name?: string | undefined;
  readonly value: string;
  readonly problem?: string | undefined;
};

function readLine(source: string, at: number): ReadLine {
  const lineEnd = endOfLine(source, at);
  const text = source.slice(at, lineEnd);
  const content = text.trim();
  if (content === '' || content.startsWith('#')) return { end: lineEnd + 1, value: '' };
  const head = HEAD.exec(text);
  const name = head?.groups?.['name'];
  if (head === null || name === undefined) {
    return { end: lineEnd + 1, value: '', problem: 'there is no = in the line' };
  }
  const value = readValue(source, at + head[0].length, lineEnd);
  return { ...value, name, problem: nameProblem(name) ?? value.problem };
}

function readValue(source: string, at: number, lineEnd: number): Omit<ReadLine, 'name'> {
  const quote = source.charAt(at);
  if (at < lineEnd && QUOTES.has(quote)) return readQuoted(source, at, lineEnd, quote);
  const raw = source.slice(at, lineEnd);
  const comment = raw.indexOf('#');
  return { end: lineEnd + 1, value: (comment < 0 ? raw : raw.slice(0, comment)).trim() };
}

/**
 * A backslash keeps a quote from closing, unless nothing else closes (`'C:\dir\'`): dotenv's regular
 * expression, backtracking, finds the same.
 */
function readQuoted(
  source: string,
  open: number,
  lineEnd: number,
  quote: string,
): Omit<ReadLine, 'name'> {
  const candidates: number[] = [];
  let unescaped = -1;
  for (let at = source.indexOf(quote, open + 1); at >= 0; at = source.indexOf(quote, at + 1)) {
    candidates.push(at);
    if (source.charAt(at - 1) !== '\\') {
      unescaped = at;
      break;
    }
  }
  for (const close of candidates.toReversed()) {
    REST_OF_QUOTED.lastIndex = close + 1;
    if (!REST_OF_QUOTED.test(source)) continue;
    const raw = source.slice(open + 1, close);
    const value =
      quote === '"' ? raw.replaceAll(String.raw`\n`, '\n').replaceAll(String.raw`\r`, '\r') : raw;
    return { end: endOfLine(source, close) + 1, value };
  }
  if (unescaped < 0) return { end: lineEnd + 1, value: '', problem: 'the quote is not closed' };
  return {
    end: endOfLine(source, unescaped) + 1,
    value: '',
    problem: 'text follows the closing quote',
  };
}

function endOfLine(source: string, at: number): number {
  const end = source.indexOf('\n', at);
  return end < 0 ? source.length : end;
}

function countNewlines(source: string, from: number, end: number): number {
  let count = 0;
  for (
    let at = source.indexOf('\n', from);
    at >= 0 && at < end;
    at = source.indexOf('\n', at + 1)
  ) {
    count++;
  }
  return count;
}
