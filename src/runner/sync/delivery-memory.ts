import { join } from 'node:path';
import type { ProblemReporter } from '../model/ports.ts';
import { openJsonlFile, type JsonlFile } from '../storage/jsonl-file.ts';
import { objectOf } from './cache-entry.ts';

const HOUR_MS = 3_600_000;
/** A delivery id is remembered this long, and at most so many are. */
const ID_KEPT_MS = 7 * 24 * HOUR_MS;
const IDS_MAX = 10_000;
/** The signature's digest is what a replay under a new id has in common with the original. */
const DIGEST_KEPT_MS = 24 * HOUR_MS;
const DIGESTS_MAX = 50_000;
/** About 25,000 deliveries; a file set aside holds the rest of what must be remembered. */
const ROTATE_BYTES = 4 * 1024 * 1024;

/** Which deliveries were accepted; survives restarts. */
export interface DeliveryMemory {
  /**
   * Remembers the delivery unless its id or its signature is known; false when it is. On disk when the
   * promise resolves. Errors: DISK_FULL, STORE_UNAVAILABLE: then it is not remembered.
   */
  admit(id: string, digest: string, nowMs: number): Promise<boolean>;
  /** Forgets a delivery that could not be handled after all, so that the sender may repeat it. */
  forget(id: string, digest: string, nowMs: number): Promise<void>;
  close(): Promise<void>;
}

type Note = { readonly id: string; readonly digest: string; readonly atMs: number };

/** Opens `deliveries.jsonl` in `directory`. Cost: reads what is younger than a week. */
export async function openDeliveryMemory(
  directory: string,
  nowMs: number,
  report: ProblemReporter,
): Promise<DeliveryMemory> {
  const file = await openJsonlFile({
    path: join(directory, 'deliveries.jsonl'),
    rotateBytes: ROTATE_BYTES,
    keepFiles: 4,
    report,
  });
  const memory = new FileDeliveryMemory(file);
  for await (const record of file.oldestFirst()) memory.recall(record, nowMs);
  return memory;
}

class FileDeliveryMemory implements DeliveryMemory {
  readonly #file: JsonlFile;
  // Maps keep the order of insertion: the oldest come first.
  readonly #ids = new Map<string, number>();
  readonly #digests = new Map<string, number>();

  constructor(file: JsonlFile) {
    this.#file = file;
  }

  recall(record: unknown, nowMs: number): void {
    const note = noteOf(record);
    if (note === undefined) return;
    if (objectOf(record)?.['forgotten'] === true) this.#drop(note);
    else this.#put(note);
    this.#expire(nowMs);
  }

  async admit(id: string, digest: string, nowMs: number): Promise<boolean> {
    this.#expire(nowMs);
    if (this.#ids.has(id) || this.#digests.has(digest)) return false;
    const note: Note = { id, digest, atMs: nowMs };
    // Before the write, so that the same delivery arriving meanwhile is seen.
    this.#put(note);
    try {
      await this.#file.append(note);
    } catch (error) {
      this.#drop(note);
      throw error;
    }
    return true;
  }

  async forget(id: string, digest: string, nowMs: number): Promise<void> {
    const note: Note = { id, digest, atMs: nowMs };
    this.#drop(note);
    await this.#file.append({ ...note, forgotten: true });
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #put({ id, digest, atMs }: Note): void {
    this.#ids.set(id, atMs);
    this.#digests.set(digest, atMs);
  }

  #drop({ id, digest }: Note): void {
    this.#ids.delete(id);
    this.#digests.delete(digest);
  }

  #expire(nowMs: number): void {
    dropOldest(this.#ids, nowMs - ID_KEPT_MS, IDS_MAX);
    dropOldest(this.#digests, nowMs - DIGEST_KEPT_MS, DIGESTS_MAX);
  }
}

function dropOldest(notes: Map<string, number>, beforeMs: number, max: number): void {
  for (const [key, atMs] of notes) {
    if (atMs >= beforeMs && notes.size < max) return;
    notes.delete(key);
  }
}

function noteOf(record: unknown): Note | undefined {
  const { id, digest, atMs } = (objectOf(record) ?? {}) as Partial<Record<keyof Note, unknown>>;
  if (typeof id !== 'string' || typeof digest !== 'string') return undefined;
  return typeof atMs === 'number' ? { id, digest, atMs } : undefined;
}
