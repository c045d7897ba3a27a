import {
  accessSync,
  constants,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { join } from 'node:path';

/** A file system in memory: making a file on a disk takes up to milliseconds while others flush. */
const MEMORY_FOLDER = '/dev/shm';

/** The folder of a file system in memory with `bytesFree` left; undefined where there is none. */
export function memoryFolder(bytesFree = 0): string | undefined {
  try {
    accessSync(MEMORY_FOLDER, constants.W_OK | constants.X_OK);
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize >= bytesFree ? MEMORY_FOLDER : undefined;
  } catch {
    // Not every system has it.
    return undefined;
  }
}

/**
 * A new folder of this process alone below `parent`, gone with the process. Those that killed processes
 * left under the same prefix are removed first. Errors: those of the file system.
 */
export function makeProcessFolder(parent: string, prefix: string): string {
  const own = `${prefix}${namespace()}`;
  for (const name of readdirSync(parent)) {
    const pid = name.startsWith(own) ? Number.parseInt(name.slice(own.length), 10) : Number.NaN;
    if (Number.isInteger(pid) && !isAlive(pid)) removeOwn(join(parent, name));
  }
  const folder = mkdtempSync(join(parent, `${own}${process.pid}-`));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The folder may be shared with other users, whose leftovers are theirs to remove. */
function removeOwn(path: string): void {
  try {
    if (lstatSync(path).uid === process.getuid?.()) rmSync(path, { recursive: true, force: true });
  } catch {
    // Another process of this user was faster, or may not be let to: it is litter only.
  }
}

/** Containers may share the folder, and then count their processes apart. */
function namespace(): string {
  try {
    return `${/\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? 0}-`;
  } catch {
    // Only Linux has them.
    return '';
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is another user's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
