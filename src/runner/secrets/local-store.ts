import { createHmac, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { newSalt, type MasterKey, type StoreKeys } from './key-source.ts';
import { environmentKey } from './names.ts';
import { readPlainFile } from './plain-file.ts';
import { ENTRIES_PER_ENVIRONMENT_MAX, ENVIRONMENTS_MAX } from './secret-limits.ts';
import { openValue, sealValue } from './value-cipher.ts';

/** `local`: set here. `vault`: the mirror of vault.json. `host`: a name alone; the host gives no values back. */
export type LocalLayer = 'local' | 'vault' | 'host';
export type LocalEntry = {
  readonly environment: string;
  readonly name: string;
  readonly backend: LocalLayer;
  /** Sealed; '' for `host`. */
  readonly value: string;
  /** ISO 8601. */
  readonly updatedAt: string;
};
/** What the mirror knows of its last pull. */
export type MirrorState = {
  readonly pulledAt: string | null;
  /** SHA-256 of vault.json then; null when there was none. */
  readonly vaultDigest: string | null;
};

type StoredFile = {
  readonly version: 1;
  readonly salt: string;
  readonly mirror: MirrorState;
  readonly entries: readonly LocalEntry[];
  readonly mac: string;
};

const FILE_NAME = 'secrets.json';

/**
 * `.runner/secrets.json`: values under AES-256-GCM, bound to environment and name, and a MAC over the
 * whole file, so that no entry can be added, dropped, moved or swapped for an older one within it. A file
 * that does not verify makes the store unavailable and is never overwritten.
 * Everything is in memory once read: the process that holds `.runner` is the only writer.
 */
export class LocalStore {
  readonly path: string;
  readonly #masterKey: MasterKey;
  #opened: Promise<void> | undefined;
  #salt: Buffer | undefined;
  #keys: StoreKeys | undefined;
  #entries = new Map<string, LocalEntry>();
  #mirror: MirrorState = { pulledAt: null, vaultDigest: null };

  constructor(stateDir: string, masterKey: MasterKey) {
    this.path = join(stateDir, FILE_NAME);
    this.#masterKey = masterKey;
  }

  /** Reads and verifies the file, once. Errors: BACKEND_UNAVAILABLE; the next call tries again. */
  async open(): Promise<void> {
    this.#opened ??= this.#read();
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  get mirror(): MirrorState {
    return this.#mirror;
  }

  entries(): readonly LocalEntry[] {
    return [...this.#entries.values()];
  }

  entry(environment: string, name: string, backend: LocalLayer): LocalEntry | undefined {
    return this.#entries.get(entryKey(environment, name, backend));
  }

  /** The value of an entry of `local` or `vault`. Errors: BACKEND_UNAVAILABLE. */
  valueOf(entry: LocalEntry): string {
    if (this.#keys === undefined) throw unavailable('the local store is not open');
    return openValue(this.#keys.values, contextOf(entry), entry.value);
  }

  /** 8 hexadecimal digits that change with the value and say nothing without the key. Undefined before there is a key. */
  fingerprint(environment: string, name: string, value: string): string | undefined {
    if (this.#keys === undefined) return undefined;
    const hmac = createHmac('sha256', this.#keys.fingerprint);
    return hmac
      .update(`${contextOf({ environment, name })}\0${value}`)
      .digest('hex')
      .slice(0, 8);
  }

  /** Makes the key if there is none, so that `fingerprint` works. Errors: BACKEND_UNAVAILABLE. */
  async ready(): Promise<void> {
    await this.open();
    if (this.#keys !== undefined) return;
    const salt = newSalt();
    this.#keys = await this.#masterKey.keysFor(salt, true);
    this.#salt = salt;
  }

  /**
   * Applies all changes or none, and writes the file.
   * Errors: BACKEND_UNAVAILABLE, RESULT_TOO_LARGE, DISK_FULL, STORE_UNAVAILABLE.
   */
  async change(
    puts: readonly (Omit<LocalEntry, 'value'> & { readonly value: string })[],
    removals: readonly LocalEntry[] = [],
    mirror: MirrorState = this.#mirror,
  ): Promise<void> {
    await this.ready();
    const { keys, salt } = this.#secured();
    const next = new Map(this.#entries);
    for (const removal of removals) {
      next.delete(entryKey(removal.environment, removal.name, removal.backend));
    }
    for (const put of puts) {
      const value = put.backend === 'host' ? '' : sealValue(keys.values, contextOf(put), put.value);
      next.set(entryKey(put.environment, put.name, put.backend), { ...put, value });
    }
    assertWithinLimits(next.values());
    const entries = [...next.values()].sort(byKey);
    const content = { version: 1, salt: salt.toString('base64'), mirror, entries } as const;
    await writeFileAtomic(
      this.path,
      fileText({ ...content, mac: macOf(keys.file, content) }),
      0o600,
    );
    this.#entries = next;
    this.#mirror = mirror;
  }

  async #read(): Promise<void> {
    const text = await readPlainFile(this.path, 'local');
    if (text === undefined) return;
    const file = parseFile(text);
    const salt = Buffer.from(file.salt, 'base64');
    const keys = await this.#masterKey.keysFor(salt, false);
    const { mac, ...content } = file;
    const expected = Buffer.from(macOf(keys.file, content));
    const given = Buffer.from(mac);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      throw unavailable('secrets.json does not verify: it was changed, or the key is another');
    }
    this.#salt = salt;
    this.#keys = keys;
    this.#mirror = file.mirror;
    this.#entries = new Map(
      file.entries.map((entry) => [entryKey(entry.environment, entry.name, entry.backend), entry]),
    );
  }

  #secured(): { readonly keys: StoreKeys; readonly salt: Buffer } {
    if (this.#keys === undefined || this.#salt === undefined) {
      throw unavailable('the local store is not open');
    }
    return { keys: this.#keys, salt: this.#salt };
  }
}

function entryKey(environment: string, name: string, backend: LocalLayer): string {
  return `${environmentKey(environment)}:${name}:${backend}`;
}

function contextOf(entry: { readonly environment: string; readonly name: string }): string {
  return `${environmentKey(entry.environment)}:${entry.name}`;
}

function byKey(left: LocalEntry, right: LocalEntry): number {
  const [leftKey, rightKey] = [left, right].map((entry) =>
    entryKey(entry.environment, entry.name, entry.backend),
  ) as [string, string];
  return leftKey < rightKey ? -1 : leftKey > rightKey ? 1 : 0;
}

function fileText(file: StoredFile): string {
  return `${JSON.stringify(file, null, 2)}\n`;
}

function macOf(key: Buffer, content: Omit<StoredFile, 'mac'>): string {
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex');
}

/** Only text that this program writes byte by byte is taken, so that the MAC covers every byte. */
function parseFile(text: string): StoredFile {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw unavailable('secrets.json is no JSON', error);
  }
  if (!isStoredFile(parsed)) throw unavailable('secrets.json has another form than version 1');
  if (fileText(parsed) !== text) throw unavailable('secrets.json was changed by another program');
  return parsed;
}

function isStoredFile(parsed: unknown): parsed is StoredFile {
  if (typeof parsed !== 'object' || parsed === null) return false;
  const file = parsed as Partial<Record<keyof StoredFile, unknown>>;
  return (
    file.version === 1 &&
    typeof file.salt === 'string' &&
    typeof file.mac === 'string' &&
    typeof file.mirror === 'object' &&
    file.mirror !== null &&
    Array.isArray(file.entries) &&
    file.entries.every(isEntry)
  );
}

function isEntry(value: unknown): value is LocalEntry {
  if (typeof value !== 'object' || value === null) return false;
  const entry = value as Partial<Record<keyof LocalEntry, unknown>>;
  return (
    typeof entry.environment === 'string' &&
    typeof entry.name === 'string' &&
    (entry.backend === 'local' || entry.backend === 'vault' || entry.backend === 'host') &&
    typeof entry.value === 'string' &&
    typeof entry.updatedAt === 'string'
  );
}

function assertWithinLimits(entries: Iterable<LocalEntry>): void {
  const counts = new Map<string, number>();
  for (const { environment, backend } of entries) {
    const key = `${backend}:${environmentKey(environment)}`;
    const count = (counts.get(key) ?? 0) + 1;
    if (count > ENTRIES_PER_ENVIRONMENT_MAX) {
      throw new AppError(
        'RESULT_TOO_LARGE',
        `an environment has at most ${ENTRIES_PER_ENVIRONMENT_MAX} secrets of one backend`,
        { field: 'name' },
      );
    }
    counts.set(key, count);
  }
  if (counts.size > ENVIRONMENTS_MAX) {
    throw new AppError('RESULT_TOO_LARGE', `there are at most ${ENVIRONMENTS_MAX} environments`, {
      field: 'environment',
    });
  }
}

function unavailable(text: string, cause?: unknown): AppError {
  return new AppError('BACKEND_UNAVAILABLE', text, { backend: 'local' }, cause);
}
