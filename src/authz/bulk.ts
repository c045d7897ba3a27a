import type { Config } from '../config/options.ts';
import type { BackgroundLoops } from '../observability/background-loops.ts';
import type { EventLog } from '../observability/logger.ts';
import type { BulkParts } from '../services/bulk/bulk-ports.ts';
import { BulkUpkeep } from '../services/bulk/bulk-upkeep.ts';
import { GuardedWrites } from '../services/bulk/guarded-write.ts';
import { StreamCursors } from '../services/bulk/stream-cursor.ts';
import { TupleDelete } from '../services/bulk/tuple-delete.ts';
import { TupleExport } from '../services/bulk/tuple-export.ts';
import { TupleImport } from '../services/bulk/tuple-import.ts';
import type { ModelsOfWrites } from '../services/bulk/version-admission.ts';
import type { AuditSink } from '../services/ports.ts';
import { ReadSlots } from '../services/reads/read-slots.ts';
import type { IdSource } from '../shared/ids.ts';
import type { Clock } from '../shared/time/clock.ts';
import { errorFields } from '../store/postgres/pg-errors.ts';
import type { SharedWork } from '../store/postgres/shared-work.ts';

/** The use cases that move many tuples, and writes that depend on what is stored. */
export type Bulk = {
  readonly guardedWrites: GuardedWrites;
  readonly tupleExport: TupleExport;
  readonly tupleImport: TupleImport;
  readonly tupleDelete: TupleDelete;
  readonly bulkUpkeep: BulkUpkeep;
};

const IMPORT_AGE_MAX_MS = 24 * 3_600_000;
const UPKEEP_INTERVAL_MS = 60_000;

/** Wires them. `tokenKey` is the deployment's. */
export function createBulk(
  config: Pick<Config, 'maxWriteUpdates' | 'changeRetentionSeconds' | 'requestTimeoutMs'>,
  parts: Omit<BulkParts, 'slots'> & {
    readonly clock: Clock;
    readonly ids: IdSource;
    readonly audit: AuditSink | undefined;
    readonly shared: SharedWork;
    readonly tokenKey: Uint8Array;
    readonly log: EventLog;
    readonly loops: BackgroundLoops;
    readonly modelsOfWrites: ModelsOfWrites;
  },
): Bulk {
  const { pool, shared, log, loops } = parts;
  const onError = (error: unknown): void => {
    log('warn', 'import_not_cleaned', errorFields(error));
  };
  // Each keeps a connection for as long as it takes, and some need a second one meanwhile.
  const slots = new ReadSlots('bulk calls', Math.max(1, Math.floor(pool.options.max / 4)));
  const bulk = { ...parts, slots: slots };
  return {
    guardedWrites: new GuardedWrites(bulk, parts.modelsOfWrites, config.maxWriteUpdates),
    tupleExport: new TupleExport(bulk, new StreamCursors(parts.tokenKey)),
    tupleDelete: new TupleDelete(bulk),
    tupleImport: new TupleImport({ ...bulk, chunkTimeoutMs: config.requestTimeoutMs, onError }),
    bulkUpkeep: new BulkUpkeep({
      pool,
      shared,
      keyAgeMaxMs: config.changeRetentionSeconds * 1_000,
      importAgeMaxMs: IMPORT_AGE_MAX_MS,
      intervalMs: UPKEEP_INTERVAL_MS,
      report: loops.loop('bulk'),
    }),
  };
}
