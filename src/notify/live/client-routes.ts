import type { HttpExchange } from '../../http/http-exchange.ts';
import type { HttpServer } from '../../http/http-server.ts';
import { requestIdOf } from '../../http/request-id.ts';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/clock.ts';
import type { IdSource } from '../../shared/ids.ts';
import { errorAnswer, invalidField } from '../api/notify-error.ts';
import type { NotifyLog, StreamIdentity } from '../event-log.ts';
import type { NotifyMetrics } from '../metrics.ts';
import { LiveConnection } from './live-connection.ts';
import type { LiveHub } from './live-hub.ts';
import type { StreamTokens } from './stream-token.ts';

export type ClientRoutesOptions = {
  readonly server: HttpServer;
  readonly hub: LiveHub;
  readonly tokens: StreamTokens;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly metrics: NotifyMetrics;
  readonly log: NotifyLog;
  /** `*` for any. */
  readonly allowedOrigins: readonly string[];
  readonly bufferEventsMax: number;
  /** False: streams are switched off. */
  readonly isLive: boolean;
  readonly isDraining: () => boolean;
};

export const STREAM_PATH = '/v1/stream';
const SEQUENCE = /^\d{1,15}$/;
const RETRY_AFTER = ['retry-after', '5'];

/**
 * GET /v1/stream: a user's live stream. The token comes as `Authorization: Bearer` or, since EventSource
 * cannot set headers, as `?access_token=`. `Last-Event-ID`, or `?last_event_id=`, replays what followed.
 */
export function addClientRoutes(options: ClientRoutesOptions): void {
  options.server.route('GET', STREAM_PATH, (exchange) => open(options, exchange));
  options.server.fallback((exchange) => {
    const cors = corsHeaders(options.allowedOrigins, exchange.header('origin'));
    if (exchange.method() === 'OPTIONS' && cors !== null) {
      exchange.sendEmpty(204, [
        ...cors,
        'access-control-allow-methods',
        'GET, OPTIONS',
        'access-control-allow-headers',
        'Authorization, Last-Event-ID',
        'access-control-max-age',
        '600',
      ]);
    } else {
      refuse(exchange, new AppError('METHOD_UNKNOWN', 'no such path'), cors ?? []);
    }
  });
}

function open(options: ClientRoutesOptions, exchange: HttpExchange): void {
  const cors = corsHeaders(options.allowedOrigins, exchange.header('origin'));
  if (cors === null) {
    const problem = 'this origin may not open streams';
    return refuse(exchange, new AppError('ORIGIN_NOT_ALLOWED', problem), []);
  }
  const requestId = requestIdOf(exchange.header('x-request-id'));
  const headers = [...cors, 'x-request-id', requestId];
  try {
    const { identity, lastSequence } = admit(options, exchange);
    const { metrics, log, hub, bufferEventsMax } = options;
    const connection = new LiveConnection({
      exchange,
      identity,
      headers,
      bufferEventsMax,
      metrics,
      log,
      onClosed: (closed) => {
        hub.remove(closed);
        metrics.streamEvents.close.add();
        log.streamClosed(identity);
      },
    });
    log.streamOpened(identity);
    hub.add(connection, lastSequence);
  } catch (error) {
    refuse(exchange, error, headers);
  }
}

/** Errors: STREAM_TOKEN_INVALID, STREAM_LIMIT, FIELD_INVALID, CHANNEL_UNAVAILABLE, SHUTTING_DOWN. */
function admit(
  options: ClientRoutesOptions,
  exchange: HttpExchange,
): { readonly identity: StreamIdentity; readonly lastSequence: number | undefined } {
  if (options.isDraining()) throw new AppError('SHUTTING_DOWN', 'shutting down');
  if (!options.isLive) throw new AppError('STORE_UNAVAILABLE', 'live streams are switched off');
  const query = new URLSearchParams(exchange.query());
  const bearer = /^bearer +(.*)$/i.exec(exchange.header('authorization'))?.[1];
  const token = bearer ?? query.get('access_token') ?? '';
  const { tenantId, userId, deviceType } = options.tokens.check(token, options.clock.nowMs());
  options.hub.assertRoom({ tenantId, userId });
  const header = exchange.header('last-event-id');
  const last = header === '' ? (query.get('last_event_id') ?? '') : header;
  if (last !== '' && !SEQUENCE.test(last)) {
    throw invalidField('last_event_id', 'must be the id of an event of this stream');
  }
  return {
    identity: { tenantId, userId, deviceType, connectionId: options.ids.uuid() },
    lastSequence: last === '' ? undefined : Number(last),
  };
}

/** The headers that let a page of `origin` read the answer; null when it may not. */
function corsHeaders(allowed: readonly string[], origin: string): readonly string[] | null {
  if (allowed.includes('*')) return ['access-control-allow-origin', '*'];
  if (origin === '') return ['vary', 'origin'];
  if (!allowed.includes(origin)) return null;
  return ['access-control-allow-origin', origin, 'vary', 'origin'];
}

function refuse(exchange: HttpExchange, error: unknown, headers: readonly string[]): void {
  const { status, body } = errorAnswer(error);
  const extra = status === 429 || status === 503 ? [...headers, ...RETRY_AFTER] : headers;
  exchange.send(status, 'application/json', body, extra);
}
