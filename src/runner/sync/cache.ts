import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { ProblemReporter } from '../model/ports.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { ifPresent, storageError } from '../storage/file-errors.ts';
import { keyOfEntry, objectOf, type HostCacheEntry, type SyncKind } from './cache-entry.ts';

/** A cache keeps the entries that changed last, up to these bounds, and says when it reached one. */
const ENTRIES_MAX = 20_000;
const BODY_CHARS_MAX = 128 * 1024 * 1024;
const FORMAT = 1;

export type CacheQuery = {
  readonly state?: string | undefined;
  /** ISO 8601: only what changed at that time or later. */
  readonly since?: string | undefined;
  readonly limit?: number | undefined;
};

/** Where the last pull ended; written after the entries, so that a crash costs a pull, never an entry. */
export type Cursor = {
  /** `owner/repo`: another repository begins anew. */
  readonly repository: string;
  readonly syncedAt?: string | undefined;
  /** Position in the host's list; what it means is the kind's own. */
  readonly position?: string | undefined;
  /** See page-memory.ts. */
  readonly pages?: Readonly<Record<string, unknown>> | undefined;
};

/** One mirrored list, in memory and on disk. */
export interface Cache {
  readonly kind: SyncKind;
  cursor(): Cursor;
  /** Newest updated first. */
  query(query: CacheQuery): readonly HostCacheEntry[];
  size(): number;
  /**
   * Puts entries in by their key. An older state never replaces a newer one, unless `isAuthoritative`
   * (a rewritten history). Returns how many changed.
   */
  merge(entries: readonly HostCacheEntry[], isAuthoritative?: boolean): number;
  /** Drops all entries but these. Returns how many went. */
  retain(keys: ReadonlySet<string>): number;
  remove(key: string): void;
  has(key: string): boolean;
  /** Forgets everything, and says so, when the repository is another one. */
  useRepository(repository: string): boolean;
  /**
   * Writes what changed, then the cursor. Errors: DISK_FULL, STORE_UNAVAILABLE; RESULT_TOO_LARGE, after
   * writing, when the oldest entries had to be left out. Cost: the whole list when an entry changed.
   */
  save(cursor?: Cursor): Promise<void>;
}

/** Reads the cache of `kind` in `directory`; an unreadable one is reported and begins anew. */
export async function openCache(
  directory: string,
  kind: SyncKind,
  report: ProblemReporter,
): Promise<Cache> {
  const entriesPath = join(directory, `${kind}.json`);
  const cursorPath = join(directory, `${kind}.cursor.json`);
  const entries = await readJson(entriesPath, report);
  const cursor = await readJson(cursorPath, report);
  const cache = new DiskCache(kind, entriesPath, cursorPath);
  if (isCacheFile(entries) && isCursor(cursor)) cache.load(entries.entries, cursor);
  return cache;
}

type CacheFile = { readonly format: number; readonly entries: readonly HostCacheEntry[] };

