import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Compression } from '@connectrpc/connect/protocol';
import { gunzipLimited } from '../../bodies/gunzip-limited.ts';

const gzipAsync = promisify(gzip);
/** The answer is compressed while its caller waits, so speed counts for more than size. */
const LEVEL = 4;

/** gzip for requests and answers; decompression stops at the limit of the message. */
export const gzipCompression: Compression = {
  name: 'gzip',
  compress: async (bytes) => new Uint8Array(await gzipAsync(bytes, { level: LEVEL })),
  decompress: async (bytes, readMaxBytes) =>
    new Uint8Array(await gunzipLimited(bytes, readMaxBytes)),
};
