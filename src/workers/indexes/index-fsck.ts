import type { IndexDifference } from '../../cache/index-audit.ts';
import type { FsckStats } from '../../protocol/messages.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { ShardSource } from '../shard/ports.ts';
import type { ShardActor } from '../shard/shard-actor.ts';
import { checkShard } from './shard-fsck.ts';

/** How often shards are checked for being due. */
const POLL_MS = 1_000;
/** A demand tries a shard again that could not be checked to the end. */
const ATTEMPTS_MAX = 3;
/** After a check that could not be finished the store is left alone for a while, and the shard for longer. */
const PAUSE_MS = 1_000;
const RETRY_MS = 60_000;

export type IndexFsckOptions = {
  readonly clock: Clock;
  readonly source: ShardSource;
  /** Rows compared a second in the background; 0 does nothing but what is demanded. */
  readonly rowsPerSecond: number;
  /** How long after its load, or its last check, a shard is due. */
  readonly intervalMs: number;
  /** How long a slice of a comparison may be; 1 ms if absent. */
  readonly sliceMs?: number | undefined;
  /** Called with an error that must not occur. */
  readonly onFailed: (error: unknown) => void;
  /** Handles a difference: reports it, and loads the index again. */
  readonly onDifference: (actor: ShardActor, difference: IndexDifference) => void;
  readonly onUnfinished: (actor: ShardActor, error: unknown) => void;
};

/** A life of an index, and since when it counts as checked: a fresh one is what was stored. */
type Checked = { readonly generation: number; readonly atMs: number };

/** Shards to be checked by request, all from now on. */
type FsckDemand = { readonly pending: Map<ShardActor, number>; readonly resolve: () => void };

/**
 * Which index of a worker is checked next, and how fast: one after another, each once in an interval, at a bounded rate; or all
 * at once on demand. Each process checks its own memory, so several instances need no agreement about it.
 */
export class IndexFsck {
  readonly #options: IndexFsckOptions;
  /** Loaded ones, by when they were loaded or checked: the first waits longest. */
  readonly #line = new Map<ShardActor, Checked>();
  /** Shards whose check could not be finished, by when they are tried again. */
  readonly #later = new Map<ShardActor, Checked & { readonly retryAtMs: number }>();
  #demands: FsckDemand[] = [];
  #shards = 0;
  #rows = 0;
  #differences = 0;
  #unfinished = 0;
  #freeAtMs = 0;
  #wake: (() => void) | null = null;
  #isStopped = false;

  constructor(options: IndexFsckOptions) {
    this.#options = options;
  }

  start(): void {
    this.#run().catch(this.#options.onFailed);
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake?.();
    for (const { resolve } of this.#demands.splice(0)) resolve();
  }

  /** Something became of a shard: perhaps its index is there now, or another one, or gone. O(1). */
  settled(actor: ShardActor): void {
    const { generation } = actor;
    const known = this.#line.get(actor) ?? this.#later.get(actor);
    if (actor.isLoaded && known?.generation === generation) return;
    this.#line.delete(actor);
    this.#later.delete(actor);
    if (!actor.isLoaded) return;
    this.#line.set(actor, { generation, atMs: this.#options.clock.monotonicMs() });
  }

  /** Resolves when every index that is loaded now was checked, from now on and without pauses, or has gone. */
  checkAll(): Promise<void> {
    return new Promise((resolve) => {
      const all = [...this.#line.keys(), ...this.#later.keys()];
      const pending = new Map(all.map((actor) => [actor, ATTEMPTS_MAX]));
      this.#demands.push({ pending, resolve });
      this.#wake?.();
    });
  }

  /** Counts since the last call, and how long ago the index was checked or loaded that waits longest. */
  takeStats(): FsckStats {
    const nowMs = this.#options.clock.monotonicMs();
    const oldest = [this.#line, this.#later].map((all) => all.values().next().value?.atMs ?? nowMs);
    const ageMs = nowMs - Math.min(...oldest);
    const stats = {
      shards: this.#shards,
      rows: this.#rows,
      differences: this.#differences,
      unfinished: this.#unfinished,
      ageMs,
    };
    this.#shards = 0;
    this.#rows = 0;
    this.#differences = 0;
    this.#unfinished = 0;
    return stats;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      this.#settleDemands();
      const actor = this.#demanded() ?? this.#due();
      if (actor === null) await this.#pause(POLL_MS);
      else await this.#check(actor);
    }
  }

  async #check(actor: ShardActor): Promise<void> {
    // A demand that comes from now on wants to see this one checked again.
    const demands = [...this.#demands];
    const { clock, source, sliceMs } = this.#options;
    const pace = (rows: number): Promise<void> => this.#pace(rows);
    const result = await checkShard(actor, { clock, source, sliceMs, pace });
    if (this.#isStopped) return;
    this.#rows += result.rows;
    const isChecked = result.kind === 'clean' || result.kind === 'different';
    if (isChecked) this.#shards += 1;
    if (result.kind === 'different') {
      this.#differences += 1;
      this.#options.onDifference(actor, result.difference);
    }
    this.#putBack(actor, result.kind === 'unfinished');
    for (const { pending } of demands) {
      const left = (pending.get(actor) ?? 1) - 1;
      if (isChecked || left <= 0) pending.delete(actor);
      else pending.set(actor, left);
    }
    if (result.kind !== 'unfinished') return;
    this.#unfinished += 1;
    this.#options.onUnfinished(actor, result.error);
    await this.#pause(PAUSE_MS);
  }

  #settleDemands(): void {
    for (const { pending, resolve } of this.#demands) {
      for (const actor of pending.keys()) if (!actor.isLoaded) pending.delete(actor);
      if (pending.size === 0) resolve();
    }
    this.#demands = this.#demands.filter(({ pending }) => pending.size > 0);
  }

  #demanded(): ShardActor | null {
    return this.#demands[0]?.pending.keys().next().value ?? null;
  }

  #due(): ShardActor | null {
    const { rowsPerSecond, intervalMs, clock } = this.#options;
    if (rowsPerSecond === 0) return null;
    const nowMs = clock.monotonicMs();
    const [later] = this.#later;
    if (later !== undefined && later[1].retryAtMs <= nowMs) return later[0];
    const [first] = this.#line;
    return first !== undefined && first[1].atMs + intervalMs <= nowMs ? first[0] : null;
  }

  /** After its check, to the end of its line. */
  #putBack(actor: ShardActor, isUnfinished: boolean): void {
    const known = this.#line.get(actor) ?? this.#later.get(actor);
    // It went, or was loaded anew meanwhile.
    if (known?.generation !== actor.generation) return;
    this.#line.delete(actor);
    this.#later.delete(actor);
    const nowMs = this.#options.clock.monotonicMs();
    if (isUnfinished) this.#later.set(actor, { ...known, retryAtMs: nowMs + RETRY_MS });
    else this.#line.set(actor, { ...known, atMs: nowMs });
  }

  async #pace(rows: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    const { rowsPerSecond, clock } = this.#options;
    if (this.#demands.length > 0 || rowsPerSecond === 0) return;
    const nowMs = clock.monotonicMs();
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs) + (rows * 1_000) / rowsPerSecond;
    if (this.#freeAtMs > nowMs) await this.#pause(this.#freeAtMs - nowMs);
  }

  /** Ends early when a demand comes. */
  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }
}
