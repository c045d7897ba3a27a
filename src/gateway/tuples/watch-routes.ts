import { toJson } from '@bufbuild/protobuf';
import { WatchResponseSchema } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import type { HttpServer } from '../../http/listener/http-server.ts';
import { REQUEST_ID_HEADER } from '../../http/request-id.ts';
import type { WatchTuplesRequest } from '../../services/watch/tuple-watch.ts';
import { ANSWER_JSON } from '../../shared/answer-json.ts';
import { AppError } from '../../shared/app-error.ts';
import { mustRule, type TargetedRule } from '../callers/method-rules.ts';
import { writeTo } from './slow-reader.ts';
import {
  failStream,
  mustReach,
  openTupleCall,
  type TupleCall,
  type TupleRoutesParts,
} from './tuple-calls.ts';
import { watchRequestOf } from './tuple-queries.ts';
import { watchEventToProto } from './watch-event.ts';

export const WATCH_PATH = '/v1/watch';
/** It reaches what the method of the same name does. */
const RULE: TargetedRule<WatchTuplesRequest> = mustRule('/gatehouse.v1.TupleService/Watch');

/**
 * Adds GET /v1/watch, which sends the events of Watch as server-sent events over HTTP/1.1: `event` is the kind, `id` the
 * cursor, `data` the message in JSON. A client that reconnects sends the last id in `Last-Event-ID`, as browsers' and
 * libraries' clients of such streams do. An error behind the first event is an event of the kind `error`, after which the
 * stream ends. So it is where the client takes nothing for `stallMs`; at most one event waits for it. `drained` ends it when
 * the service stops.
 */
export function addWatchRoute(
  server: HttpServer,
  parts: () => TupleRoutesParts | null,
  drained: AbortSignal,
): void {
  server.route('GET', WATCH_PATH, (exchange) => {
    const lastId = exchange.header('last-event-id');
    const asked = watchRequestOf(exchange.query(), lastId);
    openTupleCall(exchange, parts(), (call) => void sendEvents(call, asked, drained));
  });
}

/** Never rejects. */
async function sendEvents(
  call: TupleCall,
  asked: ReturnType<typeof watchRequestOf>,
  drained: AbortSignal,
): Promise<void> {
  const { exchange, parts, requestId, signal } = call;
  let hasBegun = false;
  const begin = (): void => {
    if (hasBegun) return;
    hasBegun = true;
    exchange.begin(200, 'text/event-stream', [
      'cache-control',
      'no-store',
      REQUEST_ID_HEADER,
      requestId,
    ]);
    exchange.write(':\n\n');
  };
  try {
    if (asked instanceof AppError) throw asked;
    mustReach(call, RULE, asked);
    const events = parts.tupleWatch.watch(asked, AbortSignal.any([signal, drained]), begin);
    for await (const event of events) {
      begin();
      const message = watchEventToProto(event);
      const data = JSON.stringify(toJson(WatchResponseSchema, message, ANSWER_JSON));
      const text = `event: ${message.kind.case ?? ''}\nid: ${event.cursor}\ndata: ${data}\n\n`;
      await writeTo(exchange, text, parts.stallMs);
      if (exchange.isEnded) return;
    }
  } catch (error) {
    const textOf = (body: string): string => `event: error\ndata: ${body}\n\n`;
    await failStream(call, { method: 'Watch', error, drained, hasBegun }, textOf);
  }
}
