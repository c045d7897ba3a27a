import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { ifPresent, storageError } from './file-errors.ts';

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;
const TEMPORARY_MARK = '.tmp-';

/**
 * Replaces the file at `path` by `data`: readers see the old or the new content, and after the promise
 * resolved the new one survives power loss. `mode` (default 0600) is set whatever the umask says.
 * Errors: STORE_UNAVAILABLE when `path` is a symbolic link or no file, or the system refuses;
 * DISK_FULL. Cost: two fsyncs.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  mode = 0o600,
): Promise<void> {
  const name = basename(path);
  const temporary = join(
    dirname(path),
    `.${name}${TEMPORARY_MARK}${randomBytes(6).toString('hex')}`,
  );
  try {
    const present = await ifPresent(lstat(path));
    if (present !== undefined && !present.isFile()) {
      throw new AppError('STORE_UNAVAILABLE', `${name} is not a regular file; it is not replaced`);
    }
    await writeNewFile(temporary, data, mode);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw storageError(`writing ${name}`, error);
  }
}

/** Makes what was created, renamed or removed in `directory` survive power loss. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** True for a file that an interrupted `writeFileAtomic` left behind. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith('.') && name.includes(TEMPORARY_MARK);
}

async function writeNewFile(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  const handle = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    await handle.writeFile(data);
    await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
