import { create, toJsonString } from '@bufbuild/protobuf';
import { ImportTuplesResponseSchema } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import type { HttpServer } from '../../http/http-server.ts';
import type { ExportTuplesRequest } from '../../services/bulk/tuple-export.ts';
import type { ImportTuplesResult } from '../../services/bulk/tuple-import.ts';
import { AppError } from '../../shared/app-error.ts';
import { streamedBodyOfExchange } from '../connect/adapter-body.ts';
import { errorBody, sendConnectError } from '../connect/connect-error.ts';
import { finishWith, StalledError, writeTo } from './slow-reader.ts';
import { tuplesToLines } from './tuple-bytes.ts';
import { openTupleCall, shownError, type TupleCall, type TupleRoutesParts } from './tuple-calls.ts';
import { tuplesOfLines } from './tuple-lines.ts';
import { exportRequestOf, importRequestOf } from './tuple-queries.ts';

const EXPORT_PATH = '/v1/tuples';
const IMPORT_PATH = '/v1/tuples:import';
const LINES_TYPE = 'application/x-ndjson';
const LINES_TYPES: ReadonlySet<string> = new Set([
  LINES_TYPE,
  'application/jsonl',
  'application/json-lines',
]);

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
    const call = openTupleCall(exchange, parts());
    if (call !== null) void sendExport(call, exportRequestOf(exchange.query()), drained);
  });
  server.route('POST', IMPORT_PATH, (exchange) => {
    const type = exchange.header('content-type').split(';', 1)[0]?.trim().toLowerCase() ?? '';
    const encoding = exchange.header('content-encoding');
    const call = openTupleCall(exchange, parts());
    if (call === null) return;
    if (!LINES_TYPES.has(type) || (encoding !== '' && encoding !== 'identity')) {
      return exchange.sendEmpty(415, ['x-request-id', call.requestId]);
    }
    const body = streamedBodyOfExchange(exchange, call.signal);
    void receiveImport(call, importRequestOf(exchange.query()), body);
  });
}

/** Never rejects. An error behind the first line is a line of its own, and no `end` follows. */
async function sendExport(
  { exchange, parts, requestId, signal }: TupleCall,
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
      await writeTo(exchange, `${lines}${line}\n`, parts.stallMs);
      if (exchange.isEnded) return;
    }
    begin();
    exchange.write(`{"end":true${end}}\n`);
    exchange.finish();
  } catch (error) {
    const cause = drained.aborted && !signal.aborted ? drained.reason : error;
    const shown = shownError(parts, cause, requestId, 'StreamTuples');
    if (!hasBegun) return sendConnectError(exchange, shown, requestId);
    if (error instanceof StalledError) parts.onStalled('StreamTuples');
    await finishWith(exchange, `{"error":${errorBody(shown)}}\n`, parts.stallMs);
  }
}

/** Never rejects. */
async function receiveImport(
  { exchange, parts, requestId, signal }: TupleCall,
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
