import type { Logger } from '../../observability/logger.ts';
import type { DisabledEndpoint } from '../model/delivery.ts';
import type { DeviceType, UserKey } from '../model/notification.ts';

/** The listeners of the service, as `server_listen` names them. */
export type ListenerName = 'client' | 'internal' | 'metrics';

/** A live stream, as its log lines name it. */
export type StreamIdentity = UserKey & {
  readonly connectionId: string;
  readonly deviceType: DeviceType;
};

/** An attempt that failed. */
type FailedRetry = {
  readonly key: string;
  readonly connectionId: string;
  readonly attempt: number;
  readonly error: string;
  readonly tenantId: string;
  readonly userId: string;
  /** The `webhook-id` of deliveries; undefined for streams. */
  readonly deliveryId?: string;
};

/** The named events of the contract, each with exactly its fields, and nothing of a notification's content. */
export type NotifyLog = ReturnType<typeof createNotifyLog>;

export function createNotifyLog(logger: Logger) {
  return {
    starting: (fields: {
      /** The process to signal. */
      readonly pid: number;
      readonly version: string;
      readonly commit: string;
      readonly store_driver: string;
      readonly live_connections: boolean;
      readonly client_port: number;
      readonly internal_port: number;
      readonly metrics_port: number;
    }): void => logger.info(fields, 'notifyd_starting'),
    listening: (listener: ListenerName, address: string, port: number): void =>
      logger.info({ listener, address, port }, 'server_listen'),
    streamOpened: (stream: StreamIdentity): void =>
      logger.info(streamFields(stream), 'stream_open'),
    streamClosed: (stream: StreamIdentity): void =>
      logger.info(streamFields(stream), 'stream_close'),
    /** One event was dropped, since the buffer of the stream is full. */
    eventQueueFull: (stream: StreamIdentity): void =>
      logger.warn(streamFields(stream), 'event_queue_full'),
    /** `key` says what was tried; `connectionId` the stream or endpoint that it was for. */
    retryFailed: (retry: FailedRetry): void =>
      logger.warn(
        {
          key: retry.key,
          connection_id: retry.connectionId,
          attempt: retry.attempt,
          error: retry.error,
          tenant_id: retry.tenantId,
          user_id: retry.userId,
          ...(retry.deliveryId === undefined ? {} : { delivery_id: retry.deliveryId }),
        },
        'retry_failed',
      ),
    /** Nothing goes to it any more, since nothing has arrived for so long. */
    endpointDisabled: ({ tenantId, endpointId, failingSinceMs }: DisabledEndpoint): void =>
      logger.warn(
        {
          tenant_id: tenantId,
          endpoint_id: endpointId,
          failing_since: new Date(failingSinceMs).toISOString(),
        },
        'endpoint_disabled',
      ),
    rpc: (procedure: string, durationMs: number, requestId: string): void =>
      logger.debug(
        { procedure, duration_ms: Math.round(durationMs * 1000) / 1000, request_id: requestId },
        'rpc',
      ),
    shutdownSignal: (signal: string): void => logger.info({ signal }, 'server_shutdown_signal'),
    shutdownError: (error: string): void => logger.error({ error }, 'server_shutdown_error'),
  };
}

function streamFields(stream: StreamIdentity): object {
  return {
    connection_id: stream.connectionId,
    user_id: stream.userId,
    tenant_id: stream.tenantId,
    device_type: stream.deviceType,
  };
}
