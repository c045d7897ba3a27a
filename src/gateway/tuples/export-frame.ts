import { createHash, type Hash } from 'node:crypto';
import { AppError } from '../../shared/app-error.ts';
import type { TuplesReason } from './tuples-reason.ts';

/** The hash over an export's lines, by its name in OpenSSL. */
const DIGEST = 'sha256';
const NEWLINE = '\n';

/** The lines of an export as they are written: the first, and the last with count and digest of all between. */
export class ExportWriter {
  readonly #hash = createHash(DIGEST);
  #count = 0;

  /** The first line. `cursor` is where the export begins, '' at the beginning. */
  begin(cursor: string): string {
    // With a member that releases before this one pass over.
    return this.add(`${JSON.stringify({ begin: true, cursor })}\n`, 0);
  }

  /** Whole lines that hold so many tuples; returns them. */
  add(lines: string, tuples: number): string {
    this.#hash.update(lines);
    this.#count += tuples;
    return lines;
  }

  /** The last line; `members` are others of it. Once. */
  end(members: Readonly<Record<string, unknown>>): string {
    const [count, digest] = [this.#count, this.#hash.digest('hex')];
    return `${JSON.stringify({ end: true, ...members, count, [DIGEST]: digest })}\n`;
  }
}

type Marks = {
  readonly begin?: unknown;
  readonly end?: unknown;
  readonly cursor?: unknown;
  readonly count?: unknown;
  readonly [DIGEST]?: unknown;
};

/**
 * Whether what is read as an export is all of it: from its first line on, the bytes of all lines are counted and hashed, up to
 * the last line, which must say the same. An export that ended at a cursor may be followed by the one that goes on there.
 */
export class ExportReader {
  #hash: Hash | undefined;
  #count = 0;
  #cursor = '';
  #cursorLine = 0;
  #isUnchecked = false;

  /** Whether an export has begun and not ended. */
  get isOpen(): boolean {
    return this.#hash !== undefined;
  }

  /** Whether lines in the form of exports came that no last line vouches for, as releases before wrote them. */
  get isUnchecked(): boolean {
    return this.#isUnchecked;
  }

  /** A line that holds a tuple; `isWrapped`: in the form of exports. */
  tuple(isWrapped: boolean): void {
    this.#count += 1;
    if (isWrapped && !this.isOpen) this.#isUnchecked = true;
  }

  /** The bytes of whole lines, without their last newline; after their marks were read. */
  passed(bytes: Uint8Array | string): void {
    this.#hash?.update(bytes).update(NEWLINE);
  }

  /** A line that holds no tuple. Errors: EXPORT_CUT, EXPORT_ALTERED. */
  mark(marks: Marks, line: number): void {
    if (marks.begin === true) this.#begin(marks, line);
    else if ('end' in marks) this.#end(marks, line);
    else if (!this.isOpen) this.#isUnchecked = true;
    if (typeof marks.cursor === 'string') [this.#cursor, this.#cursorLine] = [marks.cursor, line];
  }

  /** There is no more. Errors: EXPORT_CUT. */
  ended(): void {
    if (this.isOpen) throw this.#cut('its last line, with count and digest, is missing');
  }

  #begin({ cursor }: Marks, line: number): void {
    if (this.isOpen && (cursor === '' || cursor !== this.#cursor)) {
      throw this.#cut(
        `in line ${line} another export begins, which does not go on at its last cursor`,
      );
    }
    this.#hash = createHash(DIGEST);
    this.#count = 0;
  }

  #end({ count, [DIGEST]: digest }: Marks, line: number): void {
    if (this.#hash === undefined) {
      this.#isUnchecked = true;
      return;
    }
    const found = this.#hash.digest('hex');
    this.#hash = undefined;
    if (count === this.#count && digest === found) return;
    throw new AppError<TuplesReason>(
      'EXPORT_ALTERED',
      `line ${line}: says ${String(count)} tuples, and ${this.#count} came${count === this.#count ? ' with other bytes' : ''}; nothing was written. Export again, or take the lines with begin and end out of a file that was altered on purpose`,
      { line: String(line) },
    );
  }

  #cut(problem: string): AppError {
    const after =
      this.#cursor === ''
        ? ''
        : `, or keep the lines up to ${this.#cursorLine} and append the export with cursor=${this.#cursor}`;
    return new AppError<TuplesReason>(
      'EXPORT_CUT',
      `the export was cut: ${problem}; nothing was written. Export again${after}`,
      { cursor: this.#cursor },
    );
  }
}
