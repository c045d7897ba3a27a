import type { HttpExchange } from '../http/http-exchange.ts';
import type { HttpServer } from '../http/http-server.ts';
import type { Authenticator } from '../http/service-tokens.ts';

/** Where a comparison of all loaded indexes stands. */
export type FsckReport = {
  /** Counts the runs of this process; 0 when there was none. */
  readonly run: number;
  readonly state: 'none' | 'running' | 'done';
  /** Of the run when it is done. */
  readonly shards: number;
  readonly rows: number;
  readonly differences: number;
  readonly unfinished: number;
  readonly seconds: number;
};

/** Comparisons of all loaded indexes with what is stored, one at a time. */
export interface FsckRuns {
  /** Begins one, unless one is under way. */
  start(): FsckReport;
  readonly report: FsckReport;
}

const JSON_TYPE = 'application/json';
const PATH = '/fsck';

/**
 * POST /fsck begins a comparison of every loaded index, or joins the one under way; GET /fsck tells where it stands. For the
 * metrics port only. Beside what guards that port (the names that it answers to), both take the service's token where one is
 * configured, and refuse what a page in a browser sends, since they make work. `parts`: null while the service starts.
 */
export function addFsckRoutes(
  server: HttpServer,
  parts: () => { readonly authenticator: Authenticator; readonly runs: FsckRuns } | null,
): void {
  const answer = (
    exchange: HttpExchange,
    statusCode: number,
    act: (runs: FsckRuns) => FsckReport,
  ): void => {
    const ready = parts();
    if (ready === null) return refuse(exchange, 503, 'unavailable', 'the service is starting');
    if (exchange.header('origin') !== '') {
      return refuse(exchange, 403, 'permission_denied', 'not for pages in a browser');
    }
    if (!ready.authenticator.accepts(exchange.header('authorization'))) {
      return refuse(exchange, 401, 'unauthenticated', 'a valid service token is required');
    }
    exchange.send(statusCode, JSON_TYPE, JSON.stringify(act(ready.runs)));
  };
  server.route('POST', PATH, (exchange) => answer(exchange, 202, (runs) => runs.start()));
  server.route('GET', PATH, (exchange) => answer(exchange, 200, (runs) => runs.report));
}

function refuse(exchange: HttpExchange, statusCode: number, code: string, message: string): void {
  exchange.send(statusCode, JSON_TYPE, JSON.stringify({ code, message, details: [] }));
}
