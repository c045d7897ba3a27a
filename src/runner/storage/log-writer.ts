import {
  closeSync,
  constants,
  fdatasync,
  ftruncateSync,
  mkdirSync,
  openSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { LogWriter } from '../model/storage.ts';
import { storageError, systemCode } from './file-errors.ts';

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants;
/** After so many bytes the disk is asked to catch up, in the background. */
const FLUSH_BYTES = 8 * 1024 * 1024;
/** The caller is asked to pause while the disk is so many bytes behind: else the kernel would stop this thread. */
const LAG_BYTES_MAX = 32 * 1024 * 1024;

/**
 * Opens the log of a step anew: a rerun replaces it. Each `write` is one system call with all its lines.
 * Errors of both: DISK_FULL, STORE_UNAVAILABLE (thrown).
 */
export function openLogWriter(path: string): LogWriter {
  try {
    return new FileLogWriter(openNew(path));
  } catch (error) {
    throw storageError('opening a log', error);
  }
}

function openNew(path: string): number {
  const flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW;
  try {
    return openSync(path, flags, 0o600);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    return openSync(path, flags, 0o600);
  }
}

class FileLogWriter implements LogWriter {
  readonly #descriptor: number;
  #isClosed = false;
  #size = 0;
  /** Bytes handed to the system since the flush that is going on began, or since the last one. */
  #unflushedBytes = 0;
  #flushing: Promise<void> | undefined;
  /** What the disk refused later: the next call throws it. */
  #failure: AppError | undefined;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  write(lines: readonly string[]): Promise<void> | undefined {
    if (this.#isClosed) throw new AppError('STORE_UNAVAILABLE', 'the log was closed');
    if (this.#failure !== undefined) throw this.#failure;
    if (lines.length === 0) return undefined;
    const bytes = Buffer.from(`${lines.join('\n')}\n`, 'utf8');
    try {
      for (let at = 0; at < bytes.length;) {
        at += writeSync(this.#descriptor, bytes, at, bytes.length - at);
      }
    } catch (error) {
      this.#cutOff();
      throw storageError('writing a log', error);
    }
    this.#size += bytes.length;
    this.#unflushedBytes += bytes.length;
    if (this.#unflushedBytes < FLUSH_BYTES) return undefined;
    if (this.#flushing === undefined) this.#startFlush();
    return this.#unflushedBytes >= LAG_BYTES_MAX ? this.#flushing : undefined;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    try {
      if (this.#flushing === undefined) closeSync(this.#descriptor);
    } catch (error) {
      this.#failure ??= storageError('closing a log', error);
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Lines that were written in part would run into the next ones. */
  #cutOff(): void {
    try {
      ftruncateSync(this.#descriptor, this.#size);
    } catch {
      // The failure of the write is what the caller is reported.
    }
  }

  #startFlush(): void {
    this.#unflushedBytes = 0;
    this.#flushing = new Promise((resolve) => {
      fdatasync(this.#descriptor, (error) => {
        this.#flushing = undefined;
        if (error !== null) this.#failure = storageError('flushing a log', error);
        if (this.#isClosed) closeSync(this.#descriptor);
        resolve();
      });
    });
  }
}
