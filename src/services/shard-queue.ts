import type { ShardKey } from '../model/relation-tuple.ts';
import { assert } from '../shared/assert.ts';
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
export type Gate = { readonly grant: () => void; isCancelled: boolean };

/** What waits for one shard, in order of arrival. At most one party holds the shard at a time. */
export class ShardQueue {
  readonly shard: ShardKey;
  /** Of its ordinary writes. */
  readonly homeLane: number;
  /** Where it is listed or held, or was last. */
  lane: number;
  /** Held by a group in flight or by a granted gate. */
  isHeld = false;
  /** In its lane's list of shards with writes at their head. */
  isListed = false;
  // Both ends move: a plain array would shift all of it for each group.
  #items: (QueuedWrite | Gate)[] = [];
  #head = 0;

  constructor(shard: ShardKey, lane: number) {
    this.shard = shard;
    this.homeLane = lane;
    this.lane = lane;
  }

  get isEmpty(): boolean {
    return this.#head === this.#items.length;
  }

  push(item: QueuedWrite | Gate): void {
    this.#items.push(item);
  }

  /** Removes the gate at the head, or undefined where a write or nothing is there. */
  takeGate(): Gate | undefined {
    const item = this.#items[this.#head];
    if (item === undefined || !('grant' in item)) return undefined;
    this.#advance();
    return item;
  }

  /** The write at the head, or undefined where a gate or nothing is there. */
  peekWrite(): QueuedWrite | undefined {
    const item = this.#items[this.#head];
    return item === undefined || 'grant' in item ? undefined : item;
  }

  /** Removes the write at the head, or undefined where a gate or nothing is there. */
  takeWrite(): QueuedWrite | undefined {
    const item = this.#items[this.#head];
    if (item === undefined || 'grant' in item) return undefined;
    this.#advance();
    return item;
  }

  /** Every write that waits. */
  *writes(): Generator<QueuedWrite> {
    for (let i = this.#head; i < this.#items.length; i++) {
      const item = this.#items[i] as QueuedWrite | Gate;
      if (!('grant' in item)) yield item;
    }
  }

  #advance(): void {
    assert(this.#head < this.#items.length, 'an item to remove');
    this.#head++;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head >= 256 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }
}
