import { createServer } from 'node:net';
import { hostOfUrl } from '../../core/connection.ts';
import { CALL_MS_MAX, failure, fine, type Observation, warning } from './observation.ts';

/** A service that answers on a port. */
export type RunningService = {
  readonly isReady: boolean;
  /** Answer of /readyz. */
  readonly readiness: string;
  /** Its clock minus this one's, in ms, to a second; undefined if it sent no time. */
  readonly clockAheadMs: number | undefined;
};

/**
 * Queries the port at the first call, and returns the same result afterwards; undefined: no service
 * is there.
 */
export type PortQuery = () => Promise<RunningService | undefined>;

const ALIVE = '{"status":"ok"}';
const READINESS_LENGTH_MAX = 200;

/** The service on a port of `host`, queried once. Never rejects. */
export function instanceAt(host: string, port: number): PortQuery {
  let asked: Promise<RunningService | undefined> | undefined;
  return () => (asked ??= port === 0 ? Promise.resolve(undefined) : ask(host, port));
}

async function ask(host: string, port: number): Promise<RunningService | undefined> {
  const base = `http://${hostOfUrl(host)}:${port}`;
  try {
    const alive = await fetch(`${base}/healthz`, init());
    if ((await alive.text()) !== ALIVE) return undefined;
    const sentMs = Date.parse(alive.headers.get('date') ?? '');
    const clockAheadMs = Number.isNaN(sentMs) ? undefined : sentMs - Date.now();
    const ready = await fetch(`${base}/readyz`, init());
    const readiness = (await ready.text()).slice(0, READINESS_LENGTH_MAX);
    return { isReady: ready.ok, readiness, clockAheadMs };
  } catch {
    // Nothing answers, or another program does: binding the port distinguishes the two.
    return undefined;
  }
}

function init(): RequestInit {
  // Two requests fit into the time of a check.
  return { signal: AbortSignal.timeout(CALL_MS_MAX / 2), redirect: 'manual' };
}

/**
 * Checks if a port is free, or in use by a service or by another program. `variable` is its
 * setting.
 */
export async function checkPort(
  host: string,
  port: number,
  query: PortQuery,
  variable: string,
): Promise<readonly Observation[]> {
  if (port === 0) return [fine(`${variable}=0: a start takes a free one`)];
  const service = await query();
  const place = `${host}:${port}`;
  if (service !== undefined) {
    const seen = `${place} is a running service: ${service.readiness}`;
    const advice = 'its log says why; docs/operations.md, "PostgreSQL is away, or hangs"';
    return [service.isReady ? fine(seen) : warning(seen, advice)];
  }
  const code = await bindingError(host, port);
  return [code === undefined ? fine(`${place} is free`) : unusable(place, code, variable)];
}

function unusable(place: string, code: string, variable: string): Observation {
  if (code === 'EADDRINUSE') {
    return failure(`${place} is in use by another program`, `end it, or set ${variable}`);
  }
  const advice: Readonly<Record<string, string>> = {
    EACCES: `this user may not listen there: set ${variable} to 1024 or more`,
    EADDRNOTAVAIL: 'this machine has no such address: set GATEWAY_HOST',
    ENOTFOUND: 'no such name is known: set GATEWAY_HOST to an address',
  };
  return failure(`${place} cannot be listened on: ${code}`, advice[code] ?? `set ${variable}`);
}

/** Binds the port for a moment. Returns the code of the error; undefined if it succeeded. */
async function bindingError(host: string, port: number): Promise<string | undefined> {
  const server = createServer();
  return await new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
