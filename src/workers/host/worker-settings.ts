import type { PostgresTarget } from '../../store/postgres/pool.ts';

/** Settings that a decision worker gets in the hello message. Plain data, and shared memory. */
export type WorkerSettings = {
  readonly slot: number;
  readonly database: PostgresTarget;
  /** Connections of this worker to Postgres at most. */
  readonly poolMax: number;
  /** Bound of this worker's indexes together, bytes. */
  readonly indexBytesMax: number;
  /** Evaluation of one shard runs this long before other shards get their turn. */
  readonly sliceMs: number;
  /** Depth bound of an evaluation, nodes on one path. */
  readonly depthMax: number;
  /** Total budget of a BatchCheck, in budgets of one item. */
  readonly batchBudgetFactor: number;
  readonly batchItemsMax: number;
  /** How often each loaded shard polls for changes without a hint. */
  readonly pollMs: number;
  /** Rows of loaded indexes compared a second with what is stored; 0 is only on demand. */
  readonly fsckRowsPerSecond: number;
  /** How long after its load or last comparison an index is due. */
  readonly fsckIntervalMs: number;
  /** A load or catch-up that takes longer fails. */
  readonly loadTimeoutMs: number;
  /** Memory of the estimate of the database's time, by which expiry is decided; absent: the machine's time is used. */
  readonly clockMemory?: SharedArrayBuffer | undefined;
  /** Memory in which this worker publishes the shards that it holds (held-shards.ts); absent: no reader needs it. */
  readonly heldMemory?: SharedArrayBuffer | undefined;
  /** Memory of the times of batches (batch-times.ts); absent: they are not measured. */
  readonly timesMemory?: SharedArrayBuffer | undefined;
};

/** The settings that have a default; the composition root gives slot, database, poolMax and bytes. */
export const WORKER_DEFAULTS = {
  sliceMs: 2,
  depthMax: 256,
  batchBudgetFactor: 20,
  batchItemsMax: 10_000,
  pollMs: 1_000,
  fsckRowsPerSecond: 0,
  fsckIntervalMs: 3_600_000,
  loadTimeoutMs: 60_000,
} as const;
