import { create, toJsonString } from '@bufbuild/protobuf';
import { ConnectError } from '@connectrpc/connect';
import { ImportTuplesResponseSchema } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import type { HttpExchange } from '../../http/http-exchange.ts';
import type { HttpServer } from '../../http/http-server.ts';
import { requestIdOf } from '../../http/request-id.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import type { ExportTuplesRequest, TupleExport } from '../../services/bulk/tuple-export.ts';
import type { ImportTuplesResult, TupleImport } from '../../services/bulk/tuple-import.ts';
import { AppError } from '../../shared/app-error.ts';
import { streamedBodyOfExchange } from '../connect/adapter-body.ts';
import type { CallFailure } from '../connect/adapter-guard.ts';
import { errorBody, foreseenError, sendConnectError } from '../connect/connect-error.ts';
import { tuplesToLines } from './tuple-bytes.ts';
import { tuplesOfLines } from './tuple-lines.ts';
import { exportRequestOf, importRequestOf } from './tuple-queries.ts';
import type { TuplesReason } from './tuples-reason.ts';

/** What the routes need besides the server. */
export type TupleRoutes = {
  readonly tupleExport: TupleExport;
  readonly tupleImport: TupleImport;
  /** Of a line of an import, in bytes. */
  readonly bodyBytesMax: number;
};

/** What a gateway adds: null while the service starts. */
export type TupleRoutesParts = TupleRoutes & {
  readonly authenticator: Authenticator;
  readonly report: (failure: CallFailure) => void;
};

const EXPORT_PATH = '/v1/tuples';
const IMPORT_PATH = '/v1/tuples:import';
const LINES_TYPE = 'application/x-ndjson';
const LINES_TYPES: ReadonlySet<string> = new Set([
  LINES_TYPE,
  'application/jsonl',
  'application/json-lines',
]);
const SERVICE = 'gatehouse.v1.TupleService';

/**
 * GET /v1/tuples answers what StreamTuples streams, POST /v1/tuples:import takes what ImportTuples takes, both as lines of JSON
 * and over HTTP/1.1. They have the credential and the errors of the methods, and refuse what a page in a browser sends.
 * `drained` ends exports when the service stops.
 */
export function addTupleRoutes(
  server: HttpServer,
  parts: () => TupleRoutesParts | null,
  drained: AbortSignal,
): void {
  server.route('GET', EXPORT_PATH, (exchange) => {
    const call = open(exchange, parts());
    if (call !== null) void sendExport(call, exportRequestOf(exchange.query()), drained);
  });
  server.route('POST', IMPORT_PATH, (exchange) => {
    const type = exchange.header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? '';
    const encoding = exchange.header('content-encoding');
    const call = open(exchange, parts());
    if (call === null) return;
    if (!LINES_TYPES.has(type) || (encoding !== '' && encoding !== 'identity')) {
      return exchange.sendEmpty(415, ['x-request-id', call.requestId]);
    }
    const body = streamedBodyOfExchange(exchange, call.signal);
    void receiveImport(call, importRequestOf(exchange.query()), body);
  });
}

type Call = {
  readonly exchange: HttpExchange;
  readonly parts: TupleRoutesParts;
  readonly requestId: string;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
};

/** null: it was refused. */
function open(exchange: HttpExchange, parts: TupleRoutesParts | null): Call | null {
  const requestId = requestIdOf(exchange.header('x-request-id'));
  const refuse = (reason: TuplesReason, message: string): null => {
    sendConnectError(exchange, new AppError<TuplesReason>(reason, message), requestId);
    return null;
  };
  if (parts === null) return refuse('STORE_UNAVAILABLE', 'the service is starting');
  if (exchange.header('origin') !== '') {
    return refuse('ACTION_FORBIDDEN', 'not for pages in a browser');
  }
  if (!parts.authenticator.accepts(exchange.header('authorization'))) {
    return refuse('CREDENTIAL_INVALID', 'a valid service token is required');
  }
  const controller = new AbortController();
  exchange.onAborted(() =>
    controller.abort(new AppError<TuplesReason>('CANCELLED', 'the caller has gone')),
  );
  return { exchange, parts, requestId, signal: controller.signal };
}

/** Never rejects. An error behind the first line is a line of its own, and no `end` follows. */
async function sendExport(
  { exchange, parts, requestId, signal }: Call,
  asked: ExportTuplesRequest | AppError,
  drained: AbortSignal,
): Promise<void> {
  let hasBegun = false;
  const stop = AbortSignal.any([signal, drained]);
  try {
    if (asked instanceof AppError) throw asked;
    let end = '';
    const begin = (): void => {
      if (!hasBegun) exchange.begin(200, LINES_TYPE, ['x-request-id', requestId]);
      hasBegun = true;
    };
    for await (const part of parts.tupleExport.stream(asked, stop)) {
      begin();
      const mark = { cursor: part.cursor, consistency_token: part.token };
      end = `,"cursor":${JSON.stringify(part.cursor)},"consistency_token":"${part.token}"`;
      const line = JSON.stringify({ ...mark, revision_changed: part.isRevisionChanged });
      const lines = tuplesToLines(part.shard, part.page, asked.allTenants);
      if (!exchange.write(`${lines}${line}\n`)) {
        await new Promise<void>((resolve) => exchange.onWritable(resolve));
      }
      if (exchange.isEnded) return;
    }
    begin();
    exchange.write(`{"end":true${end}}\n`);
    exchange.finish();
  } catch (error) {
    const cause = drained.aborted && !signal.aborted ? drained.reason : error;
    const shown = shownError(parts, cause, requestId, 'StreamTuples');
    if (!hasBegun) return sendConnectError(exchange, shown, requestId);
    exchange.write(`{"error":${errorBody(shown)}}\n`);
    exchange.finish();
  }
}

/** Never rejects. */
async function receiveImport(
  { exchange, parts, requestId, signal }: Call,
  asked: ReturnType<typeof importRequestOf>,
  body: AsyncIterable<Uint8Array>,
): Promise<void> {
  try {
    if (asked instanceof AppError) throw asked;
    const meta = {
      rpc: 'ImportTuples',
      actingUserId: null,
      requestId,
      deadlineMs: Infinity,
    };
    const tuples = tuplesOfLines(body, parts.bodyBytesMax);
    const result = await parts.tupleImport.import({ ...asked, meta, signal }, tuples);
    exchange.send(200, 'application/json', importAnswer(result), ['x-request-id', requestId]);
  } catch (error) {
    const shown = shownError(parts, error, requestId, 'ImportTuples');
    sendConnectError(exchange, shown, requestId);
  }
}

function importAnswer(result: ImportTuplesResult): string {
  const message = create(ImportTuplesResponseSchema, {
    received: BigInt(result.received),
    written: BigInt(result.written),
    unchanged: BigInt(result.unchanged),
    consistencyToken: result.token,
    resumedAt: BigInt(result.resumedAt),
  });
  return toJsonString(ImportTuplesResponseSchema, message, {
    useProtoFieldName: true,
    alwaysEmitImplicit: true,
  });
}

function shownError(
  { bodyBytesMax, report }: TupleRoutesParts,
  error: unknown,
  requestId: string,
  method: string,
): AppError {
  const foreseen = foreseenError(error, { readMaxBytes: bodyBytesMax });
  const shown =
    foreseen instanceof ConnectError
      ? new AppError<TuplesReason>('INTERNAL', 'internal error', {}, foreseen)
      : foreseen;
  if (shown.reason === 'INTERNAL') {
    report({ requestId, rpc: `${SERVICE}/${method}`, error: shown.cause ?? shown });
  }
  return shown;
}
