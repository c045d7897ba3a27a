import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { WriteQueue } from '../write-groups/write-queue.ts';

export type ShardLocksOptions = {
  /** Lanes of ordinary writes. */
  readonly lanes: number;
  /** Writes of more updates than this take one lane more, behind the others; absent if none. */
  readonly largeUpdatesMin?: number | undefined;
  /** Nobody waits longer than this for a shard. */
  readonly writeTimeoutMs: number;
  readonly nowMs: () => number;
  /**
   * Called when nobody holds the shard and a write is at the front of its queue: it is listed in
   * `queue.lane`.
   */
  readonly onReady: (queue: WriteQueue) => void;
};

/**
 * Holders and queues of the shards: one group or one exclusive caller at a time, in order of
 * arrival (W1).
 */
export class ShardLocks {
  readonly #options: ShardLocksOptions;
  readonly #queues = new Map<string, Map<string, WriteQueue>>();

  constructor(options: ShardLocksOptions) {
    this.#options = options;
  }

  /** The queue of a shard; made where nothing waits for it yet. */
  queueOf(shard: ShardKey): WriteQueue {
    let tenants = this.#queues.get(shard.projectId);
    if (tenants === undefined) this.#queues.set(shard.projectId, (tenants = new Map()));
    let queue = tenants.get(shard.tenantId);
    if (queue === undefined) {
      const key = { projectId: shard.projectId, tenantId: shard.tenantId };
      queue = new WriteQueue(key, laneOf(key, this.#options.lanes));
      tenants.set(shard.tenantId, queue);
    }
    return queue;
  }

  /** The queues of all shards that are held or waited for. */
  *queues(): Generator<WriteQueue> {
    for (const tenants of this.#queues.values()) yield* tenants.values();
  }

  /** Lets the front of a queue proceed where nobody holds the shard. */
  wake(queue: WriteQueue): void {
    if (queue.isHeld || queue.isListed) return;
    let claim = queue.dequeueClaim();
    while (claim?.isCancelled === true) claim = queue.dequeueClaim();
    if (claim !== undefined) {
      queue.isHeld = true;
      claim.grant();
      return;
    }
    if (queue.isEmpty) return this.#forget(queue.shard);
    queue.isListed = true;
    queue.lane = this.laneOfFront(queue);
    this.#options.onReady(queue);
  }

  /** The lane of the write at the front. */
  laneOfFront(queue: WriteQueue): number {
    const { lanes, largeUpdatesMin } = this.#options;
    const updates = queue.peekWrite()?.updates.length ?? 0;
    return largeUpdatesMin !== undefined && updates > largeUpdatesMin ? lanes : queue.homeLane;
  }

  /** Ends what `hold` or a group in flight had. */
  release(queue: WriteQueue): void {
    queue.isHeld = false;
    this.wake(queue);
  }

  /** Waits for the shard's turn and holds it. Errors: DEADLINE_EXCEEDED. */
  async hold(shard: ShardKey, deadlineMs: number): Promise<WriteQueue> {
    const queue = this.queueOf(shard);
    const { promise, resolve, reject } = Promise.withResolvers<WriteQueue>();
    const claim = { grant: () => resolve(queue), isCancelled: false };
    const { nowMs, writeTimeoutMs } = this.#options;
    const waitMs = Math.min(deadlineMs - nowMs(), writeTimeoutMs);
    const timer = setTimeout(
      () => {
        claim.isCancelled = true;
        reject(
          new AppError<AuthzReason>(
            'DEADLINE_EXCEEDED',
            'the deadline passed before the write began',
          ),
        );
      },
      Math.max(0, waitMs),
    );
    queue.enqueue(claim);
    this.wake(queue);
    return await promise.finally(() => clearTimeout(timer));
  }

  #forget(shard: ShardKey): void {
    const tenants = this.#queues.get(shard.projectId);
    tenants?.delete(shard.tenantId);
    if (tenants?.size === 0) this.#queues.delete(shard.projectId);
  }
}

/** FNV-1a over both ids; which lane it names does not matter outside of this process. */
function laneOf(shard: ShardKey, lanes: number): number {
  let hash = 0x811c9dc5;
  for (const text of [shard.projectId, shard.tenantId]) {
    for (let i = 0; i < text.length; i++) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    }
  }
  return (hash >>> 0) % lanes;
}
