import { ReadLedger } from '../gateway/budgets/read-ledger.ts';
import type { EventLog } from '../observability/logger.ts';
import type { Clock } from '../shared/time/clock.ts';
import { createRefusalLog } from './logs/refusal-log.ts';
import type { WorkersOptions } from './workers/workers.ts';

/** Handlers of the counts that workers report for the reads of projects. */
export type ReadAccounting = Required<Pick<WorkersOptions, 'onBudgetRefused' | 'onProjects'>> & {
  readonly ledger: ReadLedger;
};

/** An empty ledger, and what fills it and the log. */
export function createReadAccounting(log: EventLog, clock: Clock): ReadAccounting {
  const ledger = new ReadLedger(clock);
  const report = createRefusalLog(log, clock);
  return {
    ledger,
    onProjects: (figures) => ledger.report(figures),
    onBudgetRefused: (refusal, origin) => {
      ledger.refused(refusal, origin);
      report(refusal, origin);
    },
  };
}
