import { constants } from 'node:fs';
import { lstat, mkdir, open, rename, rm, type FileHandle } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { AppendFile, openForAppend } from './append-file.ts';
import { syncDirectory } from './atomic-file.ts';
import { linesBackward, readFully } from './backward-lines.ts';
import { ifPresent, storageError } from './file-errors.ts';

const { O_NOFOLLOW, O_RDONLY } = constants;
const NEWLINE = 10;
const READ_BYTES = 256 * 1024;
/** A longer record is refused: readers hold a whole line in memory. */
export const RECORD_BYTES_MAX = 64 * 1024 * 1024;
const FILE_MODE = 0o600;
const KEEP_FILES_DEFAULT = 4;

export type JsonlOptions = {
  readonly path: string;
  /** Default 0600. */
  readonly mode?: number | undefined;
  /** A file that has reached this size is set aside as `path.1` (then `.2`…) before the next append. Default: never. */
  readonly rotateBytes?: number | undefined;
  /** Set-aside files that are kept; older ones are deleted. Default 4. */
  readonly keepFiles?: number | undefined;
  /** Is notified of torn and unreadable lines (`jsonl.line_torn`, `jsonl.line_unreadable`). */
  readonly report: ProblemReporter;
};

/** JSON records, one a line, only ever appended. One process, one opened instance a path. */
export interface JsonlFile {
  /**
   * In the order of the calls; on disk when the promise resolves. Calls that come together share one
   * fdatasync. Errors: DISK_FULL, STORE_UNAVAILABLE, RESULT_TOO_LARGE for a record above 64 MiB.
   */
  append(record: object): Promise<void>;
  /** What was acknowledged before the call, newest first, set-aside files included. Reads no more than is asked for. */
  newestFirst(): AsyncIterable<unknown>;
  /** The same, oldest first. */
  oldestFirst(): AsyncIterable<unknown>;
  /** Whether rotations may have removed the oldest records: as many files are set aside as are kept. */
  mayHaveDropped(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Opens or creates the file (its folder too, 0700). A last line that a crash tore is cut off and
 * reported: it was never acknowledged. A line that is no JSON is reported and left out when read.
 * Errors: DISK_FULL, STORE_UNAVAILABLE. Cost: reads the end of the file only.
 */
export async function openJsonlFile(options: JsonlOptions): Promise<JsonlFile> {
  try {
    await mkdir(dirname(options.path), { recursive: true, mode: 0o700 });
    return await RotatingJsonlFile.open(options);
  } catch (error) {
    throw storageError(`opening ${basename(options.path)}`, error);
  }
}

/** The line of a record, `\n` included. Errors: RESULT_TOO_LARGE. */
export function lineOfRecord(record: object): Buffer {
  const line = Buffer.from(`${JSON.stringify(record)}\n`);
  if (line.length > RECORD_BYTES_MAX) {
    throw new AppError('RESULT_TOO_LARGE', 'a record is too large to be kept');
  }
  return line;
}

/** Length of the whole lines in the first `size` bytes: what follows the last `\n` is torn. */
export async function wholeLinesLength(handle: FileHandle, size: number): Promise<number> {
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - READ_BYTES);
    const at = (await readFully(handle, start, end - start)).lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

/** Cuts off what a crash tore, before anything is appended. Answers whether the file is empty. */
async function repairEnd(options: JsonlOptions): Promise<boolean> {
  const { path, mode, report } = options;
  const handle = await openForAppend(path, mode ?? FILE_MODE);
  try {
    const { size } = await handle.stat();
    const wholeBytes = await wholeLinesLength(handle, size);
    if (wholeBytes < size) {
      report('jsonl.line_torn', tornLineError(basename(path), size - wholeBytes));
      await handle.truncate(wholeBytes);
      await handle.sync();
    }
    return size === 0;
  } finally {
    await handle.close();
  }
}

/** For the report of a line that a crash cut short. */
export function tornLineError(name: string, bytes: number): AppError {
  return new AppError(
    'STORE_UNAVAILABLE',
    `${name}: the last line was torn (${bytes} bytes); it was never acknowledged and is dropped`,
  );
}

class RotatingJsonlFile implements JsonlFile {
  readonly #options: JsonlOptions;
  readonly #file: AppendFile;
  /** Rotations and the opening of readers, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  /**
   * Resolves when the file's name is on the disk. A new one is put there with its first record: most files
   * never get one, and each start would wait for the disk.
   */
  #named: Promise<unknown> | undefined;

  private constructor(options: JsonlOptions, file: AppendFile, isNew: boolean) {
    this.#options = options;
    this.#file = file;
    if (!isNew) this.#named = Promise.resolve();
  }

  static async open(options: JsonlOptions): Promise<RotatingJsonlFile> {
    const isNew = await repairEnd(options);
    const { path, mode, rotateBytes = Number.POSITIVE_INFINITY } = options;
    const file = await AppendFile.open(path, mode ?? FILE_MODE, (size) =>
      size < rotateBytes ? Promise.resolve(undefined) : opened.#inTurn(() => opened.#rotate()),
    );
    const opened = new RotatingJsonlFile(options, file, isNew);
    return opened;
  }

  async append(record: object): Promise<void> {
    const line = lineOfRecord(record);
    this.#named ??= this.#name();
    await Promise.all([this.#file.append(line), this.#named]);
  }

  async #name(): Promise<void> {
    const { path } = this.#options;
    try {
      await syncDirectory(dirname(path));
    } catch (error) {
      this.#named = undefined;
      throw storageError(`putting the name of ${basename(path)} on the disk`, error);
    }
  }

  async *newestFirst(): AsyncGenerator {
    const files = await this.#inTurn(() => this.#openAll());
    try {
      for (const { handle, size } of files) {
        for await (const line of linesBackward(handle, size)) {
          const record = this.#recordOf(line);
          if (record !== undefined) yield record;
        }
      }
    } finally {
      await Promise.all(files.map(({ handle }) => handle.close()));
    }
  }

  async *oldestFirst(): AsyncGenerator {
    const files = await this.#inTurn(() => this.#openAll());
    try {
      for (const { handle, size } of files.toReversed()) {
        for await (const line of linesForward(handle, size)) {
          const record = this.#recordOf(line);
          if (record !== undefined) yield record;
        }
      }
    } finally {
      await Promise.all(files.map(({ handle }) => handle.close()));
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  mayHaveDropped(): Promise<boolean> {
    const { keepFiles = KEEP_FILES_DEFAULT } = this.#options;
    return this.#isThere(keepFiles);
  }

  async #isThere(number: number): Promise<boolean> {
    return (await ifPresent(lstat(`${this.#options.path}.${number}`))) !== undefined;
  }

  async #rotate(): Promise<FileHandle> {
    const { path, mode, keepFiles = KEEP_FILES_DEFAULT } = this.#options;
    // Up to the first free place: a crash between two renames leaves one, and nothing need go then.
    let free = 1;
    while (free < keepFiles && (await this.#isThere(free))) free++;
    // The last one is replaced, not removed first: as long as its place is taken, records may be missing.
    for (let number = free - 1; number >= 1; number--) {
      await rename(`${path}.${number}`, `${path}.${number + 1}`);
    }
    await (keepFiles > 0 ? rename(path, `${path}.1`) : rm(path));
    const fresh = await openForAppend(path, mode ?? FILE_MODE);
    await syncDirectory(dirname(path));
    return fresh;
  }

  /** Newest first. All are opened in one turn, so that a rotation meanwhile moves nothing for the reader. */
  async #openAll(): Promise<{ readonly handle: FileHandle; readonly size: number }[]> {
    const { path, keepFiles = KEEP_FILES_DEFAULT } = this.#options;
    const files: { handle: FileHandle; size: number }[] = [];
    // The gap that a crash may leave is one place wide; after it the numbers have ended.
    for (let number = 0, gaps = 0; number <= keepFiles && gaps < 2; number++) {
      const name = number === 0 ? path : `${path}.${number}`;
      const handle = await ifPresent(open(name, O_RDONLY | O_NOFOLLOW));
      if (handle === undefined) {
        gaps += 1;
        continue;
      }
      const size = number === 0 ? this.#file.size : (await handle.stat()).size;
      files.push({ handle, size });
    }
    return files;
  }

  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(action, action);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  #recordOf(line: Buffer): unknown {
    return recordOfLine(line, basename(this.#options.path), this.#options.report);
  }
}

/** The record in a line; undefined, and reported, when it is none. */
export function recordOfLine(line: Buffer, name: string, report: ProblemReporter): unknown {
  try {
    return JSON.parse(line.toString('utf8')) as unknown;
  } catch {
    report(
      'jsonl.line_unreadable',
      new AppError('STORE_UNAVAILABLE', `${name}: a line is no JSON; it is left out`),
    );
    return undefined;
  }
}

/** The whole lines of the first `size` bytes, in order, without their `\n`. */
export async function* linesForward(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  for (let start = 0; start < size;) {
    const chunk = await readFully(handle, start, Math.min(READ_BYTES, size - start));
    if (chunk.length === 0) return;
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      rest.push(chunk.subarray(from, at));
      yield rest.length === 1 ? chunk.subarray(from, at) : Buffer.concat(rest);
      rest = [];
      from = at + 1;
    }
    if (from < chunk.length) rest.push(chunk.subarray(from));
    start += chunk.length;
  }
}
