import type { EventLog } from '../observability/logger.ts';
import type { BudgetRefusal } from '../protocol/read-figures.ts';
import type { CallOrigin } from '../protocol/shard-client.ts';
import type { Clock } from '../shared/clock.ts';

/** Lines of one project are at least this far apart, and lines of all of them come at most so many in it. */
const INTERVAL_MS = 1_000;
const LINES_MAX = 10;
/** Projects whose last line is remembered. */
const PROJECTS_MAX = 1_000;

type Quiet = { untilMs: number; suppressed: number };

/**
 * Logs evaluations that ran out of their budget: which project asked what, and who. The first of a project at once,
 * then a line a second at most, which says how many came without one since. O(1).
 */
export function createRefusalLog(
  log: EventLog,
  clock: Pick<Clock, 'monotonicMs'>,
): (refusal: BudgetRefusal, origin: CallOrigin | undefined) => void {
  const projects = new Map<string, Quiet>();
  const all = { untilMs: 0, lines: 0 };
  return (refusal, origin) => {
    const nowMs = clock.monotonicMs();
    if (nowMs >= all.untilMs) {
      all.untilMs = nowMs + INTERVAL_MS;
      all.lines = 0;
    }
    const { projectId: project } = refusal;
    const quiet = projects.get(project) ?? { untilMs: 0, suppressed: 0 };
    // In the order of their last refusals.
    projects.delete(project);
    if (projects.size >= PROJECTS_MAX) forgetFirst(projects);
    projects.set(project, quiet);
    quiet.suppressed += refusal.untold;
    if (nowMs < quiet.untilMs || all.lines >= LINES_MAX) {
      quiet.suppressed += 1;
      return;
    }
    const { suppressed } = quiet;
    quiet.untilMs = nowMs + INTERVAL_MS;
    quiet.suppressed = 0;
    all.lines += 1;
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

function forgetFirst(projects: Map<string, Quiet>): void {
  const first = projects.keys().next();
  if (first.done !== true) projects.delete(first.value);
}
