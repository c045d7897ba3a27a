import { toJson } from '@bufbuild/protobuf';
import { WatchResponseSchema } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import type { HttpServer } from '../../http/http-server.ts';
import { AppError } from '../../shared/app-error.ts';
import { errorBody, sendConnectError } from '../connect/connect-error.ts';
import { finishWith, StalledError, writeTo } from './slow-reader.ts';
import { openTupleCall, shownError, type TupleCall, type TupleRoutesParts } from './tuple-calls.ts';
import { watchRequestOf } from './tuple-queries.ts';
import { watchEventToProto } from './watch-event.ts';

export const WATCH_PATH = '/v1/watch';
const JSON_OPTIONS = { useProtoFieldName: true, alwaysEmitImplicit: true } as const;

/**
 * GET /v1/watch tells what Watch tells, as server-sent events over HTTP/1.1: `event` is the kind, `id` the cursor, `data` the message
 * in JSON. Who comes again sends the last id in `Last-Event-ID`, as browsers' and libraries' clients of such streams do.
 * An error behind the first event is an event of the kind `error`, after which the stream ends. So it is where the client takes nothing for
 * `stallMs`; at most one event waits for it. `drained` ends it when the service stops.
 */
export function addWatchRoute(
  server: HttpServer,
  parts: () => TupleRoutesParts | null,
  drained: AbortSignal,
): void {
  server.route('GET', WATCH_PATH, (exchange) => {
    const lastId = exchange.header('last-event-id');
    const call = openTupleCall(exchange, parts());
    if (call === null) return;
    const asked = watchRequestOf(exchange.query(), lastId);
    void sendEvents(call, asked, drained);
  });
}

/** Never rejects. */
async function sendEvents(
  { exchange, parts, requestId, signal }: TupleCall,
  asked: ReturnType<typeof watchRequestOf>,
  drained: AbortSignal,
): Promise<void> {
  let hasBegun = false;
  const begin = (): void => {
    if (hasBegun) return;
    hasBegun = true;
    exchange.begin(200, 'text/event-stream', [
      'cache-control',
      'no-store',
      'x-request-id',
      requestId,
    ]);
    exchange.write(':\n\n');
  };
  try {
    if (asked instanceof AppError) throw asked;
    const events = parts.tupleWatch.watch(asked, AbortSignal.any([signal, drained]), begin);
    for await (const event of events) {
      begin();
      const message = watchEventToProto(event);
      const data = JSON.stringify(toJson(WatchResponseSchema, message, JSON_OPTIONS));
      const text = `event: ${message.kind.case ?? ''}\nid: ${event.cursor}\ndata: ${data}\n\n`;
      await writeTo(exchange, text, parts.stallMs);
      if (exchange.isEnded) return;
    }
  } catch (error) {
    const cause = drained.aborted && !signal.aborted ? drained.reason : error;
    const shown = shownError(parts, cause, requestId, 'Watch');
    if (!hasBegun) return sendConnectError(exchange, shown, requestId);
    if (error instanceof StalledError) parts.onStalled('Watch');
    await finishWith(exchange, `event: error\ndata: ${errorBody(shown)}\n\n`, parts.stallMs);
  }
}