class DiskCache implements Cache {
  readonly kind: SyncKind;
  readonly #entriesPath: string;
  readonly #cursorPath: string;
  readonly #entries = new Map<string, HostCacheEntry>();
  #cursor: Cursor = { repository: '' };
  #isChanged = false;
  #leftOut = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(kind: SyncKind, entriesPath: string, cursorPath: string) {
    this.kind = kind;
    this.#entriesPath = entriesPath;
    this.#cursorPath = cursorPath;
  }

  load(entries: readonly HostCacheEntry[], cursor: Cursor): void {
    for (const entry of entries) this.#entries.set(keyOfEntry(entry), entry);
    this.#cursor = cursor;
  }

  cursor(): Cursor {
    return this.#cursor;
  }

  size(): number {
    return this.#entries.size;
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  query(query: CacheQuery): readonly HostCacheEntry[] {
    const { state, since, limit } = query;
    const found = [...this.#entries.values()].filter(
      (entry) =>
        (state === undefined || state === 'all' || entry.state === state) &&
        (since === undefined || entry.updatedAt >= since),
    );
    return found.sort(byNewest).slice(0, limit);
  }

  merge(entries: readonly HostCacheEntry[], isAuthoritative = false): number {
    let changed = 0;
    for (const entry of entries) {
      const key = keyOfEntry(entry);
      const known = this.#entries.get(key);
      const isOlder = known !== undefined && known.updatedAt > entry.updatedAt;
      if (isOlder && !isAuthoritative) continue;
      if (known !== undefined && JSON.stringify(known) === JSON.stringify(entry)) continue;
      this.#entries.set(key, entry);
      changed++;
    }
    if (changed > 0) this.#isChanged = true;
    return changed;
  }

  retain(keys: ReadonlySet<string>): number {
    let gone = 0;
    for (const key of this.#entries.keys()) {
      if (!keys.has(key) && this.#entries.delete(key)) gone++;
    }
    if (gone > 0) this.#isChanged = true;
    return gone;
  }

  remove(key: string): void {
    if (this.#entries.delete(key)) this.#isChanged = true;
  }

  useRepository(repository: string): boolean {
    if (this.#cursor.repository === repository) return false;
    this.#entries.clear();
    this.#isChanged = true;
    this.#cursor = { repository };
    return true;
  }

  save(cursor: Cursor = this.#cursor): Promise<void> {
    const mine = this.#turn.then(() => this.#write(cursor));
    this.#turn = mine.catch(() => undefined);
    return mine;
  }

  async #write(cursor: Cursor): Promise<void> {
    if (this.#isChanged) {
      this.#isChanged = false;
      this.#trim();
      const file: CacheFile = { format: FORMAT, entries: [...this.#entries.values()] };
      try {
        await writeFileAtomic(this.#entriesPath, JSON.stringify(file));
      } catch (error) {
        this.#isChanged = true;
        throw error;
      }
    }
    await writeFileAtomic(this.#cursorPath, JSON.stringify(cursor));
    this.#cursor = cursor;
    if (this.#leftOut > 0) {
      const leftOut = this.#leftOut;
      this.#leftOut = 0;
      throw new AppError(
        'RESULT_TOO_LARGE',
        `the cache of ${this.kind} is full: the ${leftOut} entries that changed longest ago were left out`,
        { limit: String(ENTRIES_MAX) },
      );
    }
  }

  #trim(): void {
    const sorted = [...this.#entries.values()].sort(byNewest);
    let bodyChars = 0;
    for (const [index, entry] of sorted.entries()) {
      bodyChars += entry.body.length;
      if (index < ENTRIES_MAX && bodyChars <= BODY_CHARS_MAX) continue;
      this.#entries.delete(keyOfEntry(entry));
      this.#leftOut++;
    }
  }
}

function byNewest(a: HostCacheEntry, b: HostCacheEntry): number {
  if (a.updatedAt !== b.updatedAt) return a.updatedAt < b.updatedAt ? 1 : -1;
  return (
    (b.number ?? b.id ?? 0) - (a.number ?? a.id ?? 0) || (keyOfEntry(a) < keyOfEntry(b) ? -1 : 1)
  );
}

async function readJson(path: string, report: ProblemReporter): Promise<unknown> {
  try {
    const text = await ifPresent(readFile(path, 'utf8'));
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch (error) {
    report('sync.cache_unreadable', storageError('reading a cache of the code host', error));
    return undefined;
  }
}

function isCacheFile(value: unknown): value is CacheFile {
  const file = objectOf(value);
  const entries = file?.['entries'];
  return (
    file?.['format'] === FORMAT &&
    Array.isArray(entries) &&
    entries.every((entry) => typeof objectOf(entry)?.['updatedAt'] === 'string')
  );
}

function isCursor(value: unknown): value is Cursor {
  return typeof objectOf(value)?.['repository'] === 'string';
}
