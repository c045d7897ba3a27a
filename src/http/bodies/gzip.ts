import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';

const gunzipAsync = promisify(gunzip);
/** Bodies that are decompressed at the same time: file access and name lookups use the same threads. */
const RUNNING_MAX = 2;
/** Bytes of output per step; each step is a task of a thread and a turn of the event loop. */
const CHUNK_BYTES = 65_536;

/**
 * Decompresses a gzip body of at most `maxBytes` decompressed, on the thread pool, two at a time.
 * Errors: BODY_TOO_LARGE as soon as the output passes the limit (a small bomb never expands), BODY_MALFORMED when it
 * is not gzip or is cut short.
 */
export async function gunzipLimited(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  if (bytes.byteLength === 0) return bytes;
  while (running >= RUNNING_MAX) await new Promise<void>((resolve) => waiting.push(resolve));
  running += 1;
  try {
    const chunkSize = Math.max(1_024, Math.min(CHUNK_BYTES, maxBytes));
    return await gunzipAsync(bytes, { maxOutputLength: maxBytes, chunkSize });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge(maxBytes, error);
    throw new AppError<SharedReason>('BODY_MALFORMED', 'the body is not valid gzip', {}, error);
  } finally {
    running -= 1;
    waiting.shift()?.();
  }
}

let running = 0;
const waiting: (() => void)[] = [];

/** The error of a body, compressed or not, that passes `maxBytes`. */
export function bodyTooLarge(maxBytes: number, cause?: unknown): AppError {
  const metadata = { limit_bytes: String(maxBytes) };
  return new AppError<SharedReason>(
    'BODY_TOO_LARGE',
    `the body is larger than ${maxBytes} bytes`,
    metadata,
    cause,
  );
}

const gzipAsync = promisify(gzip);
/** The answer is compressed while its caller waits, so speed counts for more than size. */
const LEVEL = 4;

/** Compresses an answer, on the thread pool. */
export function gzipped(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return gzipAsync(bytes, { level: LEVEL });
}
