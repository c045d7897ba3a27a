import type { IndexDifference } from '../../cache/index-audit.ts';
import type { FsckStats } from '../../protocol/messages.ts';
import type { Clock } from '../../shared/clock.ts';
import type { ShardSource } from './ports.ts';
import type { ShardActor } from './shard-actor.ts';
import { checkShard } from './shard-fsck.ts';

/** How often it looks whether a shard is due. */
const LOOK_MS = 1_000;
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
  readonly loaded: () => readonly ShardActor[];
  /** What to do about a difference: tell of it, and load the index again. */
  readonly onDifference: (actor: ShardActor, difference: IndexDifference) => void;
  readonly onUnfinished: (actor: ShardActor, error: unknown) => void;
};

/** Shards that somebody wants to see checked, all from now on. */
type Demand = { readonly pending: Map<ShardActor, number>; readonly resolve: () => void };

/**
 * Which index of a worker is checked next, and how fast: one after another, each once in an interval, at a bounded rate; or all
 * at once on demand. Each process checks its own memory, so several instances need no agreement about it.
 */
export class IndexFsck {
  readonly #options: IndexFsckOptions;
  readonly #checked = new WeakMap<
    ShardActor,
    { readonly generation: number; readonly atMs: number }
  >();
  #demands: Demand[] = [];
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
    void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#wake?.();
    for (const { resolve } of this.#demands.splice(0)) resolve();
  }

  /** Resolves when every index that is loaded now was checked, from now on and without pauses, or has gone. */
  checkAll(): Promise<void> {
    return new Promise((resolve) => {
      const pending = new Map(this.#options.loaded().map((actor) => [actor, ATTEMPTS_MAX]));
      this.#demands.push({ pending, resolve });
      this.#wake?.();
    });
  }

  /** Counts since the last call, and how long ago the index was checked or loaded that waits longest. */
  takeStats(): FsckStats {
    const nowMs = this.#options.clock.monotonicMs();
    let ageMs = 0;
    for (const actor of this.#options.loaded()) {
      ageMs = Math.max(ageMs, nowMs - this.#checkedAtMs(actor));
    }
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
      if (actor === null) await this.#pause(LOOK_MS);
      else await this.#check(actor);
    }
  }

  async #check(actor: ShardActor): Promise<void> {
    // A demand that comes from now on wants to see this one checked again.
    const demands = [...this.#demands];
    const { clock, source } = this.#options;
    const result = await checkShard(actor, { clock, source, pace: (rows) => this.#pace(rows) });
    if (this.#isStopped) return;
    this.#rows += result.rows;
    const isChecked = result.kind === 'clean' || result.kind === 'different';
    if (isChecked) this.#shards += 1;
    if (result.kind === 'different') {
      this.#differences += 1;
      this.#options.onDifference(actor, result.difference);
    }
    const { generation } = actor;
    const soonMs = Math.max(0, this.#options.intervalMs - RETRY_MS);
    const beforeMs = result.kind === 'unfinished' ? soonMs : 0;
    this.#checked.set(actor, { generation, atMs: clock.monotonicMs() - beforeMs });
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
    const { rowsPerSecond, intervalMs, clock, loaded } = this.#options;
    if (rowsPerSecond === 0) return null;
    let due: ShardActor | null = null;
    let oldestMs = clock.monotonicMs() - intervalMs;
    for (const actor of loaded()) {
      const atMs = this.#checkedAtMs(actor);
      if (atMs > oldestMs) continue;
      due = actor;
      oldestMs = atMs;
    }
    return due;
  }

  /** A fresh index is what was stored. */
  #checkedAtMs(actor: ShardActor): number {
    const known = this.#checked.get(actor);
    if (known !== undefined && known.generation === actor.generation) return known.atMs;
    const { generation } = actor;
    const atMs = this.#options.clock.monotonicMs();
    this.#checked.set(actor, { generation, atMs });
    return atMs;
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
