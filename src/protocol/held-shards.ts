import type { ShardKey } from '../model/relation-tuple.ts';
import { shardHash } from './shard-routing.ts';

/** Slots of the table of one worker: 256 KiB. Shards that share one cost a needless message, no more. */
const COUNTERS = 131_072;

/** Creates the memory in which one worker publishes the shards that it holds, for the gateway's thread. */
export function createHeldMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(COUNTERS * Uint16Array.BYTES_PER_ELEMENT);
}

/**
 * The shards that a worker holds, or begins to load, counted by their hash. It may count a shard as held that is not,
 * but never the other way round. A shard is added before its snapshot is requested: a hint that came before, and was
 * dropped, is of a commit that the snapshot sees.
 */
export class HeldShards {
  readonly #counts: Uint16Array;

  constructor(memory: SharedArrayBuffer) {
    this.#counts = new Uint16Array(memory);
  }

  /** Called by a worker that has just been started instead of a lost one: nothing is held any more. */
  clear(): void {
    for (let counter = 0; counter < COUNTERS; counter++) Atomics.store(this.#counts, counter, 0);
  }

  add(shard: ShardKey): void {
    Atomics.add(this.#counts, counterOf(shardHash(shard)), 1);
  }

  remove(shard: ShardKey): void {
    Atomics.sub(this.#counts, counterOf(shardHash(shard)), 1);
  }

  /** Hot. `hash` is the shard's. */
  mayHold(hash: number): boolean {
    return Atomics.load(this.#counts, counterOf(hash)) !== 0;
  }
}

/** The tables of all workers of an instance, as the gateway's thread asks them. */
export class HeldBySlots {
  readonly memories: readonly SharedArrayBuffer[];
  readonly #slots: readonly HeldShards[];

  constructor(slotCount: number) {
    this.memories = Array.from({ length: slotCount }, createHeldMemory);
    this.#slots = this.memories.map((memory) => new HeldShards(memory));
  }

  /** Hot: one hash and one load, no allocation. */
  mayHold(shard: ShardKey): boolean {
    const hash = shardHash(shard);
    // The slot that slotOfShard chooses.
    const slot = this.#slots[hash % this.#slots.length] as HeldShards;
    return slot.mayHold(hash);
  }
}

/** The upper 17 bits, which are as many as there are slots: the lower ones chose the worker. */
function counterOf(hash: number): number {
  return hash >>> 15;
}
