import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { AppError } from '../../shared/app-error.ts';
import { storageError } from './file-errors.ts';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;
/** Beyond this the caller is reported instead of memory being filled. */
const PENDING_BYTES_MAX = 256 * 1024 * 1024;

type Pending = {
  readonly bytes: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: AppError) => void;
};

/** Called before a batch is written: may set the file aside and answer with a fresh, empty one. */
export type Rotation = (size: number) => Promise<FileHandle | undefined>;

/**
 * A file that only grows. Calls of `append` that come together are one write and one fdatasync; each
 * promise resolves when its bytes are on the disk. A batch that fails is cut off again, so that the
 * file holds what was acknowledged and nothing torn; when even that fails, nothing more is accepted.
 */
export class AppendFile {
  readonly #rotation: Rotation | undefined;
  #handle: FileHandle;
  /** Bytes that are on the disk. */
  #size: number;
  #queue: Pending[] = [];
  #queuedBytes = 0;
  #flushing: Promise<void> | undefined;
  #broken: AppError | undefined;

  private constructor(handle: FileHandle, size: number, rotation: Rotation | undefined) {
    this.#handle = handle;
    this.#size = size;
    this.#rotation = rotation;
  }

  /** Creates the file with `mode` when there is none. A symbolic link in its place is refused. */
  static async open(path: string, mode: number, rotation?: Rotation): Promise<AppendFile> {
    const handle = await openForAppend(path, mode);
    return new AppendFile(handle, (await handle.stat()).size, rotation);
  }

  get size(): number {
    return this.#size;
  }

  /** Errors: DISK_FULL, STORE_UNAVAILABLE, QUEUE_FULL when the disk lags by 256 MiB. */
  append(bytes: Uint8Array): Promise<void> {
    if (this.#broken !== undefined) return Promise.reject(this.#broken);
    if (this.#queuedBytes + bytes.length > PENDING_BYTES_MAX) {
      return Promise.reject(new AppError('QUEUE_FULL', 'the disk lags behind: too much unwritten'));
    }
    this.#queuedBytes += bytes.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ bytes, resolve, reject });
      this.#flushing ??= this.#flush();
    });
  }

  /** Cuts the file to `size`, on the disk when the promise resolves. Only while nothing is pending. */
  async truncate(size: number): Promise<void> {
    await this.#handle.truncate(size);
    await this.#handle.datasync();
    this.#size = size;
  }

  /** Waits for what is pending. Further appends are refused. */
  async close(): Promise<void> {
    this.#broken ??= new AppError('STORE_UNAVAILABLE', 'the file was closed');
    await this.#flushing;
    await this.#handle.close();
  }

  async #flush(): Promise<void> {
    // The calls of this turn of the event loop belong to the first batch.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const batch = this.#queue;
      this.#queue = [];
      const bytes =
        batch.length === 1 && batch[0] !== undefined
          ? batch[0].bytes
          : Buffer.concat(batch.map((pending) => pending.bytes));
      try {
        await this.#rotate();
        await writeAll(this.#handle, bytes);
        await this.#handle.datasync();
        this.#size += bytes.length;
        for (const pending of batch) pending.resolve();
      } catch (error) {
        await this.#undo();
        const failure = storageError('appending', error);
        for (const pending of batch) pending.reject(failure);
      }
      this.#queuedBytes -= bytes.length;
    }
    this.#flushing = undefined;
  }

  async #rotate(): Promise<void> {
    const fresh = await this.#rotation?.(this.#size);
    if (fresh === undefined) return;
    const old = this.#handle;
    this.#handle = fresh;
    this.#size = 0;
    await old.close();
  }

  async #undo(): Promise<void> {
    try {
      await this.truncate(this.#size);
    } catch (error) {
      this.#broken = storageError('cutting off an append that failed', error);
    }
  }
}

/** Creates the file with `mode` when there is none. A symbolic link in its place is refused. */
export function openForAppend(path: string, mode: number): Promise<FileHandle> {
  return open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, mode);
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  let written = 0;
  while (written < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, written, bytes.length - written);
    written += bytesWritten;
  }
}
