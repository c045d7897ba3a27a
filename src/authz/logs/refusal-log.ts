import type { EventLog } from '../../observability/logger.ts';
import type { UnknownRelation } from '../../protocol/messages.ts';
import type { BudgetRefusal } from '../../protocol/read-figures.ts';
import type { CallOrigin } from '../../protocol/shard-client.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { createLinePace } from './line-pace.ts';

/** Lines of one project are at least this far apart. */
const REFUSAL_INTERVAL_MS = 1_000;

/**
 * Logs evaluations that exceeded their budget, with project, request and caller. The first of a
 * project at once, then at most one line a second, which counts the suppressed ones. O(1).
 */
export function createRefusalLog(
  log: EventLog,
  clock: Pick<Clock, 'monotonicMs'>,
): (refusal: BudgetRefusal, origin: CallOrigin | undefined) => void {
  const pace = createLinePace(clock, REFUSAL_INTERVAL_MS);
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

/** Lines of one name are at least this far apart: a slip in a program repeats its call until it is mended. */
const UNKNOWN_INTERVAL_MS = 60_000;

/**
 * Logs names that decisions were asked about and that the typed model of the project does not have, with the name that was
 * likely meant. Each at once, then a line a minute at most. Objects, subjects and tenants stay out. O(names).
 */
export function createUnknownLog(
  log: EventLog,
  clock: Pick<Clock, 'monotonicMs'>,
): (names: readonly UnknownRelation[]) => void {
  const pace = createLinePace(clock, UNKNOWN_INTERVAL_MS);
  return (names) => {
    for (const { projectId: project, namespace, relation, missing, meant } of names) {
      const suppressed = pace(`${project} ${namespace}#${relation}`);
      if (suppressed === undefined) continue;
      log('warn', 'unknown_relation', {
        project,
        namespace,
        relation,
        missing,
        ...(meant === '' ? {} : { did_you_mean: meant }),
        ...(suppressed === 0 ? {} : { suppressed }),
      });
    }
  };
}
