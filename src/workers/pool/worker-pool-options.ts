import type { ShardKey } from '../../model/relation-tuple.ts';
import type { WorkerReport, WorkerStats } from '../../protocol/messages.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import type { CallOrigin } from '../../protocol/shard-client.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { BatchStages } from '../../shared/time/stage-times.ts';
import type { QueueBound } from '../queues/queue-bound.ts';
import type { CreateTransport } from '../slot/slot-transport.ts';
import type { LocalReplicaTransport } from './local-replica-transport.ts';
import type { ReplicationEvent } from './replicated-shards.ts';
import type { ReplicationOptions } from './shard-replication.ts';

export type WorkerPoolEvent =
  | { readonly kind: 'workerReport'; readonly slot: number; readonly report: WorkerReport }
  | { readonly kind: 'workerReady'; readonly slot: number }
  | { readonly kind: 'shardSpread'; readonly slot: number; readonly replicated: ReplicationEvent }
  | {
      readonly kind: 'workerLost';
      readonly slot: number;
      readonly cause: unknown;
      readonly requestRemembered: boolean;
    };

export type WorkerPoolOptions = {
  readonly workerCount: number;
  readonly createTransport: CreateTransport;
  /** Requests queued or in flight, per worker and per shard; beyond it: QUEUE_FULL. */
  readonly queueDepthMax: number;
  readonly shardQueueDepthMax: number;
  /**
   * Bytes of requests queued or in flight, per worker. One shard has at most what is left for the others.
   */
  readonly queueBytesMax: number;
  /** A request was refused with QUEUE_FULL. */
  readonly onRefused?: ((bound: QueueBound) => void) | undefined;
  /** Called for some of a project's evaluations and batches that ran out of their read budget. */
  readonly onBudgetRefused?:
    | ((refusal: BudgetRefusal, origin: CallOrigin | undefined) => void)
    | undefined;
  /** A worker failed to start twice in a row: the instance must become not ready and exit. */
  readonly onFatal: (cause: unknown) => void;
  readonly onStats: (slot: number, stats: WorkerStats) => void;
  readonly onEvent: (event: WorkerPoolEvent) => void;
  /** The document of a model that the pool itself no longer holds, from who sets them. */
  readonly findModel?:
    | ((projectId: string, modelVersion: number) => string | undefined)
    | undefined;
  readonly clock?: Clock | undefined;
  /** Makes each life of the replicas on this thread; absent if none. */
  readonly createLocalReplicas?:
    | ((onOverload: (shard: ShardKey) => void) => LocalReplicaTransport)
    | undefined;
  /** How far shards are replicated that one worker cannot answer for; absent: not at all. */
  readonly replication?: ReplicationOptions | undefined;
  /** The stages that are measured; absent: none are. */
  readonly stages?: BatchStages | undefined;
};
