import type { EventLog } from '../observability/logger.ts';
import type { UnknownRelation } from '../protocol/unknown-relations.ts';
import type { Clock } from '../shared/clock.ts';
import { createLinePace } from './line-pace.ts';

/** Lines of one name are at least this far apart: a slip in a program is asked until somebody mends it. */
const INTERVAL_MS = 60_000;

/**
 * Logs names that decisions were asked about and that the typed model of the project does not have, with the name that was
 * likely meant. Each at once, then a line a minute at most. Objects, subjects and tenants stay out. O(names).
 */
export function createUnknownLog(
  log: EventLog,
  clock: Pick<Clock, 'monotonicMs'>,
): (names: readonly UnknownRelation[]) => void {
  const pace = createLinePace(clock, INTERVAL_MS);
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
