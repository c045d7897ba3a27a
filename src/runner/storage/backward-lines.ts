import type { FileHandle } from 'node:fs/promises';

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 10;

/**
 * The lines of the first `size` bytes of a file, last one first, without their `\n`. Text after the
 * last `\n` counts as a line when there is any. Memory: a chunk of 64 KiB and the longest line.
 */
export async function* linesBackward(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  // Parts of the line whose beginning has not been reached, last part first.
  let parts: Buffer[] = [];
  let isAtEnd = true;
  for (let end = size; end > 0;) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const chunk = await readFully(handle, start, end - start);
    let lineEnd = chunk.length;
    if (isAtEnd && chunk[lineEnd - 1] === NEWLINE) lineEnd--;
    isAtEnd = false;
    for (;;) {
      const at = lineEnd === 0 ? -1 : chunk.lastIndexOf(NEWLINE, lineEnd - 1);
      parts.push(chunk.subarray(at + 1, lineEnd));
      if (at < 0) break;
      yield joined(parts);
      parts = [];
      lineEnd = at;
    }
    end = start;
  }
  if (parts.length > 0) yield joined(parts);
}

/** `length` bytes from `start`, fewer only when the file ends before. */
export async function readFully(
  handle: FileHandle,
  start: number,
  length: number,
): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

function joined(parts: readonly Buffer[]): Buffer {
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : Buffer.concat(parts.toReversed());
}
