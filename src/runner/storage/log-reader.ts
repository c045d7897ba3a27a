import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { readFully } from './backward-lines.ts';
import { ifPresent, storageError } from './file-errors.ts';

const { O_NOFOLLOW, O_RDONLY } = constants;
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 10;

/**
 * What the log holds now, in chunks; from its `tail` last lines on. Nothing when there is no file. A
 * line that a crash cut short is ended by `\n`. Errors: STORE_UNAVAILABLE. Memory: one chunk.
 */
export async function* readLogFile(
  path: string,
  tail: number | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    const handle = await ifPresent(open(path, O_RDONLY | O_NOFOLLOW));
    if (handle === undefined) return;
    try {
      const { size } = await handle.stat();
      yield* chunksOf(handle, tail === undefined ? 0 : await tailStart(handle, size, tail), size);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw storageError('reading a log', error);
  }
}

async function* chunksOf(
  handle: FileHandle,
  start: number,
  size: number,
): AsyncGenerator<Uint8Array> {
  let isEnded = true;
  for (let at = start; at < size;) {
    const chunk = await readFully(handle, at, Math.min(CHUNK_BYTES, size - at));
    if (chunk.length === 0) return;
    isEnded = chunk[chunk.length - 1] === NEWLINE;
    at += chunk.length;
    yield chunk;
  }
  if (!isEnded) yield Buffer.from('\n');
}

/** Where the last `lines` lines of the first `size` bytes begin; reads from the end only. */
async function tailStart(handle: FileHandle, size: number, lines: number): Promise<number> {
  if (lines <= 0) return size;
  let missing = lines;
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const chunk = await readFully(handle, start, end - start);
    // The newline that ends the last line does not begin one.
    let from = end === size ? chunk.length - 2 : chunk.length - 1;
    while (from >= 0) {
      const at = chunk.lastIndexOf(NEWLINE, from);
      if (at < 0) break;
      missing--;
      if (missing === 0) return start + at + 1;
      from = at - 1;
    }
    end = start;
  }
  return 0;
}
