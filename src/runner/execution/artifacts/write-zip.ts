import { constants, type ReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { crc32, createDeflateRaw } from 'node:zlib';
import type { Zip, ZipInputFile } from 'fflate';
import { AppError } from '../../../shared/app-error.ts';
import { openWithin } from '../../storage/contained-file.ts';

/** The central directory of a zip without its 64-bit form counts to this. */
const ENTRIES_MAX = 50_000;
const DEFLATE_METHOD = 8;

export type ZipSource = {
  readonly source: string;
  readonly entry: string;
  /** The real path of a folder that the file must lie in, or of the file itself; default: anywhere, but `source` is no link. */
  readonly within?: string | undefined;
};

/** Takes the bytes of the archive in order. */
export type ZipSink = (chunk: Uint8Array) => Promise<void>;

/**
 * Writes files as a zip, piece by piece: compression runs beside the event loop, memory stays bounded.
 * Returns the bytes of all files.
 * Errors: INVALID_VALUE for a file that is not where it has to be, RESULT_TOO_LARGE for too many files, those of the file system and of `sink`.
 */
export async function writeZip(files: readonly ZipSource[], sink: ZipSink): Promise<number> {
  if (files.length > ENTRIES_MAX) {
    throw new AppError('RESULT_TOO_LARGE', `An artifact holds at most ${ENTRIES_MAX} files`);
  }
  const { Zip: ZipWriter } = await import('fflate');
  const ready: Uint8Array[] = [];
  let failure: Error | undefined;
  const zip = new ZipWriter((error, chunk) => {
    if (error === null) ready.push(chunk);
    else failure = error;
  });
  const drain = async (): Promise<void> => {
    if (failure !== undefined) throw failure;
    for (const chunk of ready.splice(0)) await sink(chunk);
  };
  let bytes = 0;
  for (const file of files) bytes += await addFile(zip, file, drain);
  zip.end();
  await drain();
  return bytes;
}

async function addFile(zip: Zip, file: ZipSource, drain: () => Promise<void>): Promise<number> {
  const handle = await openRegular(file);
  const entry: ZipInputFile = {
    filename: file.entry,
    size: 0,
    crc: 0,
    compression: DEFLATE_METHOD,
  };
  zip.add(entry);
  const input = await streamOf(handle);
  input.on('data', (chunk) => {
    entry.size += chunk.length;
    entry.crc = crc32(chunk, entry.crc);
  });
  const compressor = createDeflateRaw();
  input.once('error', (error) => compressor.destroy(error));
  for await (const chunk of input.pipe(compressor)) {
    entry.ondata?.(null, chunk as Uint8Array<ArrayBuffer>, false);
    await drain();
  }
  entry.ondata?.(null, new Uint8Array(0), true);
  await drain();
  return entry.size;
}

/**
 * The bytes of a file as far as it went when it was opened: one that somebody writes on to comes to an end.
 * Files of the kernel say that they are empty, and are read to their end.
 */
export async function streamOf(handle: FileHandle): Promise<ReadStream> {
  const { size } = await handle.stat();
  return handle.createReadStream(size === 0 ? {} : { end: size - 1 });
}

/** Errors: INVALID_VALUE when it is no regular file (a link, a pipe, a folder), or not where it has to be. */
export async function openRegular({ source, within }: ZipSource): Promise<FileHandle> {
  if (within !== undefined) return await openWithin(source, [within]);
  // Without O_NONBLOCK opening a named pipe would wait for its writer.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(source, flags);
  const stats = await handle.stat();
  if (!stats.isFile()) {
    await handle.close();
    throw new AppError('INVALID_VALUE', 'Only regular files can be stored');
  }
  return handle;
}
