import { packageVersion } from '../../../observability/build-info.ts';
import { hostOfUrl } from '../../core/connection.ts';
import { CALL_MS_MAX, fine, type Observation, warning } from './observation.ts';
import type { PortQuery } from './port-checks.ts';

/** Largest difference in ms; the header `Date` has whole seconds. */
const CLOCK_MS_MAX = 2_000;
/** Largest difference between a service's clock and that of its database. */
const OFFSET_SECONDS_MAX = 1;
const BUILD = /^gatehouse_build_info\{([^}]*)\} 1$/m;
const OFFSET = /^gatehouse_clock_offset_seconds (\S+)$/m;

/** Checks the version and the clock of a running service against those of this command. */
export async function checkInstance(
  host: string,
  metricsPort: number,
  query: PortQuery,
): Promise<readonly Observation[]> {
  const service = await query();
  if (service === undefined) return [fine('none on the port of metrics')];
  const response = await fetch(`http://${hostOfUrl(host)}:${metricsPort}/metrics`, {
    signal: AbortSignal.timeout(CALL_MS_MAX / 2),
    redirect: 'manual',
  });
  const text = await response.text();
  return [versionSeen(text), ...clockSeen(text, service.clockAheadMs)];
}

function versionSeen(metrics: string): Observation {
  const labels = BUILD.exec(metrics)?.[1];
  if (labels === undefined) {
    return warning(
      'what answers on the port of metrics is no authorization service',
      'set GATEWAY_METRICS_PORT to another one',
    );
  }
  const of = (name: string): string =>
    new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? 'unknown';
  const own = packageVersion();
  const seen = `version ${of('version')}, commit ${of('commit')}, Node.js ${of('node')}`;
  if (of('version') === own) return fine(seen);
  return warning(
    `${seen}; this command is ${own}`,
    'use the command of that release, or start this one: docs/operations.md, "Upgrade"',
  );
}

function clockSeen(metrics: string, clockAheadMs: number | undefined): readonly Observation[] {
  const advice = 'set the clocks by NTP: docs/operations.md, "Clocks"';
  const offset = Number(OFFSET.exec(metrics)?.[1] ?? 0);
  const seen: Observation[] = [];
  if (clockAheadMs !== undefined && Math.abs(clockAheadMs) > CLOCK_MS_MAX) {
    const by = `${(Math.abs(clockAheadMs) / 1000).toFixed(0)} s`;
    const side = clockAheadMs > 0 ? 'ahead of' : 'behind';
    seen.push(warning(`its clock is ${by} ${side} this one`, advice));
  }
  if (Math.abs(offset) > OFFSET_SECONDS_MAX) {
    seen.push(
      warning(`its clock differs from that of its database by ${offset.toFixed(1)} s`, advice),
    );
  }
  return seen;
}
