import type { HttpExchange } from '../http/exchange/http-exchange.ts';
import type { HttpServer } from '../http/listener/http-server.ts';
import { AppError } from '../shared/app-error.ts';
import type { AuthorizeResult } from './callers/caller.ts';
import { mustAdmit, type OnRefused } from './callers/guarded-service.ts';
import { FSCK_RULES } from './callers/method-rules.ts';
import { codeNameOfReason, httpStatusOfReason } from './connect/connect-error.ts';

/** Progress of a comparison of all loaded indexes. */
export type FsckReport = {
  /** Counts the runs of this process; 0 when there was none. */
  readonly run: number;
  readonly state: 'none' | 'running' | 'done';
  /** Counts of the run once it is done. */
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

export type FsckParts = {
  readonly admit: (authorization: string) => AuthorizeResult | Promise<AuthorizeResult>;
  readonly onOutOfScope: OnRefused;
  readonly runs: FsckRuns;
};

const JSON_TYPE = 'application/json';
const PATH = '/fsck';

/**
 * POST /fsck begins a comparison of every loaded index, or joins the one under way; GET /fsck answers its progress. For the
 * metrics port only. Beside what guards that port (the names that it answers to), both take the service's token where one is
 * configured, whose caller must reach every project, and refuse what a page in a browser sends, since they make work. `parts`:
 * null while the service starts.
 */
export function addFsckRoutes(server: HttpServer, parts: () => FsckParts | null): void {
  const answer = (
    exchange: HttpExchange,
    statusCode: number,
    rule: keyof typeof FSCK_RULES,
    act: (runs: FsckRuns) => FsckReport,
  ): void => {
    const ready = parts();
    if (ready === null) return refuse(exchange, 503, 'unavailable', 'the service is starting');
    if (exchange.header('origin') !== '') {
      return refuse(exchange, 403, 'permission_denied', 'not for pages in a browser');
    }
    const finish = (admission: AuthorizeResult): void => {
      if (admission instanceof AppError) throw admission;
      mustAdmit(admission, FSCK_RULES[rule], undefined, ready.onOutOfScope);
      exchange.send(statusCode, JSON_TYPE, JSON.stringify(act(ready.runs)));
    };
    const admitted = ready.admit(exchange.header('authorization'));
    Promise.resolve(admitted)
      .then(finish)
      .catch((error: unknown) => refuseFor(exchange, error));
  };
  server.route('POST', PATH, (exchange) => {
    answer(exchange, 202, 'start', (runs) => runs.start());
  });
  server.route('GET', PATH, (exchange) => {
    answer(exchange, 200, 'report', (runs) => runs.report);
  });
}

function refuseFor(exchange: HttpExchange, error: unknown): void {
  const { reason, message } = error instanceof AppError ? error : INTERNAL;
  refuse(exchange, httpStatusOfReason(reason), codeNameOfReason(reason), message);
}

const INTERNAL = { reason: 'INTERNAL', message: 'internal error' };

function refuse(exchange: HttpExchange, statusCode: number, code: string, message: string): void {
  exchange.send(statusCode, JSON_TYPE, JSON.stringify({ code, message, details: [] }));
}
