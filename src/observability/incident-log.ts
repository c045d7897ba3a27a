import type { Clock } from '../shared/time/clock.ts';
import type { EventLog } from './logger.ts';

/** Lines of one kind of incident are at least this far apart. */
const INTERVAL_MS = 1_000;

type IncidentKind = { quietUntilMs: number; suppressed: number };

/**
 * Logs incidents that clients can cause at will (connections refused, sessions broken): the first of a
 * kind at once, then at most one line a second, which counts those left out. Kinds are few and
 * fixed. O(1).
 */
export function createIncidentLog(
  log: EventLog,
  clock: Pick<Clock, 'monotonicMs'>,
): (event: string, detail: string) => void {
  const kinds = new Map<string, IncidentKind>();
  return (event, detail) => {
    const nowMs = clock.monotonicMs();
    let kind = kinds.get(event);
    if (kind === undefined) kinds.set(event, (kind = { quietUntilMs: nowMs, suppressed: 0 }));
    if (nowMs < kind.quietUntilMs) {
      kind.suppressed += 1;
      return;
    }
    const { suppressed } = kind;
    log('warn', event, suppressed === 0 ? { detail } : { detail, suppressed });
    kind.quietUntilMs = nowMs + INTERVAL_MS;
    kind.suppressed = 0;
  };
}
