import type { ShardQueue } from '../queues/shard-queue.ts';

/** Samples in a row with enough Checks before a shard is busy. */
const SAMPLES_MIN = 3;
const POSTPONED_SAMPLES_FIRST = 300;
const POSTPONED_SAMPLES_MAX = 6_000;

type Streak = { sample: number; length: number };
type Postponement = { untilSample: number; samples: number };

/** Which shards are asked single Checks all the time. What is not costs an addition a Check, and nothing a sample. */
export class BusyChecks {
  readonly #checksMin: number;
  /** Shards with enough Checks in this sample. */
  #reached: ShardQueue[] = [];
  readonly #streaks = new Map<ShardQueue, Streak>();
  readonly #postponed = new WeakMap<ShardQueue, Postponement>();
  #sample = 1;

  /** `checksMin`: of one sample. */
  constructor(checksMin: number) {
    this.#checksMin = checksMin;
  }

  /** Hot. */
  count(owner: ShardQueue): void {
    if (owner.checksSample !== this.#sample) {
      owner.checksSample = this.#sample;
      owner.checks = 0;
    }
    owner.checks += 1;
    if (owner.checks === this.#checksMin) this.#reached.push(owner);
  }

  /** Ends a sample: the shards that have been busy long enough. O(those with enough Checks). */
  sample(): readonly ShardQueue[] {
    const now = this.#sample;
    this.#sample += 1;
    const reached = this.#reached;
    this.#reached = [];
    for (const owner of reached) {
      const streak = this.#streaks.get(owner);
      if (streak?.sample === now - 1) {
        streak.sample = now;
        streak.length += 1;
      } else this.#streaks.set(owner, { sample: now, length: 1 });
    }
    for (const [owner, { sample }] of this.#streaks) {
      if (sample !== now) this.#streaks.delete(owner);
    }
    return reached.filter(
      (owner) =>
        (this.#streaks.get(owner)?.length ?? 0) >= SAMPLES_MIN &&
        (this.#postponed.get(owner)?.untilSample ?? 0) <= now,
    );
  }

  /** The shard is not to be taken for busy for a while: longer each time. */
  postpone(owner: ShardQueue): void {
    const samples = Math.min(
      POSTPONED_SAMPLES_MAX,
      (this.#postponed.get(owner)?.samples ?? POSTPONED_SAMPLES_FIRST / 2) * 2,
    );
    this.#postponed.set(owner, { untilSample: this.#sample + samples, samples });
  }
}
