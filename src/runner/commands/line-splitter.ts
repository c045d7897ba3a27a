import { StringDecoder } from 'node:string_decoder';
import { isCommandName } from './command.ts';
import type { Masker } from './masker.ts';

/** A line that is a command may be so long, in characters; longer ones are dropped whole. */
const COMMAND_LENGTH_MAX = 1024 * 1024;
const SPLIT_MARKER = ' [line split]';
const DROPPED_MARKER = '[a workflow command of more than 1 MiB was ignored]';

export type LineSplitterOptions = {
  /** Longer lines are split; the pieces but the last end with a marker. */
  readonly lineBytesMax: number;
  /**
   * Raw lines without their ends, and the text that holds them all, for those who look for something
   * rare in it first. A promise is handed on to the caller of `push`.
   */
  readonly onLines: (lines: string[], block: string) => Promise<void> | undefined;
  /**
   * Hides what would be cut in two by a split: the pieces of an over-long line come masked. Without it
   * secrets may survive there.
   */
  readonly masker?: Masker | undefined;
};

/**
 * Turns the bytes of a process into lines: UTF-8 whatever the borders of chunks, ends with LF or CRLF,
 * and of a line that a lone CR rewrote (a progress bar) only what was written last.
 */
export interface LineSplitter {
  /** Cost: one decoding, one split; nothing a line. The chunk may be reused afterwards. */
  push(chunk: Buffer): Promise<void> | undefined;
  /** Hands on what stands after the last line end. */
  end(): void;
}

export function createLineSplitter(options: LineSplitterOptions): LineSplitter {
  const decoder = new StringDecoder('utf8');
  const tail = createTail(options.lineBytesMax, options.masker);

  function take(text: string): Promise<void> | undefined {
    const firstEnd = text.indexOf('\n');
    const pieces: string[] = [];
    if (firstEnd === -1) {
      tail.append(text, pieces);
      return pieces.length > 0 ? options.onLines(pieces, pieces.join('\n')) : undefined;
    }
    const lastEnd = text.lastIndexOf('\n');
    tail.append(text.slice(0, firstEnd), pieces);
    tail.finish(pieces);
    let block = pieces.join('\n');
    if (lastEnd > firstEnd) {
      const rest = text.slice(firstEnd + 1, lastEnd);
      splitBlock(rest, pieces, tail);
      block += `\n${rest}`;
    }
    tail.append(text.slice(lastEnd + 1), pieces);
    return options.onLines(pieces, block);
  }
  return {
    push(chunk) {
      const text = decoder.write(chunk);
      return text === '' ? undefined : take(text);
    },
    end() {
      const pieces: string[] = [];
      const rest = decoder.end();
      if (rest !== '' || !tail.isEmpty()) {
        tail.append(rest, pieces);
        tail.finish(pieces);
        void options.onLines(pieces, pieces.join('\n'));
      }
    },
  };
}

/** Appends the whole lines of `block`, which does not end with a line end. Hot. */
function splitBlock(block: string, lines: string[], tail: Tail): void {
  const hasReturns = block.includes('\r');
  for (const line of block.split('\n')) {
    const text = hasReturns ? withoutReturns(line) : line;
    if (tail.isTooLong(text)) {
      tail.append(text, lines);
      tail.finish(lines);
    } else {
      lines.push(text);
    }
  }
}

/** What the last carriage return left of a line; those at its end belong to the line end. */
function withoutReturns(line: string): string {
  let end = line.length;
  while (end > 0 && line.charCodeAt(end - 1) === 13) {
    end -= 1;
  }
  const start = line.lastIndexOf('\r', end - 1) + 1;
  return end === line.length && start === 0 ? line : line.slice(end === 0 ? 0 : start, end);
}

/** The line that has no end yet. */
interface Tail {
  isEmpty(): boolean;
  isTooLong(line: string): boolean;
  /** Appends to the line; pieces of an over-long one go to `lines`. */
  append(text: string, lines: string[]): void;
  /** The line ends: what is left of it goes to `lines`. */
  finish(lines: string[]): void;
}

function createTail(lineBytesMax: number, masker: Masker | undefined): Tail {
  let parts: string[] = [];
  let length = 0;
  let covered = 0;
  let isSplit = false;
  let isDropping = false;

  function text(): string {
    const joined = parts.length === 1 ? (parts[0] ?? '') : parts.join('');
    parts = [joined];
    return joined;
  }
  function replace(rest: string): void {
    parts = rest === '' ? [] : [rest];
    length = rest.length;
  }
  function window(): number {
    return Math.max(0, (masker?.maxLength ?? 0) - 1);
  }
  function cutPieces(lines: string[]): void {
    let whole = text();
    if (!isSplit && isCommandStart(whole)) {
      if (whole.length > COMMAND_LENGTH_MAX) {
        isDropping = true;
        replace('');
        lines.push(DROPPED_MARKER);
      }
      return;
    }
    // A piece of so many characters has at most lineBytesMax bytes.
    const pieceLength = Math.floor(lineBytesMax / 3);
    while (whole.length >= pieceLength + window() && utf8Exceeds(whole, lineBytesMax)) {
      const cut = pieceEnd(whole, lineBytesMax);
      if (whole.length - cut < window()) {
        break;
      }
      const piece = masker?.maskPiece(whole, cut, covered) ?? {
        masked: whole.slice(0, cut),
        covered: 0,
      };
      lines.push(piece.masked + SPLIT_MARKER);
      covered = piece.covered;
      isSplit = true;
      whole = whole.slice(cut);
    }
    replace(whole);
  }
  return {
    isEmpty: () => length === 0 && !isSplit && !isDropping,
    isTooLong: (line) => utf8Exceeds(line, lineBytesMax),
    append(added, lines) {
      if (isDropping || added === '') {
        return;
      }
      parts.push(added);
      length += added.length;
      // A progress bar without a line end is dropped as it is rewritten.
      if (!isSplit && added.includes('\r')) {
        const whole = text();
        const lastReturn = whole.slice(0, -1).lastIndexOf('\r');
        replace(whole.slice(lastReturn + 1));
      }
      if (length * 3 > lineBytesMax) {
        cutPieces(lines);
      }
    },
    finish(lines) {
      const whole = withoutReturns(text());
      if (isSplit) {
        lines.push(masker?.maskPiece(whole, whole.length, covered).masked ?? whole);
      } else if (!isDropping) {
        lines.push(whole);
      }
      replace('');
      covered = 0;
      isSplit = false;
      isDropping = false;
    },
  };
}

function isCommandStart(line: string): boolean {
  const name = /^\s*::([a-z-]+)(?: |::)/iu.exec(line) ?? /##\[([a-z-]+)[ \]]/iu.exec(line);
  return isCommandName(name?.[1] ?? '');
}

function utf8Exceeds(text: string, bytesMax: number): boolean {
  return text.length * 3 > bytesMax && Buffer.byteLength(text) > bytesMax;
}

/** The most characters of `text` that fit into `bytesMax`, never half a surrogate pair. */
function pieceEnd(text: string, bytesMax: number): number {
  let low = Math.floor(bytesMax / 3);
  let high = Math.min(text.length, bytesMax);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (Buffer.byteLength(text.slice(0, middle)) <= bytesMax) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const last = text.charCodeAt(low - 1);
  return last >= 0xd800 && last <= 0xdbff ? low - 1 : low;
}
