import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { writeFileAtomic } from '../../storage/atomic-file.ts';
import { ifPresent, storageError } from '../../storage/file-errors.ts';
import { nameLeadingOut, outwardLinks } from './outward-links.ts';

/** All caches of a project together; the least recently used ones go first. */
const CACHE_BYTES_MAX = 10 * 1024 * 1024 * 1024;
const KEY_CHARACTERS_MAX = 512;
const COMPRESSION = 'gzip -1';
const MESSAGE_CHARACTERS_MAX = 500;

type CacheEntry = {
  readonly id: string;
  readonly key: string;
  /** Which paths it holds: another list of paths is another cache. */
  readonly version: string;
  readonly size: number;
  readonly createdAt: string;
};

/** The caches of a project: an archive of paths for each key. Immutable, like those of GitHub. */
export interface CacheStore {
  /**
   * The cache to restore for the first of `keys` that has one: its own, else the newest whose key begins
   * with it.
   */
  find(keys: readonly string[], paths: readonly string[]): { readonly key: string } | undefined;
  /**
   * Unpacks what `find` gave; relative paths go below `workspace`.
   * Errors: NOT_FOUND, INVALID_VALUE when a link in the workspace would lead what is unpacked out of it,
   * STORE_UNAVAILABLE, CANCELLED.
   */
  restore(
    key: string,
    paths: readonly string[],
    workspace: string,
    signal?: AbortSignal,
  ): Promise<void>;
  /**
   * Stores `files` (absolute, or relative to `workspace`), which the patterns `paths` gave. False when
   * the key is taken.
   * Errors: INVALID_NAME for the key, RESULT_TOO_LARGE, DISK_FULL, STORE_UNAVAILABLE, CANCELLED.
   */
  save(request: {
    readonly key: string;
    readonly paths: readonly string[];
    readonly files: readonly string[];
    readonly workspace: string;
    readonly signal?: AbortSignal | undefined;
  }): Promise<boolean>;
}

/** The store in `dir`: `<id>.tgz` and `<id>.json`. Reads the indexes that are there. */
export async function createCacheStore(
  dir: string,
  options: { readonly bytesMax?: number | undefined } = {},
): Promise<CacheStore> {
  const store = new FileCacheStore(dir, options.bytesMax ?? CACHE_BYTES_MAX);
  await store.load();
  return store;
}

/** Errors: INVALID_NAME for a key that a cache cannot have, which has all of it: a part of a secret could not be masked. Source: actions/toolkit, cache, checkKey. */
export function mustCacheKey(key: string): void {
  const problem =
    key === ''
      ? 'Key is not specified.'
      : key.length > KEY_CHARACTERS_MAX
        ? `Key Validation Error: the key cannot be larger than ${KEY_CHARACTERS_MAX} characters, it has ${key.length}.`
        : key.includes(',')
          ? `Key Validation Error: ${key} cannot contain commas.`
          : undefined;
  if (problem !== undefined) throw new AppError('INVALID_NAME', problem, { field: 'key' });
}

class FileCacheStore implements CacheStore {
  readonly #dir: string;
  readonly #bytesMax: number;
  /** The least recently used one first. */
  readonly #entries = new Map<string, CacheEntry>();

  constructor(dir: string, bytesMax: number) {
    this.#dir = dir;
    this.#bytesMax = bytesMax;
  }

