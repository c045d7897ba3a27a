import type { EventLog } from '../observability/logger.ts';
import type { BudgetRefusal } from '../protocol/read-figures.ts';
import type { CallOrigin } from '../protocol/shard-client.ts';
import type { Clock } from '../shared/clock.ts';
import { createLinePace } from './line-pace.ts';

/** Lines of one project are at least this far apart. */
const INTERVAL_MS = 1_000;

/**
 * Logs evaluations that ran out of their budget: which project asked what, and who. The first of a project at once,
 * then a line a second at most, which says how many came without one since. O(1).
 */
export function createRefusalLog(
  log: EventLog,
  clock: Pick<Clock, 'monotonicMs'>,
): (refusal: BudgetRefusal, origin: CallOrigin | undefined) => void {
  const pace = createLinePace(clock, INTERVAL_MS);
  return (refusal, origin) => {
    const { projectId: project } = refusal;
    const suppressed = pace(project, refusal.unreported);
    if (suppressed === undefined) return;
    log('warn', 'budget_exhausted', {
      project,
      tenant: refusal.tenantId,
      relation: refusal.relation,
      rpc: refusal.rpc,
      limit: refusal.limit,
      bound: refusal.bound,
      request_id: origin?.requestId ?? '',
      caller: origin?.caller ?? '',
      ...(suppressed === 0 ? {} : { suppressed }),
    });
  };
}
