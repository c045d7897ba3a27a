import type { HeldShards } from '../../protocol/held-shards.ts';
import type { AnswerBatch } from '../../protocol/messages.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { SmallShards } from '../indexes/small-shards.ts';
import type { JobContextOptions } from '../jobs/job-context.ts';
import type { IndexUser, LoadPace, ShardIndex, ShardSource } from '../shard/ports.ts';
import type { WorkerSettings } from './worker-settings.ts';

export type ShardHostOptions = {
  readonly settings: Pick<
    WorkerSettings,
    | 'indexBytesMax'
    | 'sliceMs'
    | 'depthMax'
    | 'batchBudgetFactor'
    | 'batchItemsMax'
    | 'pollMs'
    | 'loadTimeoutMs'
    | 'poolMax'
    | 'fsckRowsPerSecond'
    | 'fsckIntervalMs'
  >;
  readonly clock: Clock;
  readonly source: ShardSource;
  readonly createIndex: (shared: SmallShards, user: IndexUser) => ShardIndex;
  /** Posts deferred answers by a message of their own, at once: they are views of memory that is used again. */
  readonly post: (answers: AnswerBatch) => void;
  /** Bounds of evaluators other than those of a worker. */
  readonly engine?: Partial<JobContextOptions['evaluator']> | undefined;
  /** How loads leave time to others, and how long a slice of a comparison may be; absent: as in a worker. */
  readonly pace?: (LoadPace & { readonly fsckSliceMs: number }) | undefined;
  /** Called with an error that must not occur outside of `handle`; absent: it ends the thread. */
  readonly onFailed?: ((error: unknown) => void) | undefined;
  /** Kept up to date with the shards that are held; absent where no reader needs it. */
  readonly held?: Pick<HeldShards, 'add' | 'remove'> | undefined;
  /** One double: the id of the request under evaluation. */
  readonly underEvaluation: Float64Array;
};
