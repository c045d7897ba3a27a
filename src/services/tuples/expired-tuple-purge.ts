import type { Pool } from 'pg';
import { type LoopReport, reportedRun } from '../../shared/loop-report.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { SharedWork } from '../../store/postgres/shared-work.ts';
import { selectExpiredShards } from '../../store/sql/reads/select-subject-tenants.ts';
import type { TupleWrites } from '../writes/tuple-writes.ts';

export type ExpiredTuplePurgeOptions = {
  readonly pool: Pool;
  /** Purges on one instance at a time. */
  readonly shared: SharedWork;
  readonly clock: Clock;
  readonly writer: TupleWrites;
  /** How long an expired tuple is kept. */
  readonly graceMs: number;
  readonly intervalMs: number;
  /** Shards of one run and tuples of one shard and run, at most. */
  readonly shardsMax: number;
  readonly tuplesMax: number;
  readonly requestId: () => string;
  readonly report: LoopReport;
};

/**
 * Deletes tuples whose expiry passed long enough ago, through the change log like any delete. The
 * expiry is compared again under the shard's lock, so that a tuple renewed meanwhile stays.
 */
export class ExpiredTuplePurge {
  readonly #options: ExpiredTuplePurgeOptions;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(options: ExpiredTuplePurgeOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      const { shared, report } = this.#options;
      this.#running ??= reportedRun(report, () =>
        shared.run('purge', (lost) => this.run(lost)),
      ).finally(() => (this.#running = undefined));
    }, this.#options.intervalMs).unref();
  }

  /** Resolves when no run is under way. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await this.#running;
  }

  /** One run, until `signal` aborts; returns how many tuples it deleted. */
  async run(signal?: AbortSignal): Promise<number> {
    const { pool, clock, writer, graceMs, shardsMax, tuplesMax, requestId } = this.#options;
    const expiredByUs = BigInt(Math.floor((clock.nowMs() - graceMs) * 1000));
    let deleted = 0;
    for (const shard of await selectExpiredShards(pool, expiredByUs, shardsMax)) {
      if (signal?.aborted === true) break;
      const meta = {
        rpc: 'PurgeExpired',
        actingUserId: null,
        requestId: requestId(),
        deadlineMs: Infinity,
      };
      const where = {
        projectId: shard.projectId,
        tenantIds: [shard.tenantId],
        userId: null,
        expiredByUs,
        rowsMax: tuplesMax,
      };
      const rows = await writer.exclusive([shard], meta, (transaction) =>
        transaction.deleteWhere(where, meta),
      );
      for (const row of rows) deleted += row.deleted;
    }
    return deleted;
  }
}
