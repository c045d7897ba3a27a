import { statfs } from 'node:fs/promises';
import { AppError } from '../../shared/app-error.ts';
import { storageError } from './file-errors.ts';

const CACHE_MS = 1_000;
const MEBIBYTE = 1024 * 1024;

/**
 * A check that `minBytes` are free on the disk of `directory`, asked of the system at most once a
 * second. Errors of the check: DISK_FULL, STORE_UNAVAILABLE.
 */
export function createFreeDiskCheck(
  directory: string,
  minBytes: number,
  nowMs: () => number,
): () => Promise<void> {
  let freeBytes: Promise<number> | undefined;
  let askedAtMs = 0;
  return async () => {
    if (freeBytes === undefined || nowMs() - askedAtMs >= CACHE_MS) {
      askedAtMs = nowMs();
      freeBytes = freeBytesOf(directory);
    }
    const free = await freeBytes;
    if (free >= minBytes) return;
    const minMebibytes = Math.ceil(minBytes / MEBIBYTE);
    throw new AppError(
      'DISK_FULL',
      `less than ${minMebibytes} MiB are free on the disk of the runner's state`,
      { floorBytes: String(minBytes) },
    );
  };
}

async function freeBytesOf(directory: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(directory);
    return bavail * bsize;
  } catch (error) {
    throw storageError('asking for free disk space', error);
  }
}