  async load(): Promise<void> {
    const names = (await ifPresent(readdir(this.#dir))) ?? [];
    const found: { readonly entry: CacheEntry; readonly usedMs: number }[] = [];
    for (const name of names) {
      if (name.endsWith('.tmp')) await rm(join(this.#dir, name), { force: true });
      if (!name.endsWith('.json')) continue;
      const entry = readEntry(await readFile(join(this.#dir, name), 'utf8'));
      const stats = entry && (await ifPresent(stat(this.#archive(entry.id))));
      if (entry !== undefined && stats !== undefined) found.push({ entry, usedMs: stats.mtimeMs });
    }
    found.sort((a, b) => a.usedMs - b.usedMs);
    for (const { entry } of found) this.#entries.set(entry.id, entry);
  }

  find(keys: readonly string[], paths: readonly string[]): { readonly key: string } | undefined {
    return this.#lookUp(keys, versionOf(paths));
  }

  async restore(
    key: string,
    paths: readonly string[],
    workspace: string,
    signal?: AbortSignal,
  ): Promise<void> {
    const entry = this.#entries.get(idOf(key, versionOf(paths)));
    if (entry === undefined) throw new AppError('NOT_FOUND', `There is no cache '${key}'`);
    const archive = this.#archive(entry.id);
    this.#entries.delete(entry.id);
    this.#entries.set(entry.id, entry);
    const now = new Date();
    await utimes(archive, now, now).catch((error: unknown) => {
      throw storageError('restoring the cache', error);
    });
    await mustStayInside(archive, workspace, signal);
    await tar(['-xf', archive, '-P', '-C', workspace], signal);
  }

  async save(request: Parameters<CacheStore['save']>[0]): Promise<boolean> {
    mustCacheKey(request.key);
    const version = versionOf(request.paths);
    const id = idOf(request.key, version);
    if (this.#entries.has(id)) return false;
    const temporary = join(this.#dir, `${randomUUID()}.tmp`);
    const list = `${temporary}.list.tmp`;
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 });
      await writeFile(list, request.files.map((file) => `${file}\0`).join(''), { mode: 0o600 });
      await tar(
        ['-cf', temporary, '-P', '-C', request.workspace, '--null', '-T', list],
        request.signal,
      );
      const { size } = await stat(temporary);
      if (size > this.#bytesMax) {
        throw new AppError('RESULT_TOO_LARGE', `Caches have at most ${this.#bytesMax} bytes`);
      }
      await this.#makeSpace(size);
      const createdAt = new Date().toISOString();
      const entry: CacheEntry = { id, key: request.key, version, size, createdAt };
      await rename(temporary, this.#archive(id));
      await writeFileAtomic(join(this.#dir, `${id}.json`), JSON.stringify(entry));
      this.#entries.set(id, entry);
      return true;
    } catch (error) {
      throw storageError('saving the cache', error);
    } finally {
      await rm(temporary, { force: true });
      await rm(list, { force: true });
    }
  }

  #lookUp(keys: readonly string[], version: string): CacheEntry | undefined {
    const candidates = [...this.#entries.values()]
      .filter((entry) => entry.version === version)
      .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    for (const key of keys) {
      const found =
        candidates.find((entry) => entry.key === key) ??
        candidates.find((entry) => entry.key.startsWith(key));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  async #makeSpace(bytes: number): Promise<void> {
    let total = bytes;
    for (const entry of this.#entries.values()) total += entry.size;
    for (const entry of this.#entries.values()) {
      if (total <= this.#bytesMax) return;
      total -= entry.size;
      this.#entries.delete(entry.id);
      await rm(join(this.#dir, `${entry.id}.json`), { force: true });
      await rm(this.#archive(entry.id), { force: true });
    }
  }

  #archive(id: string): string {
    return join(this.#dir, `${id}.tgz`);
  }
}

/** The archive is listed only where links lead out, which is rare: it has to be unpacked for that. */
async function mustStayInside(
  archive: string,
  workspace: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const links = await outwardLinks(workspace);
  if (links.length === 0) return;
  const name = nameLeadingOut(await tar(['-tf', archive, '-P'], signal), links);
  if (name === undefined) return;
  const text = `The cache holds '${name}', which a link leads out of the workspace`;
  throw new AppError('INVALID_VALUE', text, { field: 'path' });
}

function versionOf(paths: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(paths)).digest('hex');
}

function idOf(key: string, version: string): string {
  return createHash('sha256').update(`${version}\0${key}`).digest('hex');
}

function readEntry(text: string): CacheEntry | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isEntry(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isEntry(value: unknown): value is CacheEntry {
  if (typeof value !== 'object' || value === null) return false;
  const entry = value as Record<string, unknown>;
  const hasTexts = ['key', 'version', 'createdAt'].every((key) => typeof entry[key] === 'string');
  const isOwnId = /^[0-9a-f]{64}$/.test(String(entry['id']));
  return hasTexts && isOwnId && typeof entry['size'] === 'number';
}

/** The system's tar, which keeps links, modes and times; GNU's and BSD's alike. What it prints. */
async function tar(args: readonly string[], signal?: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const child = spawn('tar', ['--use-compress-program', COMPRESSION, ...args], {
    ...(signal === undefined ? {} : { signal }),
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
  });
  let message = '';
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    message = (message + text).slice(-MESSAGE_CHARACTERS_MAX);
  });
  child.once('error', (error) => {
    const isStopped = signal?.aborted === true;
    reject(
      isStopped
        ? new AppError('CANCELLED', 'tar was stopped')
        : new AppError('STORE_UNAVAILABLE', 'tar cannot be run', {}, error),
    );
  });
  child.once('close', (code) => {
    if (code === 0) resolve(output);
    else reject(new AppError('STORE_UNAVAILABLE', 'tar failed', {}, new Error(message)));
  });
  return await promise;
}
