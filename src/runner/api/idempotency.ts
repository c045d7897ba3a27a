import { createHash } from 'node:crypto';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { WorkflowRun } from '../model/run.ts';

const KEYS_MAX = 10_000;
const KEPT_MS = 24 * 60 * 60 * 1000;
const KEY = /^[\x21-\x7e]{1,255}$/;

/** What a request led to, and the headers that go with its answer. */
export type Started = { readonly run: WorkflowRun; readonly headers: readonly string[] };

/** A line of the file of keys. */
type KeyRecord = {
  readonly key: string;
  readonly bodyHash: string;
  readonly runId: string;
  readonly atMs: number;
};

/** Where keys outlive the process: appended to, read once. */
export interface KeyFile {
  append(record: object): Promise<void>;
  oldestFirst(): AsyncIterable<unknown>;
}

type RememberedAnswer = {
  readonly bodyHash: string;
  readonly atMs: number;
  /** The id of the run, once it exists. */
  readonly runId: Promise<string>;
};

/**
 * `Idempotency-Key`: of several requests with one key only the first starts a run, the others get that
 * run. Keys are remembered for 24 hours, the newest 10,000 of them, also across restarts. A request
 * that failed does not use its key up.
 */
export class IdempotencyKeys {
  readonly #clock: Clock;
  readonly #file: KeyFile;
  readonly #onLost: (error: unknown) => void;
  /** In order of age. */
  readonly #entries = new Map<string, RememberedAnswer>();

  private constructor(clock: Clock, file: KeyFile, onLost: (error: unknown) => void) {
    this.#clock = clock;
    this.#file = file;
    this.#onLost = onLost;
  }

  /** Reads the keys that are on disk. `onLost` is notified when a key could not be written. */
  static async open(
    clock: Clock,
    file: KeyFile,
    onLost: (error: unknown) => void,
  ): Promise<IdempotencyKeys> {
    const keys = new IdempotencyKeys(clock, file, onLost);
    for await (const record of file.oldestFirst()) {
      if (!isKeyRecord(record)) continue;
      const { key, bodyHash, atMs, runId } = record;
      keys.#remember(key, { bodyHash, atMs, runId: Promise.resolve(runId) });
    }
    return keys;
  }

  /**
   * The result of `begin` for the first request with `key`; for later ones what `known` makes of its
   * run, or `begin` again when that is undefined, the run being gone. Requests at the same time wait.
   * Errors: INVALID_REQUEST for a malformed key, IDEMPOTENCY_CONFLICT when it came with another body,
   * and those of `begin`.
   */
  async once(
    key: string,
    body: string,
    begin: () => Promise<Started>,
    known: (runId: string) => Started | undefined,
  ): Promise<Started> {
    if (!KEY.test(key)) {
      throw new AppError(
        'INVALID_REQUEST',
        'Idempotency-Key must be 1 to 255 printable characters',
        {
          field: 'Idempotency-Key',
        },
      );
    }
    const bodyHash = createHash('sha256').update(body).digest('base64url');
    this.#forgetOld();
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      if (entry.bodyHash !== bodyHash) {
        throw new AppError('IDEMPOTENCY_CONFLICT', 'the key was used with another body');
      }
      const replay = known(await entry.runId);
      if (replay !== undefined) return replay;
      if (this.#entries.get(key) === entry) this.#entries.delete(key);
      return this.once(key, body, begin, known);
    }
    return this.#first(key, bodyHash, begin);
  }

  async #first(key: string, bodyHash: string, begin: () => Promise<Started>): Promise<Started> {
    const atMs = this.#clock.nowMs();
    const work = begin();
    const runId = work.then(({ run }) => run.id);
    this.#remember(key, { bodyHash, atMs, runId });
    try {
      const started = await work;
      const record: KeyRecord = { key, bodyHash, runId: started.run.id, atMs };
      // The run exists: a key that cannot be kept must not make its answer a failure.
      await this.#file.append(record).catch(this.#onLost);
      return started;
    } catch (error) {
      runId.catch(ignoreReported);
      if (this.#entries.get(key)?.runId === runId) this.#entries.delete(key);
      throw error;
    }
  }

  #remember(key: string, entry: RememberedAnswer): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    this.#forgetOld();
  }

  #forgetOld(): void {
    const oldest = this.#clock.nowMs() - KEPT_MS;
    for (const [key, { atMs }] of this.#entries) {
      if (atMs >= oldest && this.#entries.size <= KEYS_MAX) return;
      this.#entries.delete(key);
    }
  }
}

function isKeyRecord(value: unknown): value is KeyRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { key, bodyHash, runId, atMs } = value as Readonly<Record<string, unknown>>;
  return (
    typeof key === 'string' &&
    typeof bodyHash === 'string' &&
    typeof runId === 'string' &&
    typeof atMs === 'number'
  );
}

function ignoreReported(): void {
  // The request that began the work notifies its failure.
}
