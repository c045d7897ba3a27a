import { internalError } from '../../http/connect/protocol/call-errors.ts';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import type { HttpServer } from '../../http/listener/http-server.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../../http/request-id.ts';
import { bearerToken } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';
import type { IdSource } from '../../shared/ids.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { NotifyLog } from '../core/event-log.ts';
import type { Refusals } from '../core/refusals.ts';
import { LiveConnection } from '../live/live-connection.ts';
import type { LiveHub } from '../live/live-hub.ts';
import type { LiveMetrics } from '../live/live-metrics.ts';
import type { StreamGate } from '../live/stream-gate.ts';
import type { StreamTokens } from '../live/stream-token.ts';
import type { UserKey } from '../model/notification.ts';
import { invalidField } from '../model/reasons.ts';
import type { StreamGrant, StreamStanding } from '../model/stream-order.ts';
import { NOTIFY_ERRORS } from './notify-error.ts';

export type ClientRoutesOptions = {
  readonly server: HttpServer;
  readonly hub: LiveHub;
  readonly gate: Pick<StreamGate, 'admit'>;
  readonly tokens: StreamTokens;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly metrics: LiveMetrics;
  readonly log: NotifyLog;
  readonly refusals: Pick<Refusals, 'stream'>;
  /** `*` for any. */
  readonly allowedOrigins: readonly string[];
  readonly bufferEventsMax: number;
  /** False: streams are switched off. */
  readonly isLive: boolean;
  /** Streams are being closed; until then new ones are taken, since EventSource gives up on a refusal. */
  readonly isClosing: () => boolean;
};

const STREAM_PATH = '/v1/stream';
const SEQUENCE = /^\d{1,15}$/;
const RETRY_AFTER = ['retry-after', '5'];
const PREFLIGHT = [
  'access-control-allow-methods',
  'GET, OPTIONS',
  'access-control-allow-headers',
  'Authorization, Cache-Control, Last-Event-ID, X-Request-Id',
  'access-control-max-age',
  '600',
];

/**
 * GET /v1/stream: a user's live stream. The token comes as `Authorization: Bearer` or, since EventSource
 * cannot set headers, as `?access_token=`. `Last-Event-ID`, or `?last_event_id=`, replays what followed.
 */
export function addClientRoutes(options: ClientRoutesOptions): void {
  // Not as a route: a page's preflight needs OPTIONS on the same path.
  options.server.fallback((exchange) => {
    const requestId = requestIdOf(exchange.header(REQUEST_ID_HEADER));
    const cors = corsHeaders(options.allowedOrigins, exchange.header('origin'));
    const headers = [...(cors ?? []), REQUEST_ID_HEADER, requestId];
    const method = exchange.method();
    if (exchange.path() !== STREAM_PATH) {
      refuse(exchange, new AppError('METHOD_UNKNOWN', 'no such path'), headers);
    } else if (cors === null) {
      const error = new AppError('ORIGIN_NOT_ALLOWED', 'this origin may not open streams');
      options.refusals.stream(error, undefined);
      refuse(exchange, error, headers);
    } else if (method === 'GET') {
      open(options, exchange, headers);
    } else if (method === 'OPTIONS') {
      exchange.sendEmpty(204, [...headers, ...PREFLIGHT]);
    } else {
      exchange.sendEmpty(405, [...headers, 'allow', 'GET, OPTIONS']);
    }
  });
}

function open(
  options: ClientRoutesOptions,
  exchange: HttpExchange,
  headers: readonly string[],
): void {
  let user: UserKey | undefined;
  const fail = (error: unknown): void => {
    options.refusals.stream(error, user);
    refuse(exchange, error, headers);
  };
  try {
    const query = new URLSearchParams(exchange.query());
    const grant = grantOf(options, exchange, query);
    user = grant;
    options.hub.assertCapacity(grant);
    const lastSequence = placeOf(exchange, query);
    // Until the store has said what it knows of the token, nothing is done for a client that goes.
    let isGone = false;
    exchange.onAborted(() => (isGone = true));
    const admitted = (standing: StreamStanding): void => {
      if (isGone) return;
      // Others came in while this one waited.
      options.hub.assertCapacity(grant);
      begin(options, exchange, headers, grant, lastSequence, standing);
    };
    options.gate
      .admit(grant, () => isGone, admitted)
      .catch((error: unknown) => {
        if (!isGone) fail(error);
      });
  } catch (error) {
    fail(error);
  }
}

function begin(
  options: ClientRoutesOptions,
  exchange: HttpExchange,
  headers: readonly string[],
  grant: StreamGrant,
  lastSequence: number | undefined,
  { endsWithToken }: StreamStanding,
): void {
  const { tenantId, userId, deviceType } = grant;
  const identity = { tenantId, userId, deviceType, connectionId: options.ids.uuid() };
  const { metrics, log, hub, bufferEventsMax } = options;
  const connection = new LiveConnection({
    exchange,
    identity,
    grant,
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
  if (endsWithToken) hub.setEnd(connection, true);
}

/** Errors: STREAM_TOKEN_INVALID, STREAMS_DISABLED, SHUTTING_DOWN. */
function grantOf(
  options: ClientRoutesOptions,
  exchange: HttpExchange,
  query: URLSearchParams,
): StreamGrant {
  if (options.isClosing()) throw new AppError('SHUTTING_DOWN', 'shutting down');
  if (!options.isLive) throw new AppError('STREAMS_DISABLED', 'live streams are switched off');
  const token = bearerToken(exchange.header('authorization')) ?? query.get('access_token') ?? '';
  return options.tokens.check(token, options.clock.nowMs());
}

/** The last sequence that the client saw; undefined: it begins now. Errors: FIELD_INVALID. */
function placeOf(exchange: HttpExchange, query: URLSearchParams): number | undefined {
  const header = exchange.header('last-event-id');
  const last = header === '' ? (query.get('last_event_id') ?? '') : header;
  if (last === '') return undefined;
  if (!SEQUENCE.test(last)) {
    throw invalidField('last_event_id', 'must be the id of an event of this stream');
  }
  return Number(last);
}

/** The headers that let a page of `origin` read the answer; null when it may not. */
function corsHeaders(allowed: readonly string[], origin: string): readonly string[] | null {
  const exposed = ['access-control-expose-headers', 'x-request-id, retry-after'];
  if (allowed.includes('*')) return ['access-control-allow-origin', '*', ...exposed];
  if (origin === '') return ['vary', 'origin'];
  if (!allowed.includes(origin)) return null;
  return ['access-control-allow-origin', origin, 'vary', 'origin', ...exposed];
}

function refuse(exchange: HttpExchange, error: unknown, headers: readonly string[]): void {
  const shown = internalError(error);
  const status = NOTIFY_ERRORS.httpStatusOfReason(shown.reason);
  const extra = status === 429 || status === 503 ? [...headers, ...RETRY_AFTER] : headers;
  exchange.send(status, 'application/json', NOTIFY_ERRORS.errorBody(shown), extra);
}
