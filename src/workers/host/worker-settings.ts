import type { PostgresTarget } from '../../store/postgres/pool.ts';

/** What a decision worker is reported in the hello message. Plain data, and shared memory. */
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
  /** How often each loaded shard looks for changes without a hint. */
  readonly pollMs: number;
  /** Rows of loaded indexes compared a second with what is stored; 0 is only on demand. */
  readonly fsckRowsPerSecond: number;
  /** How long after its load or last comparison an index is due. */
  readonly fsckIntervalMs: number;
  /** A load or catch-up that takes longer fails. */
  readonly loadTimeoutMs: number;
  /** Of the estimate of the database's time, by which expiry is decided; absent: the machine's is taken. */
  readonly clockMemory?: SharedArrayBuffer | undefined;
  /** Where this worker says which shards it holds (held-shards.ts); absent: nobody asks. */
  readonly heldMemory?: SharedArrayBuffer | undefined;
  /** Of the times of batches (batch-times.ts); absent: they are not measured. */
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
