import type { ShardKey } from '../../model/relation-tuple.ts';
import { slotOfShard } from '../../protocol/shard-routing.ts';
import type { WorkerSlot } from '../slot/worker-slot.ts';
import type { ReplicatedShards } from './replicated-shards.ts';
import type { ShardQueues } from './shard-queues.ts';

/** Finds the slots that must hear of the changes of a shard: its owner's, and those of its replicas. */
export class ShardHolders {
  /** Whose hosts may hold shards: those of the workers, and that of this thread where there is one. */
  readonly all: readonly WorkerSlot[];
  readonly #workers: readonly WorkerSlot[];
  readonly #queues: ShardQueues;
  readonly #replicated: ReplicatedShards;

  /** `workers` are the first of `all`. */
  constructor(
    all: readonly WorkerSlot[],
    workers: readonly WorkerSlot[],
    queues: ShardQueues,
    replicated: ReplicatedShards,
  ) {
    this.all = all;
    this.#workers = workers;
    this.#queues = queues;
    this.#replicated = replicated;
  }

  ownerOf(shard: ShardKey): WorkerSlot {
    return this.#workers[slotOfShard(shard, this.#workers.length)] as WorkerSlot; // below length
  }

  /** The slots whose workers answer for a shard. */
  of(shard: ShardKey): readonly WorkerSlot[] {
    const owner = this.ownerOf(shard);
    if (this.#replicated.isEmpty) return [owner];
    const queue = this.#queues.peek(shard);
    const slots = queue && this.#replicated.slotsOf(queue);
    if (slots === null || slots === undefined) return [owner];
    return this.all.filter(({ index }) => slots.includes(index));
  }
}
