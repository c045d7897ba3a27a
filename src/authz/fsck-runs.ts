import type { FsckReport, FsckRuns } from '../gateway/fsck-routes.ts';
import type { EventLog } from '../observability/logger.ts';
import type { WorkerPool } from '../workers/slot/worker-pool.ts';

const NOTHING = { shards: 0, rows: 0, differences: 0, unfinished: 0, seconds: 0 };

/** Comparisons that an operator asks for, over the indexes of all workers. */
export function createFsckRuns(workers: Pick<WorkerPool, 'checkIndexes'>, log: EventLog): FsckRuns {
  let report: FsckReport = { run: 0, state: 'none', ...NOTHING };
  const run = async (): Promise<void> => {
    const startedMs = performance.now();
    const totals = await workers.checkIndexes();
    const seconds = Math.round(performance.now() - startedMs) / 1_000;
    report = { run: report.run, state: 'done', ...totals, seconds };
    log(totals.differences > 0 ? 'error' : 'info', 'fsck_done', { ...totals, seconds });
  };
  return {
    start: () => {
      if (report.state !== 'running') {
        report = { run: report.run + 1, state: 'running', ...NOTHING };
        run().catch((error: unknown) => {
          report = { ...report, state: 'done', unfinished: 1 };
          log('error', 'fsck_failed', { error: String(error) });
        });
      }
      return report;
    },
    get report() {
      return report;
    },
  };
}
