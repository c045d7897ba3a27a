import { DeliveryService } from '../../gen/notify/v1/delivery_service_pb.ts';
import { NotifyService } from '../../gen/notify/v1/notify_service_pb.ts';
import { StreamService } from '../../gen/notify/v1/stream_service_pb.ts';
import type { BodyBudget } from '../../http/bodies/body-budget.ts';
import type { ConnectAdapter, ServiceRouter } from '../../http/connect/adapter-options.ts';
import { createConnectAdapter } from '../../http/connect/adapter.ts';
import { createHostGuard } from '../../http/connect/host-guard.ts';
import type { HostGuard } from '../../http/exchange/host-guard.ts';
import { HostAllowList } from '../../http/host-allow-list.ts';
import { createHttpServer, type HttpServer } from '../../http/listener/http-server.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import type { Logger } from '../../observability/logger.ts';
import type { IdSource } from '../../shared/ids.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { addClientRoutes } from '../api/client-routes.ts';
import { createDeliveryService } from '../api/delivery-service.ts';
import { malformedMessage } from '../api/malformed-message.ts';
import { NOTIFY_ERRORS } from '../api/notify-error.ts';
import { createNotifyService } from '../api/notify-service.ts';
import { createStreamService } from '../api/stream-service.ts';
import { createTokenCallers } from '../api/token-callers.ts';
import type { Dispatcher } from '../channels/dispatcher.ts';
import type { ChannelRegistry } from '../channels/registry.ts';
import type { NotifyLog } from '../core/event-log.ts';
import type { NotificationWriter } from '../core/notification-writer.ts';
import type { Refusals } from '../core/refusals.ts';
import type { LiveHub } from '../live/live-hub.ts';
import type { StreamGate } from '../live/stream-gate.ts';
import type { StreamTokens } from '../live/stream-token.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import type { Channel } from '../model/notification.ts';
import type { NotifyMetrics } from './metrics.ts';
import type { NotifySettings } from './settings.ts';

const BODY_BYTES_MAX = 128 * 1024;
const CALL_TIMEOUT_MS_MAX = 30_000;
/** Connections beyond the streams, so that a refusal can be answered. */
const CONNECTIONS_SPARE = 256;

const SERVICES = [NotifyService, DeliveryService, StreamService];
const METHOD_PATHS: ReadonlySet<string> = new Set(
  SERVICES.flatMap(({ typeName, methods }) => methods.map(({ name }) => `/${typeName}/${name}`)),
);
/** The method whose calls are counted. */
const NOTIFY = `${NotifyService.typeName}/${NotifyService.method.notify.name}`;

/** What both listeners are made of. */
export type ListenerParts = {
  readonly settings: NotifySettings;
  readonly logger: Logger;
  readonly log: NotifyLog;
  readonly refusals: Refusals;
  readonly metrics: NotifyMetrics;
  readonly bodyBudget: BodyBudget;
  readonly store: NotificationStore;
  readonly writer: NotificationWriter;
  readonly hub: LiveHub;
  readonly gate: StreamGate;
  readonly dispatchers: readonly Dispatcher[];
  /** Of the internal listener. */
  readonly authenticator: Authenticator;
  readonly tokens: StreamTokens;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly registry: ChannelRegistry;
  /** Those of it that are set up. */
  readonly channels: ReadonlySet<Channel>;
  readonly isClosing: () => boolean;
};

/** The listener of backends, not yet bound: Connect, gRPC-Web and gRPC, over HTTP/1.1 and HTTP/2. */
export function createInternalServer(parts: ListenerParts): HttpServer {
  const { settings, refusals } = parts;
  const onIncident = refusals.incidentOf('internal');
  const server = createHttpServer({
    host: settings.host,
    port: settings.internalPort,
    bodyBudget: parts.bodyBudget,
    http1: settings.http1Parser,
    limits: { http1IdleMs: settings.httpIdleMs },
    hostGuard: hostGuardOf(settings, onIncident),
    http2: {
      onStream: (stream, headers, deadlines) => adapter.handleHttp2(stream, headers, deadlines),
    },
    onIncident,
  });
  const adapter = createAdapter(parts, server);
  for (const path of adapter.paths) server.route('POST', path, adapter.handleHttp1);
  server.fallback(adapter.handleHttp1);
  return server;
}

function createAdapter(parts: ListenerParts, { unread }: HttpServer): ConnectAdapter {
  const { logger, log, metrics } = parts;
  return createConnectAdapter({
    routes: (router) => addServices(router, parts),
    callers: createTokenCallers(parts.authenticator, METHOD_PATHS),
    errors: NOTIFY_ERRORS,
    malformed: malformedMessage,
    isPlainHttpTaken: true,
    bodyBudget: parts.bodyBudget,
    unread,
    readMaxBytes: BODY_BYTES_MAX,
    timeoutMsMax: CALL_TIMEOUT_MS_MAX,
    onMessageRefused: metrics.messageRefused,
    onCall: ({ rpc, requestId, code, durationMs }) => {
      if (rpc === NOTIFY) metrics.request(code);
      log.rpc(`/${rpc}`, durationMs, requestId);
    },
    report: ({ rpc, requestId, error }) => {
      logger.error({ rpc: `/${rpc}`, request_id: requestId, error }, 'call_failed');
    },
  });
}

function addServices(router: ServiceRouter, parts: ListenerParts): void {
  const { settings, store, metrics, gate, dispatchers } = parts;
  const ofChannel = (channel: Channel): Dispatcher | undefined =>
    dispatchers.find((one) => one.channel === channel);
  const notify = createNotifyService({ ...parts, channelSettings: settings });
  const delivery = createDeliveryService({
    ...parts,
    testOf: (channel) => {
      const dispatcher = ofChannel(channel);
      return dispatcher === undefined ? undefined : (due) => dispatcher.test(due);
    },
    wake: () => dispatchers.forEach((one) => one.wake()),
  });
  const stream = createStreamService({
    store,
    onOrdered: (kind) => {
      metrics.streamOrder(kind);
      gate.hint();
    },
  });
  router.service(NotifyService, notify);
  router.service(DeliveryService, delivery);
  router.service(StreamService, stream);
}

/** The listener of users' devices, not yet bound. */
export function createClientServer(parts: ListenerParts): HttpServer {
  const { settings, refusals } = parts;
  const onIncident = refusals.incidentOf('client');
  const server = createHttpServer({
    host: settings.host,
    port: settings.clientPort,
    bodyBudget: parts.bodyBudget,
    http1: settings.http1Parser,
    limits: {
      connectionsMax: settings.connectionsMax + CONNECTIONS_SPARE,
      http1IdleMs: settings.httpIdleMs,
    },
    hostGuard: hostGuardOf(settings, onIncident),
    onIncident,
  });
  addClientRoutes({ ...settings, ...parts, server, isLive: settings.liveConnections });
  return server;
}

/**
 * While no service token is set: refuses what is not addressed to a name of this service, with 403
 * permission_denied. `onIncident` is notified the name. Undefined once there are tokens.
 */
export function hostGuardOf(
  settings: NotifySettings,
  onIncident: (event: string, detail: string) => void,
): HostGuard | undefined {
  if (settings.serviceAuthTokens.length > 0) return undefined;
  const hosts = new HostAllowList(settings);
  return createHostGuard(hosts, 'NOTIFY_ALLOWED_HOSTS', NOTIFY_ERRORS, onIncident);
}
