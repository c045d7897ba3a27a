import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { AppError } from '../shared/app-error.ts';
import type { HttpReason } from './http-reason.ts';

const gunzipAsync = promisify(gunzip);

/**
 * Decompresses a gzip body of at most `maxBytes` decompressed; runs on the thread pool.
 * Errors: BODY_TOO_LARGE as soon as the output passes the limit (a small bomb never expands),
 * BODY_MALFORMED when it is not gzip or is cut short.
 */
export async function gunzipLimited(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  if (bytes.byteLength === 0) return bytes;
  try {
    return await gunzipAsync(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ERR_BUFFER_TOO_LARGE') throw bodyTooLarge(maxBytes, error);
    throw new AppError<HttpReason>('BODY_MALFORMED', 'the body is not valid gzip', {}, error);
  }
}

/** The error of a body, compressed or not, that passes `maxBytes`. */
export function bodyTooLarge(maxBytes: number, cause?: unknown): AppError {
  const metadata = { limit_bytes: String(maxBytes) };
  return new AppError<HttpReason>(
    'BODY_TOO_LARGE',
    `the body is larger than ${maxBytes} bytes`,
    metadata,
    cause,
  );
}
