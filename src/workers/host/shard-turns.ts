import type { Clock } from '../../shared/time/clock.ts';
import type { ShardActor } from '../shard/shard-actor.ts';

/** Long work gets a slice at least this often, in slices, however many messages come. */
const LONG_WAIT_SLICES_MAX = 4;

export type TurnOptions = {
  readonly clock: Clock;
  readonly sliceMs: number;
  /** Gets the id under evaluation, for the memory of killers. */
  readonly mark: (requestId: number) => void;
  /** A shard got work. */
  readonly onWork: (actor: ShardActor) => void;
  /** A shard has had its part of a turn. */
  readonly onRan: (actor: ShardActor) => void;
};

/**
 * Whose turn it is among the shards of one worker: a line of those with short work and one of those with
 * long work. A turn takes one slice, which short work shares round robin and long work has for one shard.
 */
export class ShardTurns {
  readonly #options: TurnOptions;
  #short: ShardActor[] = [];
  readonly #long: ShardActor[] = [];
  #longRanAtMs = 0;

  constructor(options: TurnOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#short.length === 0 && this.#long.length === 0;
  }

  /** Whether long work has waited for its slice as long as it may. */
  get isLongOverdue(): boolean {
    if (this.#long.length === 0) return false;
    const { clock, sliceMs } = this.#options;
    return clock.monotonicMs() - this.#longRanAtMs >= sliceMs * LONG_WAIT_SLICES_MAX;
  }

  /** The shard has short jobs that can run now. O(1). */
  addShort(actor: ShardActor): void {
    if (actor.isScheduled) return;
    actor.isScheduled = true;
    this.#short.push(actor);
    this.#options.onWork(actor);
  }

  /** The shard has long ones. O(1). */
  addLong(actor: ShardActor): void {
    if (actor.isLongScheduled) return;
    actor.isLongScheduled = true;
    if (this.#long.length === 0) this.#longRanAtMs = this.#options.clock.monotonicMs();
    this.#long.push(actor);
    this.#options.onWork(actor);
  }

  /** Short work of all shards, round robin, for one slice in all. */
  runShort(): void {
    const { clock, sliceMs, mark, onRan } = this.#options;
    const endMs = clock.monotonicMs() + sliceMs;
    // The last one begun has some time as well.
    const lastEndMs = endMs + sliceMs / 2;
    // A shard that used its part goes behind those that had none.
    let share = sliceMs / Math.max(1, this.#short.length);
    let nowMs = endMs - sliceMs;
    while (this.#short.length > 0 && nowMs < endMs) {
      // Actors that become runnable meanwhile go behind these.
      const actors = this.#short;
      this.#short = [];
      let i = 0;
      for (; i < actors.length && nowMs < endMs; i++) {
        const actor = actors[i] as ShardActor; // below length
        actor.isScheduled = false;
        const hasMore = actor.runShort(Math.min(endMs, nowMs + share), lastEndMs, mark);
        if (hasMore) this.addShort(actor);
        onRan(actor);
        nowMs = clock.monotonicMs();
      }
      if (i < actors.length) this.#short = [...actors.slice(i), ...this.#short];
      share = sliceMs;
    }
  }

  /** One slice of the long work of one shard: they take turns. */
  runLong(): void {
    const actor = this.#long.shift();
    if (actor === undefined) return;
    const { clock, sliceMs, mark, onRan } = this.#options;
    actor.isLongScheduled = false;
    if (actor.runLong(clock.monotonicMs() + sliceMs, mark)) this.addLong(actor);
    this.#longRanAtMs = clock.monotonicMs();
    onRan(actor);
  }
}
