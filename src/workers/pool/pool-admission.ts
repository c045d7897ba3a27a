import type { AuthzReason } from '../../model/reasons.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { type QueueBound, refusalOf } from '../queues/queue-bound.ts';
import type { PendingRequest } from '../queues/shard-queue.ts';
import type { WorkerSlot } from '../slot/worker-slot.ts';
import type { RefusedRequests } from './refused-requests.ts';
import type { ShardQueues } from './shard-queues.ts';

export type PoolAdmissionOptions = {
  readonly slots: readonly WorkerSlot[];
  readonly queues: ShardQueues;
  readonly refused: RefusedRequests;
  /** Requests queued or in flight, per shard. */
  readonly shardQueueDepthMax: number;
  readonly onRefused?: ((bound: QueueBound) => void) | undefined;
};

/** Which requests a pool takes, besides the bounds of a slot. */
export class PoolAdmission {
  /** New requests fail with SHUTTING_DOWN. */
  isDraining = false;
  readonly #options: PoolAdmissionOptions;

  constructor(options: PoolAdmissionOptions) {
    this.#options = options;
  }

  /** Why a request would be refused that has not been read yet; null: nothing speaks against it. */
  refusalBefore(key: ShardKey | undefined, bytes: number, deadlineMs: number): AppError | null {
    if (this.isDraining) return shuttingDown();
    const bound = this.#boundBefore(key, bytes, deadlineMs);
    return bound === null ? null : this.#full(bound);
  }

  /** Why a request is refused; null: it may be queued. Hot. */
  refusalOf(request: PendingRequest): AppError | null {
    if (this.isDraining) return shuttingDown();
    const { refused, shardQueueDepthMax } = this.#options;
    if (request.shard.pendingCount >= shardQueueDepthMax) return this.#full('tenant_requests');
    if (refused.size > 0 && refused.isRefused(() => request.label(), request.bodyBytes())) {
      return new AppError<AuthzReason>(
        'REQUEST_REFUSED',
        'this request ended a decision worker before',
      );
    }
    return null;
  }

  #full(bound: QueueBound): AppError {
    this.#options.onRefused?.(bound);
    return refusalOf(bound);
  }

  #boundBefore(key: ShardKey | undefined, bytes: number, deadlineMs: number): QueueBound | null {
    const { slots, queues, shardQueueDepthMax } = this.#options;
    const shard = key && queues.peek(key);
    if (shard !== undefined) {
      if (shard.pendingCount >= shardQueueDepthMax) return 'tenant_requests';
      const slot = slots[shard.slot] as WorkerSlot; // by slotOfShard
      return slot.requests.boundReached(shard, bytes, deadlineMs);
    }
    let bound: QueueBound | null = null;
    for (const slot of slots) {
      bound = slot.requests.boundReached(undefined, bytes, deadlineMs);
      if (bound === null) return null;
    }
    return bound;
  }
}

function shuttingDown(): AppError {
  return new AppError<AuthzReason>('SHUTTING_DOWN', 'the service is stopping');
}
