import type { ShardKey } from '../../model/relation-tuple.ts';
import { assert } from '../../shared/assert.ts';
import type { ShardWrite, WriteResult } from './write-group.ts';

/** A write that waits for its turn or its outcome. */
export type QueuedWrite = ShardWrite & {
  readonly deadlineMs: number;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (error: unknown) => void;
  /** Set once the caller was answered; a write that was not sent by then is dropped. */
  isSettled: boolean;
};

/** A caller that needs the shard for itself, for a transaction of its own. */
export type ExclusiveClaim = { readonly grant: () => void; isCancelled: boolean };

/**
 * Queue of the writes and claims that wait for one shard, in order of arrival. At most one party
 * holds the shard at a time.
 */
export class WriteQueue {
  readonly shard: ShardKey;
  /** Lane of its ordinary writes. */
  readonly homeLane: number;
  /** Lane in which it is listed or held, or was last. */
  lane: number;
  /** Held by a group in flight or by a granted claim. */
  isHeld = false;
  /** In its lane's list of shards with a write at the front of their queue. */
  isListed = false;
  // Both ends move: a plain array would shift all of it for each group.
  #items: (QueuedWrite | ExclusiveClaim)[] = [];
  #front = 0;

  constructor(shard: ShardKey, lane: number) {
    this.shard = shard;
    this.homeLane = lane;
    this.lane = lane;
  }

  get isEmpty(): boolean {
    return this.#front === this.#items.length;
  }

  enqueue(item: QueuedWrite | ExclusiveClaim): void {
    this.#items.push(item);
  }

  /** Removes the claim at the front, or returns undefined where a write or nothing is there. */
  dequeueClaim(): ExclusiveClaim | undefined {
    const item = this.#items[this.#front];
    if (item === undefined || !('grant' in item)) return undefined;
    this.#advance();
    return item;
  }

  /** The write at the front, or undefined where a claim or nothing is there. */
  peekWrite(): QueuedWrite | undefined {
    const item = this.#items[this.#front];
    return item === undefined || 'grant' in item ? undefined : item;
  }

  /** Removes the write at the front, or returns undefined where a claim or nothing is there. */
  dequeueWrite(): QueuedWrite | undefined {
    const item = this.#items[this.#front];
    if (item === undefined || 'grant' in item) return undefined;
    this.#advance();
    return item;
  }

  /** Every write that waits. */
  *writes(): Generator<QueuedWrite> {
    for (let i = this.#front; i < this.#items.length; i++) {
      const item = this.#items[i] as QueuedWrite | ExclusiveClaim;
      if (!('grant' in item)) yield item;
    }
  }

  #advance(): void {
    assert(this.#front < this.#items.length, 'an item to remove');
    this.#front++;
    if (this.#front === this.#items.length) {
      this.#items = [];
      this.#front = 0;
    } else if (this.#front >= 256 && this.#front * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#front);
      this.#front = 0;
    }
  }
}
