import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { type DirectoryLock, lockDirectory } from '../../../store/directory-lock.ts';
import { isFolder } from './tool-cache.ts';

/**
 * Folders of tools that belong to one job each, `<root>/.jobs/<process>/<job>`, out of every project: Node
 * looks for packages in the folders above. The folder of a process that is gone is removed by the next.
 */
export class JobTools {
  readonly #root: string;
  #own: { readonly dir: string; readonly lock: DirectoryLock } | undefined;

  constructor(root: string) {
    this.#root = join(root, '.jobs');
  }

  /** A new folder for `job`. Errors: those of the file system. */
  open(job: string): string {
    this.#own ??= this.#begin();
    const dir = join(this.#own.dir, job);
    mkdirSync(dir, { recursive: true, mode: 0o755 });
    return dir;
  }

  /** Of this process. Never rejects for what is gone already. */
  async close(): Promise<void> {
    const own = this.#own;
    this.#own = undefined;
    if (own === undefined) return;
    await rm(own.dir, { recursive: true, force: true });
    own.lock.release();
    await rm(`${own.dir}.lock`, { force: true });
  }

  /** Removes what killed processes left. */
  async tidy(): Promise<void> {
    for (const name of isFolder(this.#root) ? readdirSync(this.#root) : []) {
      if (!name.endsWith('.lock')) continue;
      const path = join(this.#root, name);
      const lock = tryLock(path);
      if (lock === undefined) continue;
      await rm(path.slice(0, -'.lock'.length), { recursive: true, force: true });
      await rm(path, { force: true });
      lock.release();
    }
  }

  #begin(): { readonly dir: string; readonly lock: DirectoryLock } {
    mkdirSync(this.#root, { recursive: true, mode: 0o700 });
    const dir = join(this.#root, randomUUID());
    const lock = lockDirectory(`${dir}.lock`, 'the folder of tools');
    mkdirSync(dir, { mode: 0o755 });
    return { dir, lock };
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
