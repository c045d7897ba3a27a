import { randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync } from 'node:fs';
import { open, readdir, rename, rm } from 'node:fs/promises';
import { arch } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../../shared/app-error.ts';
import { type DirectoryLock, lockDirectory } from '../../../shared/process/directory-lock.ts';

/** As many at a time as the thread pool has threads: others wait for it, too. */
const FILES_AT_ONCE = 4;

/**
 * Makes a folder that nobody writes to any more survive power loss, with all that is in it: files first,
 * then the folders that name them. Links have nothing of their own. Errors: those of the file system.
 * Cost: an fsync for each file and folder.
 */
export async function flushTree(dir: string): Promise<void> {
  const [files, folders] = [[] as string[], [dir]];
  // It grows while it is gone through.
  for (const folder of folders) {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) folders.push(path);
      else if (entry.isFile()) files.push(path);
    }
  }
  for (const paths of [files, folders]) {
    const rest = paths.values();
    const work = async (): Promise<void> => {
      for (const path of rest) await flush(path);
    };
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, work));
  }
}

/** A file, or the names in a folder. Errors: those of the file system. */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * What `work` comes to, which goes on for others when `signal` fires first. Errors: its, CANCELLED.
 */
export async function untilStopped<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return await work;
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(new AppError('CANCELLED', 'The step was stopped'));
  signal.addEventListener('abort', stop);
  try {
    if (signal.aborted) stop();
    return await Promise.race([work, stopped.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

const LOCK_POLL_MS = 100;
const LOCK_WAIT_MS = 20 * 60_000;
/** What a killed runner left half made. */
const STAGING_AGE_MS = 24 * 60 * 60_000;

/**
 * Tools that the runner installed: `<root>/<tool>/<version>/<arch>`, shared by all projects of the user. A
 * folder that is there is whole, after a crash of the machine too: it is made elsewhere, flushed and
 * renamed. Who makes one holds a lock of its name, so that two jobs, of two processes too, get it once.
 */
export class ToolCache {
  readonly root: string;
  readonly #making = new Map<string, Promise<string>>();

  /** `root` is absolute; made when needed, for its user alone. */
  constructor(root: string) {
    this.root = root;
  }

  dirOf(tool: string, version: string): string {
    return join(this.root, tool, version, arch());
  }

  has(tool: string, version: string): boolean {
    return isFolder(this.dirOf(tool, version));
  }

  versionsOf(tool: string): string[] {
    return namesIn(join(this.root, tool)).filter((version) => this.has(tool, version));
  }

  /**
   * The folder of a tool, which `make` fills when it is not there yet. Errors: those of `make`, after which
   * nothing is left; DEADLINE_EXCEEDED when another process makes it and does not end; CANCELLED.
   */
  async place(
    tool: string,
    version: string,
    make: (staging: string) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<string> {
    const key = `${tool}-${version}`;
    const known = this.#making.get(key);
    if (known !== undefined) {
      // Who stopped making it may be another job than this one.
      const others = known.catch((error: unknown) =>
        isCancel(error) ? undefined : rethrow(error),
      );
      const made = await untilStopped(others, signal);
      if (made !== undefined) return made;
      return await this.place(tool, version, make, signal);
    }
    const making = this.#place(tool, version, make, signal).finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    return await making;
  }

  async #place(
    tool: string,
    version: string,
    make: (staging: string) => Promise<void>,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const dir = this.dirOf(tool, version);
    if (isFolder(dir)) return dir;
    const lock = await this.#lock(`${tool}-${version}-${arch()}`, signal);
    const staging = join(this.#stagingRoot(), randomUUID());
    try {
      if (isFolder(dir)) return dir;
      await this.#tidy();
      mkdirSync(staging, { recursive: true, mode: 0o700 });
      await make(staging);
      await flushTree(staging);
      mkdirSync(dirname(dir), { recursive: true, mode: 0o700 });
      await rename(staging, dir);
      for (const folder of [dirname(dir), join(this.root, tool), this.root]) {
        await flush(folder);
      }
      return dir;
    } finally {
      await rm(staging, { recursive: true, force: true });
      lock.release();
    }
  }

  #stagingRoot(): string {
    const dir = join(this.root, '.staging');
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    return dir;
  }

  async #lock(name: string, signal: AbortSignal | undefined): Promise<DirectoryLock> {
    const dir = join(this.root, '.locks');
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const until = performance.now() + LOCK_WAIT_MS;
    for (;;) {
      try {
        return lockDirectory(join(dir, name), `the tool ${name}`, 'It is installed by that one.');
      } catch (error) {
        if (!(error instanceof AppError) || error.reason !== 'STORE_UNAVAILABLE') throw error;
        if (performance.now() > until) {
          throw new AppError('DEADLINE_EXCEEDED', error.message, {}, error);
        }
      }
      if (signal?.aborted === true) throw new AppError('CANCELLED', 'The step was stopped');
      await sleep(LOCK_POLL_MS);
    }
  }

  async #tidy(): Promise<void> {
    const staging = this.#stagingRoot();
    for (const name of namesIn(staging, true)) {
      const path = join(staging, name);
      const present = lstatSync(path, { throwIfNoEntry: false });
      if (present === undefined || Date.now() - present.mtimeMs < STAGING_AGE_MS) continue;
      await rm(path, { recursive: true, force: true });
    }
  }
}

/** A folder in the staging area of a cache, for the time of `use`. */
export async function inScratch<T>(root: string, use: (dir: string) => Promise<T>): Promise<T> {
  const dir = join(root, '.staging', randomUUID());
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  try {
    return await use(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** The names in a folder, those with a dot in front apart; none where there is no such folder. */
export function namesIn(dir: string, withHidden = false): string[] {
  try {
    return readdirSync(dir).filter((name) => withHidden || !name.startsWith('.'));
  } catch {
    // Not there, or closed to us: nothing to be found.
    return [];
  }
}

export function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function isCancel(error: unknown): boolean {
  return error instanceof AppError && error.reason === 'CANCELLED';
}

function rethrow(error: unknown): never {
  throw error;
}
