import { isCommandName, mayHoldCommand } from './command.ts';
import type { Masker } from './masker.ts';

/** Of a line of a log, unless its owner says otherwise. */
export const LOG_LINE_BYTES_MAX = 64 * 1024;
/** A line that is a command may be so long, in characters; longer ones are dropped whole. */
const COMMAND_LENGTH_MAX = 1024 * 1024;
const SPLIT_MARKER = ' [line split]';
const DROPPED_MARKER = '[a workflow command of more than 1 MiB was ignored]';

/** The line that has no end yet; an over-long one leaves it in pieces, masked across their borders. */
export class UnfinishedLine {
  readonly #bytesMax: number;
  readonly #masker: Masker | undefined;
  /** Known once the line is too long. */
  #isCommand: boolean | undefined;
  readonly #isNeverCommand: boolean;
  #parts: string[] = [];
  #length = 0;
  /** Characters at the start of what is kept that the piece before has hidden already. */
  #covered = 0;
  #isSplit = false;
  #isDropping = false;

  /** `cutsCommands`: the line is known to be no command any more. */
  constructor(
    bytesMax: number,
    masker: Masker | undefined,
    options: { readonly cutsCommands: boolean } = { cutsCommands: false },
  ) {
    this.#bytesMax = bytesMax;
    this.#isNeverCommand = options.cutsCommands;
    this.#isCommand = this.#isNeverCommand ? false : undefined;
    this.#masker = masker;
  }

  isEmpty(): boolean {
    return this.#length === 0 && !this.#isSplit && !this.#isDropping;
  }

  /** Appends to the line; pieces of an over-long one go to `lines`. */
  append(text: string, lines: string[]): void {
    if (this.#isDropping || text === '') {
      return;
    }
    this.#parts.push(text);
    this.#length += text.length;
    // A progress bar without a line end is dropped as it is rewritten.
    if (!this.#isSplit && text.includes('\r')) {
      const whole = this.#text();
      this.#keep(lastSegment(whole, lines) + (whole.endsWith('\r') ? '\r' : ''));
    }
    if (this.#length * 3 > this.#bytesMax) {
      this.#cutPieces(lines);
    }
  }

  /** The line ends: what is left of it goes to `lines`. */
  finish(lines: string[]): void {
    const whole = this.#text();
    if (this.#isSplit) {
      const masked = this.#masker?.maskPiece(whole, whole.length, this.#covered).masked;
      lines.push(lastSegment(masked ?? whole, lines));
    } else if (!this.#isDropping) {
      lines.push(lastSegment(whole, lines));
    }
    this.#keep('');
    this.#covered = 0;
    this.#isSplit = false;
    this.#isDropping = false;
    this.#isCommand = this.#isNeverCommand ? false : undefined;
  }

  #text(): string {
    const joined = this.#parts.length === 1 ? (this.#parts[0] ?? '') : this.#parts.join('');
    this.#parts = [joined];
    return joined;
  }

  #keep(rest: string): void {
    this.#parts = [rest];
    this.#length = rest.length;
  }

  #cutPieces(lines: string[]): void {
    // Characters that a secret which begins in a piece can reach beyond it.
    const overlap = Math.max(0, (this.#masker?.maxLength ?? 0) - 1);
    if (this.#isCommand === true) {
      this.#dropLongCommand(lines);
      return;
    }
    if (this.#length < this.#bytesMax / 3 + overlap) {
      return;
    }
    let whole = this.#text();
    if (this.#isCommand === undefined && utf8Exceeds(whole, this.#bytesMax)) {
      this.#isCommand = isCommandStart(whole);
      if (this.#isCommand) {
        this.#dropLongCommand(lines);
        return;
      }
    }
    while (utf8Exceeds(whole, this.#bytesMax)) {
      const cut = pieceEnd(whole, this.#bytesMax);
      if (whole.length - cut < overlap) {
        break;
      }
      const piece = this.#masker?.maskPiece(whole, cut, this.#covered);
      lines.push((piece?.masked ?? whole.slice(0, cut)) + SPLIT_MARKER);
      this.#covered = piece?.covered ?? 0;
      this.#isSplit = true;
      whole = whole.slice(cut);
    }
    this.#keep(whole);
  }

  #dropLongCommand(lines: string[]): void {
    if (this.#length > COMMAND_LENGTH_MAX) {
      this.#isDropping = true;
      this.#keep('');
      lines.push(DROPPED_MARKER);
    }
  }
}

/**
 * What the last carriage return left of a line; those at its end belong to the line end. What may be a
 * command was one before it was written over: it goes to `lines`.
 */
export function lastSegment(line: string, lines: string[]): string {
  if (!line.includes('\r')) {
    return line;
  }
  const segments = line.split('\r').filter((segment) => segment !== '');
  const last = segments.pop() ?? '';
  if (mayHoldCommand(line)) {
    lines.push(...segments.filter(looksLikeCommand));
  }
  return last;
}

/** Tokens that resume commands have any name. */
function looksLikeCommand(segment: string): boolean {
  return segment.trimStart().startsWith('::') || segment.includes('##[');
}

/** Commands are never cut: half a mask would show the other half. */
function isCommandStart(line: string): boolean {
  const start = /^\s*::([a-z-]+)(?: |::)/iu.exec(line) ?? /##\[([a-z-]+)[ \]]/iu.exec(line);
  return isCommandName(start?.[1] ?? '');
}

/** Hot: short lines are not measured. */
export function utf8Exceeds(text: string, bytesMax: number): boolean {
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
