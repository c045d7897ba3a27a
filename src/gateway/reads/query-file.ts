import { type FileHandle, open, rename } from 'node:fs/promises';
import type { RecordedQuery } from './query-recorder.ts';

export type QueryFileOptions = {
  readonly path: string;
  /** Bound of the file and of the one before it together. */
  readonly bytesMax: number;
  /** One of so many queries is recorded; the first line states it. */
  readonly every: number;
  /** Called once: recording has ended. */
  readonly onFailed: (error: unknown) => void;
};

/** Bytes that may wait for the disk; queries beyond them are left out. */
const PENDING_BYTES_MAX = 1 << 20;
const FLUSH_MS = 200;

/**
 * Queries in the order and at the times at which they were asked, one JSON object a line, for load tests to ask again. Once the
 * file has half of what is allowed it becomes `path.1`, which replaces the one before, and a new one is begun; a file of a
 * former process is treated alike. Only its owner may read it. Holds subjects and objects, but no token and no context: those
 * may be secrets. Errors: none is thrown; the first one ends recording.
 */
export class QueryFile {
  readonly #options: QueryFileOptions;
  readonly #startMs = performance.now();
  readonly #startedAt = new Date().toISOString();
  #pending: string[] = [];
  #pendingBytes = 0;
  #file: FileHandle | undefined;
  #fileBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #isOver = false;
  #written = 0;
  #dropped = 0;

  constructor(options: QueryFileOptions) {
    this.#options = options;
  }

  /** Queries that are in the file, and that were left out since the disk was slow or failed. */
  get counts(): { readonly written: number; readonly dropped: number } {
    return { written: this.#written, dropped: this.#dropped };
  }

  /** Appends one query before long. O(its length). */
  add({ projectId, tenantId, namespace, objectId, relation, userId }: RecordedQuery): void {
    const line = `${JSON.stringify({
      at_ms: Math.round(performance.now() - this.#startMs),
      project_id: projectId,
      tenant_id: tenantId,
      namespace,
      object_id: objectId,
      relation,
      subject_user_id: userId,
    })}\n`;
    const bytes = Buffer.byteLength(line);
    if (this.#isOver || this.#pendingBytes + bytes > PENDING_BYTES_MAX) {
      this.#dropped += 1;
      return;
    }
    this.#pending.push(line);
    this.#pendingBytes += bytes;
    this.#timer ??= setTimeout(() => this.#flushSoon(), FLUSH_MS).unref();
  }

  /** Writes what waits, and closes the file. */
  async close(): Promise<void> {
    this.#flushSoon();
    this.#isOver = true;
    await this.#flushing;
    await this.#file?.close();
    this.#file = undefined;
  }

  #flushSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#flush());
  }

  async #flush(): Promise<void> {
    const [lines, bytes] = [this.#pending, this.#pendingBytes];
    this.#pending = [];
    this.#pendingBytes = 0;
    if (lines.length === 0) return;
    try {
      const isFull = this.#fileBytes > 0 && this.#fileBytes + bytes > this.#options.bytesMax / 2;
      if (this.#file === undefined || isFull) await this.#begin();
      await this.#file?.appendFile(lines.join(''));
      this.#fileBytes += bytes;
      this.#written += lines.length;
    } catch (error) {
      this.#dropped += lines.length;
      if (this.#isOver) return;
      this.#isOver = true;
      this.#options.onFailed(error);
    }
  }

  async #begin(): Promise<void> {
    const { path, every } = this.#options;
    await this.#file?.close();
    this.#file = undefined;
    await rename(path, `${path}.1`).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    this.#file = await open(path, 'wx', 0o600);
    const head = `${JSON.stringify({ recorded: this.#startedAt, every })}\n`;
    await this.#file.appendFile(head);
    this.#fileBytes = Buffer.byteLength(head);
  }
}
