import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

const gzipAsync = promisify(gzip);
/** The answer is compressed while its caller waits, so speed counts for more than size. */
const LEVEL = 4;

/** Compresses an answer, on the thread pool. */
export function gzipped(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return gzipAsync(bytes, { level: LEVEL });
}
