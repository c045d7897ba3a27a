import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { ifPresent } from '../storage/file-errors.ts';

const LOOK_EVERY_MS = 250;

/**
 * Runs `action` and stops it as soon as the files directly in `dir` grow beyond `bytesMax`: git itself
 * knows no limit for what it fetches. Errors: RESULT_TOO_LARGE then, else those of `action`.
 */
export async function withFolderLimit<T>(
  dir: string,
  bytesMax: number,
  signal: AbortSignal,
  action: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const tooLarge = new AbortController();
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    if ((await bytesIn(dir)) > bytesMax) tooLarge.abort();
    looking = undefined;
  };
  const timer = setInterval(() => {
    looking ??= look();
  }, LOOK_EVERY_MS);
  try {
    return await action(AbortSignal.any([signal, tooLarge.signal]));
  } catch (error) {
    if (!tooLarge.signal.aborted) throw error;
    const text = `the code host sent more than ${bytesMax} bytes; the transfer was given up`;
    throw new AppError('RESULT_TOO_LARGE', text, { limitBytes: String(bytesMax) }, error);
  } finally {
    clearInterval(timer);
    await looking;
  }
}

async function bytesIn(dir: string): Promise<number> {
  const names = (await ifPresent(readdir(dir))) ?? [];
  let bytes = 0;
  for (const name of names) bytes += (await ifPresent(stat(join(dir, name))))?.size ?? 0;
  return bytes;
}
