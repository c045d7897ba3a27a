import { DeliveryService } from '../../gen/notify/v1/delivery_service_pb.ts';
import { NotifyService } from '../../gen/notify/v1/notify_service_pb.ts';
import { StreamService } from '../../gen/notify/v1/stream_service_pb.ts';
import type { BodyBudget } from '../../http/body-budget.ts';
import { createHttpServer, type HttpServer } from '../../http/http-server.ts';
import type { Authenticator } from '../../http/service-tokens.ts';
import type { Logger } from '../../observability/logger.ts';
import type { Clock } from '../../shared/clock.ts';
import type { IdSource } from '../../shared/ids.ts';
import { addClientRoutes } from '../api/client-routes.ts';
import { type ConnectService, serveConnect } from '../api/connect-listener.ts';
import { createDeliveryService } from '../api/delivery-service.ts';
import { createHostGuard } from '../api/host-guard.ts';
import { createNotifyService } from '../api/notify-service.ts';
import { createStreamService } from '../api/stream-service.ts';
import type { Dispatcher } from '../channels/dispatcher.ts';
import type { NotifyLog } from '../core/event-log.ts';
import type { NotificationWriter } from '../core/notification-writer.ts';
import type { Refusals } from '../core/refusals.ts';
import type { LiveHub } from '../live/live-hub.ts';
import type { StreamGate } from '../live/stream-gate.ts';
import type { StreamTokens } from '../live/stream-token.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import type { Channel, OutboundChannel } from '../model/notification.ts';
import type { NotifyMetrics } from './metrics.ts';
import type { NotifySettings } from './settings.ts';

const BODY_BYTES_MAX = 128 * 1024;
const CALL_TIMEOUT_MS_MAX = 30_000;
/** Connections beyond the streams, so that a refusal can be answered. */
const CONNECTIONS_SPARE = 256;

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
  readonly channels: ReadonlySet<Channel>;
  readonly isClosing: () => boolean;
};

/** The listener of backends, not yet bound. */
export function createInternalServer(parts: ListenerParts): HttpServer {
  const { settings, logger, log, metrics, refusals } = parts;
  const onIncident = refusals.incidentOf('internal');
  const server = createHttpServer({
    host: settings.host,
    port: settings.internalPort,
    bodyBudget: parts.bodyBudget,
    limits: { http1IdleMs: settings.httpIdleMs },
    hostGuard: createHostGuard(settings, onIncident),
    onIncident,
  });
  serveConnect({
    server,
    services: servicesOf(parts),
    authenticator: parts.authenticator,
    bodyBytesMax: BODY_BYTES_MAX,
    timeoutMsMax: CALL_TIMEOUT_MS_MAX,
    onCall: ({ procedure, method, code, durationMs, requestId }) => {
      if (method === NotifyService.method.notify.localName) metrics.request(code);
      log.rpc(procedure, durationMs, requestId);
    },
    onMessageRefused: metrics.messageRefused,
    onInternalError: (rpc, requestId, error) => {
      logger.error({ rpc, request_id: requestId, error }, 'call_failed');
    },
  });
  return server;
}

function servicesOf(parts: ListenerParts): readonly ConnectService[] {
  const { settings, store, metrics, gate, dispatchers } = parts;
  const ofChannel = (channel: OutboundChannel): Dispatcher | undefined =>
    dispatchers.find((one) => one.channel === channel);
  return [
    {
      service: NotifyService,
      handlers: createNotifyService({ ...parts, allowsPrivateWebhooks: settings.webhookPrivate }),
    },
    {
      service: DeliveryService,
      handlers: createDeliveryService({
        ...parts,
        testOf: (channel) => {
          const dispatcher = ofChannel(channel);
          return dispatcher === undefined ? undefined : (delivery) => dispatcher.test(delivery);
        },
        wake: () => dispatchers.forEach((one) => one.wake()),
      }),
    },
    {
      service: StreamService,
      handlers: createStreamService({
        store,
        onOrdered: (kind) => {
          metrics.streamOrder(kind);
          gate.hint();
        },
      }),
    },
  ];
}

/** The listener of users' devices, not yet bound. */
export function createClientServer(parts: ListenerParts): HttpServer {
  const { settings, refusals } = parts;
  const onIncident = refusals.incidentOf('client');
  const server = createHttpServer({
    host: settings.host,
    port: settings.clientPort,
    bodyBudget: parts.bodyBudget,
    limits: {
      connectionsMax: settings.connectionsMax + CONNECTIONS_SPARE,
      http1IdleMs: settings.httpIdleMs,
    },
    hostGuard: createHostGuard(settings, onIncident),
    onIncident,
  });
  addClientRoutes({ ...settings, ...parts, server, isLive: settings.liveConnections });
  return server;
}
