import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { type DirectoryLock, lockDirectory } from '../../../shared/process/directory-lock.ts';
import { isFolder } from './tool-cache.ts';

/**
 * Removes what killed runners of older versions left: they had tools of jobs in `<root>/.jobs/<process>`,
 * with a lock beside it that a process which is there holds. Errors: those of the file system.
 */
export async function removeFormerJobTools(root: string): Promise<void> {
  const dir = join(root, '.jobs');
  for (const name of isFolder(dir) ? readdirSync(dir) : []) {
    if (!name.endsWith('.lock')) continue;
    const path = join(dir, name);
    const lock = tryLock(path);
    if (lock === undefined) continue;
    await rm(path.slice(0, -'.lock'.length), { recursive: true, force: true });
    await rm(path, { force: true });
    lock.release();
  }
}

function tryLock(path: string): DirectoryLock | undefined {
  try {
    return lockDirectory(path, 'the folder of tools');
  } catch (error) {
    if (error instanceof AppError && error.reason === 'STORE_UNAVAILABLE') return undefined;
    throw error;
  }
}
