import { constants, existsSync, lstatSync, realpathSync } from 'node:fs';
import { open, readlink, realpath, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { AppError } from '../../shared/app-error.ts';

const READ = constants.O_RDONLY;

/** Whether `path` is `root` or lies below it, by their names alone. */
export function isWithin(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : root + sep);
}

/**
 * Opens a regular file to read, wherever links lead, and makes sure that it lies within one of `roots`
 * (real paths). The open file itself is asked where it is, so that nothing can be put in its place in
 * between. Errors: INVALID_VALUE for a file elsewhere and for what is no regular file, and those of the
 * file system.
 */
export async function openWithin(path: string, roots: readonly string[]): Promise<FileHandle> {
  // Not blocking: a named pipe would wait for its writer.
  return await openChecked(path, READ | constants.O_NONBLOCK, roots);
}

/**
 * Makes a file that is not there yet and opens it to write, as `openWithin` opens one to read.
 * Errors: as there; EEXIST.
 */
export async function createWithin(path: string, root: string, mode: number): Promise<FileHandle> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  return await openChecked(path, flags, [root], mode);
}

async function openChecked(
  path: string,
  flags: number,
  roots: readonly string[],
  mode?: number,
): Promise<FileHandle> {
  const handle = await open(path, flags, mode);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new AppError('INVALID_VALUE', 'Only regular files can be used');
    const real = await realPathOf(handle, path, stats);
    if (real === undefined || !roots.some((root) => isWithin(root, real))) {
      throw leadsOut(path);
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Where an open file lies; undefined when that is not known, as its name is another's by now. */
async function realPathOf(
  handle: FileHandle,
  path: string,
  own: { readonly dev: number; readonly ino: number },
): Promise<string | undefined> {
  if (process.platform === 'linux') return await readlink(`/proc/self/fd/${handle.fd}`);
  const real = await realpath(path);
  const { dev, ino } = await stat(real);
  return dev === own.dev && ino === own.ino ? real : undefined;
}

/**
 * Where `path`, which need not be there, really is: links of the part that is there are followed.
 * Undefined when one of them leads nowhere. Errors: those of the file system.
 */
function realPlaceOf(path: string): string | undefined {
  let there = path;
  while (lstatSync(there, { throwIfNoEntry: false }) === undefined) there = dirname(there);
  return existsSync(there) ? join(realpathSync(there), relative(there, path)) : undefined;
}

/** Errors: INVALID_VALUE when `path` begins in `folder` by its name, and links lead it out. */
export function mustStayWithin(folder: string, path: string): void {
  if (!isWithin(folder, path)) return;
  const real = realPlaceOf(path);
  if (real === undefined || !isWithin(realpathSync(folder), real)) throw leadsOut(path);
}

function leadsOut(path: string): AppError {
  return new AppError('INVALID_VALUE', `'${path}' leads out of its folder by a link`, {
    field: 'path',
  });
}
