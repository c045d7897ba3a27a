import { create, toJsonString } from '@bufbuild/protobuf';
import { ImportTuplesResponseSchema } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import { LineEnds } from '../../http/bodies/unit-ends.ts';
import { streamedBodyOfExchange } from '../../http/exchange/streamed-exchange.ts';
import { mediaTypeOf } from '../../http/header-text.ts';
import type { HttpServer } from '../../http/listener/http-server.ts';
import { REQUEST_ID_HEADER } from '../../http/request-id.ts';
import type { ExportTuplesRequest } from '../../services/bulk/tuple-export.ts';
import type { ImportTuplesResult } from '../../services/bulk/tuple-import.ts';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import { AppError } from '../../shared/app-error.ts';
import { type TargetedRule, mustRule } from '../callers/method-rules.ts';
import { sendConnectError } from '../connect/connect-error.ts';
import { ExportReader, ExportWriter } from './export-frame.ts';
import { writeTo } from './slow-reader.ts';
import { tuplesToLines } from './tuple-bytes.ts';
import {
  failStream,
  mustReach,
  openTupleCall,
  reachesAnywhere,
  shownError,
  type TupleCall,
  type TupleRoutesParts,
} from './tuple-calls.ts';
import { importToProto } from './tuple-handlers.ts';
import { lineBytesMaxOf, tuplesOfLines } from './tuple-lines.ts';
import {
  type ExportQuery,
  exportRequestOf,
  type ImportQuery,
  importRequestOf,
} from './tuple-queries.ts';

const EXPORT_PATH = '/v1/tuples';
const IMPORT_PATH = '/v1/tuples:import';
/** They reach what the methods of the same name do. */
const EXPORT_RULE: TargetedRule<ExportTuplesRequest> = mustRule(
  '/gatehouse.v1.TupleService/StreamTuples',
);
const IMPORT_RULE: TargetedRule<ImportQuery> = {
  ...mustRule('/gatehouse.v1.TupleService/ImportTuples'),
  targetOf: ({ projectId, tenantId }) => ({ kind: 'tenant', projectId, tenantId }),
};
const NOT_CHECKED =
  'the lines of an export came without its first and last, so that nothing shows whether they are all of it';
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
    const asked = exportRequestOf(exchange.query());
    openTupleCall(exchange, parts(), (call) => void sendExport(call, asked, drained));
  });
  server.route('POST', IMPORT_PATH, (exchange) => {
    const type = mediaTypeOf(exchange.header('content-type'));
    const encoding = exchange.header('content-encoding');
    const isPlain = LINES_TYPES.has(type) && (encoding === '' || encoding === 'identity');
    const asked = importRequestOf(exchange.query());
    const stopped = new AbortController();
    const lineBytesMax = lineBytesMaxOf(parts()?.bodyBytesMax ?? 0);
    let body: AsyncIterable<Uint8Array> | undefined;
    const read = (): AsyncIterable<Uint8Array> =>
      streamedBodyOfExchange(exchange, new LineEnds(lineBytesMax), stopped.signal);
    const begin = (call: TupleCall): void => {
      if (!reachesAnywhere(call, IMPORT_RULE)) return;
      if (!isPlain) return exchange.sendEmpty(415, [REQUEST_ID_HEADER, call.requestId]);
      exchange.bodyOwner = call.credential.caller.name;
      call.signal.addEventListener('abort', () => stopped.abort(call.signal.reason), {
        once: true,
      });
      void receiveImport(call, asked, (body ??= read()));
    };
    openTupleCall(exchange, parts(), begin);
    // Chunks wait while the caller is authenticated.
    if (isPlain && exchange.isOpen) body ??= read();
  });
}

/** Never rejects. An error behind the first line is a line of its own, and no `end` follows. */
async function sendExport(
  call: TupleCall,
  asked: ExportQuery | AppError,
  drained: AbortSignal,
): Promise<void> {
  const { exchange, parts, requestId, signal } = call;
  let hasBegun = false;
  const stop = AbortSignal.any([signal, drained]);
  try {
    if (asked instanceof AppError) throw asked;
    mustReach(call, EXPORT_RULE, asked);
    const writer = new ExportWriter();
    let last: Readonly<Record<string, string>> = {};
    let first = writer.begin(asked.cursor);
    const begin = (): void => {
      if (!hasBegun) exchange.begin(200, LINES_TYPE, [REQUEST_ID_HEADER, requestId]);
      hasBegun = true;
    };
    for await (const part of parts.tupleExport.stream(asked, stop)) {
      begin();
      last = { cursor: part.cursor, consistency_token: part.token };
      const { allTenants: hasTenant, hasWrittenAt } = asked;
      const lines = tuplesToLines(part.shard, part.page, { hasTenant, hasWrittenAt });
      const mark = { ...last, revision_changed: part.isRevisionChanged };
      const written = writer.part(lines, part.page.rows, mark);
      await writeTo(exchange, `${first}${written}`, parts.stallMs);
      first = '';
      if (exchange.isEnded) return;
    }
    begin();
    exchange.write(`${first}${writer.lastLine(last)}`);
    exchange.finish();
  } catch (error) {
    const textOf = (body: string): string => `{"error":${body}}\n`;
    await failStream(call, { method: 'StreamTuples', error, drained, hasBegun }, textOf);
  }
}

/** Never rejects. */
async function receiveImport(
  call: TupleCall,
  asked: ReturnType<typeof importRequestOf>,
  body: AsyncIterable<Uint8Array>,
): Promise<void> {
  const { exchange, parts, requestId, signal, credential } = call;
  const { name: caller } = credential.caller;
  try {
    if (asked instanceof AppError) throw asked;
    mustReach(call, IMPORT_RULE, asked);
    const meta = {
      rpc: 'ImportTuples',
      actingUserId: null,
      caller,
      requestId,
      deadlineMs: Infinity,
    };
    const reader = new ExportReader();
    const tuples = tuplesOfLines(body, lineBytesMaxOf(parts.bodyBytesMax), reader);
    const result = await parts.tupleImport.import({ ...asked, meta, signal }, tuples);
    const answer = importAnswer(result, reader.isUnchecked ? [NOT_CHECKED] : []);
    exchange.send(200, 'application/json', answer, [REQUEST_ID_HEADER, requestId]);
  } catch (error) {
    const cause = credential.revoked.aborted ? credential.revoked.reason : error;
    const shown = shownError(parts, cause, requestId, 'ImportTuples', caller);
    sendConnectError(exchange, shown, requestId);
  }
}

function importAnswer(result: ImportTuplesResult, warnings: readonly string[]): string {
  const message = create(ImportTuplesResponseSchema, importToProto(result));
  message.warnings.push(...warnings);
  return toJsonString(ImportTuplesResponseSchema, message, ANSWER_JSON);
}
