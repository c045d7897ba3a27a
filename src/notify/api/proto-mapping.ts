import { create, type JsonObject as ProtoJsonObject } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Channel as ProtoChannel,
  DeliveryStatus as ProtoDeliveryStatus,
  type Endpoint as ProtoEndpoint,
  EndpointSchema,
  type Notification as ProtoNotification,
  NotificationSchema,
} from '../../gen/notify/v1/notify_service_pb.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ChannelRegistry } from '../channels/registry.ts';
import {
  type Channel,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  type Endpoint,
  type Notification,
} from '../model/notification.ts';
import { invalidField } from '../model/reasons.ts';

const STATUS_TO_PROTO = {
  pending: ProtoDeliveryStatus.PENDING,
  sent: ProtoDeliveryStatus.SENT,
  dead: ProtoDeliveryStatus.DEAD,
} as const satisfies Record<DeliveryStatus, ProtoDeliveryStatus>;

/** Without repeats, ascending. Errors: FIELD_REQUIRED, FIELD_INVALID naming `field`. */
export function channelsFromProto(
  registry: ChannelRegistry,
  given: readonly ProtoChannel[],
  field = 'channels',
): readonly Channel[] {
  if (given.length === 0) throw new AppError('FIELD_REQUIRED', `${field} is required`, { field });
  if (!given.every((channel) => registry.find(channel) !== undefined)) {
    const names = registry.all.map(({ name }) => `CHANNEL_${name.toUpperCase()}`);
    throw invalidField(field, `must be ${alternatives(names)}`);
  }
  const wanted = new Set<number>(given);
  return registry.all.map(({ number }) => number).filter((channel) => wanted.has(channel));
}

/** A channel has the number of its value; one that the schema does not name is a number there, too. */
export function channelToProto(channel: Channel): ProtoChannel {
  return channel as ProtoChannel;
}

/** Names what may be given: `a, b or c`. */
export function alternatives(names: readonly string[]): string {
  const last = names.at(-1) ?? '';
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} or ${last}`;
}

export function notificationToProto(notification: Notification): ProtoNotification {
  const { readAtMs, data } = notification;
  return create(NotificationSchema, {
    id: notification.id,
    tenantId: notification.tenantId,
    userId: notification.userId,
    sequence: BigInt(notification.sequence),
    title: notification.title,
    body: notification.body,
    // Stored as it came from a Struct.
    ...(data === null ? {} : { data: data as ProtoJsonObject }),
    channels: notification.channels.map(channelToProto),
    createdAt: timestampOf(notification.createdAtMs),
    ...(readAtMs === null ? {} : { readAt: timestampOf(readAtMs) }),
    deliveries: notification.deliveries.map((delivery) => ({
      channel: channelToProto(delivery.channel),
      endpointId: delivery.endpointId,
      status: STATUS_TO_PROTO[delivery.status],
      attempts: delivery.attempts,
      lastError: delivery.lastError,
    })),
  });
}

/** Null for any. Errors: FIELD_INVALID. */
export function statusFromProto(status: ProtoDeliveryStatus): DeliveryStatus | null {
  if (status === ProtoDeliveryStatus.UNSPECIFIED) return null;
  const known = DELIVERY_STATUSES.find((one) => STATUS_TO_PROTO[one] === status);
  if (known === undefined) throw invalidField('status', 'must be pending, sent or dead');
  return known;
}

export function statusToProto(status: DeliveryStatus): ProtoDeliveryStatus {
  return STATUS_TO_PROTO[status];
}

export function endpointToProto(endpoint: Endpoint): ProtoEndpoint {
  return create(EndpointSchema, { ...endpoint, channel: channelToProto(endpoint.channel) });
}

export function timestampOf(ms: number): Timestamp {
  return timestampFromMs(ms);
}
