import { createHash, type Hash } from 'node:crypto';
import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/** The hash over an export's lines, by its name in OpenSSL. */
const DIGEST = 'sha256';
const NEWLINE = '\n';

/** The lines of an export as they are written: the first, and cursors and the last with count and digest of all before them. */
export class ExportWriter {
  readonly #hash = createHash(DIGEST);
  #count = 0;

  /** The first line. `cursor` is where the export begins, '' at the beginning. */
  begin(cursor: string): string {
    // Earlier releases ignore this member.
    return this.#add(`${JSON.stringify({ begin: true, cursor })}\n`, 0);
  }

  /** Lines that hold so many tuples, and the line of the cursor behind them, of which `members` are a part. */
  part(lines: string, tuples: number, members: Readonly<Record<string, unknown>>): string {
    this.#add(lines, tuples);
    const [count, digest] = [this.#count, this.#hash.copy().digest('hex')];
    return lines + this.#add(`${JSON.stringify({ ...members, count, [DIGEST]: digest })}\n`, 0);
  }

  /** Whole lines that hold so many tuples; returns them. */
  #add(lines: string, tuples: number): string {
    this.#hash.update(lines);
    this.#count += tuples;
    return lines;
  }

  /** The last line; `members` are others of it. Once. */
  lastLine(members: Readonly<Record<string, unknown>>): string {
    const [count, digest] = [this.#count, this.#hash.digest('hex')];
    return `${JSON.stringify({ end: true, ...members, count, [DIGEST]: digest })}\n`;
  }
}

/** Length of a cursor that errors repeat; a longer one was not issued here. */
const CURSOR_MAX = 1_024;

type Marks = {
  readonly begin?: unknown;
  readonly end?: unknown;
  readonly cursor?: unknown;
  readonly count?: unknown;
  readonly [DIGEST]?: unknown;
};

/**
 * Checks that an export is complete: from its first line on the bytes of all lines are hashed, and their tuples
 * counted. The lines of cursors and the last line must state the same. An export that ended at a cursor may be followed by
 * the one that continues there.
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
    else if (this.#hash !== undefined) this.#assertSame(marks, this.#hash.copy(), line);
    else if (DIGEST in marks && 'end' in marks) throw this.#cutError('its first line is missing');
    else this.#isUnchecked = true;
    if ('end' in marks) this.#hash = undefined;
    const { cursor } = marks;
    const isOurs = typeof cursor === 'string' && cursor.length <= CURSOR_MAX;
    if (isOurs) [this.#cursor, this.#cursorLine] = [cursor, line];
  }

  /** There is no more. Errors: EXPORT_CUT. */
  ended(): void {
    if (this.isOpen) throw this.#cutError('its last line, with count and digest, is missing');
  }

  #begin({ cursor }: Marks, line: number): void {
    if (this.isOpen && (cursor === '' || cursor !== this.#cursor)) {
      throw this.#cutError(
        `in line ${line} another export begins, which does not go on at its last cursor`,
      );
    }
    this.#hash = createHash(DIGEST);
    this.#count = 0;
  }

  #assertSame({ count, [DIGEST]: digest }: Marks, hash: Hash, line: number): void {
    if (count === this.#count && digest === hash.digest('hex')) return;
    const said = typeof count === 'number' ? `${count} tuples` : 'no count';
    const found = count === this.#count ? 'other bytes of them' : String(this.#count);
    throw new AppError<AuthzReason>(
      'EXPORT_ALTERED',
      `line ${line}: says ${said}, and ${found} came; nothing was written. Export again, or take the lines with begin and end out of a file that was altered on purpose`,
      { line: String(line) },
    );
  }

  #cutError(problem: string): AppError {
    const after =
      this.#cursor === ''
        ? ''
        : `, or keep the lines up to ${this.#cursorLine} and append the export with cursor=${this.#cursor}`;
    return new AppError<AuthzReason>(
      'EXPORT_CUT',
      `the export was cut: ${problem}; nothing was written. Export again${after}`,
      { cursor: this.#cursor },
    );
  }
}
