import { create, type JsonObject as ProtoJsonObject } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  Channel as ProtoChannel,
  DeliveryStatus as ProtoDeliveryStatus,
  type Endpoint as ProtoEndpoint,
  EndpointSchema,
  type Notification as ProtoNotification,
  NotificationSchema,
} from '../../gen/notify/v1/notify_service_pb.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  CHANNELS,
  type Channel,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  type Endpoint,
  type Notification,
} from '../model/notification.ts';
import { invalidField } from './notify-error.ts';

const CHANNEL_TO_PROTO = {
  live: ProtoChannel.LIVE,
  webhook: ProtoChannel.WEBHOOK,
  email: ProtoChannel.EMAIL,
} as const satisfies Record<Channel, ProtoChannel>;

const STATUS_TO_PROTO = {
  pending: ProtoDeliveryStatus.PENDING,
  sent: ProtoDeliveryStatus.SENT,
  dead: ProtoDeliveryStatus.DEAD,
} as const satisfies Record<DeliveryStatus, ProtoDeliveryStatus>;

/** Without repeats, in the order of CHANNELS. Errors: FIELD_REQUIRED, FIELD_INVALID naming `field`. */
export function channelsFromProto(
  given: readonly ProtoChannel[],
  field = 'channels',
): readonly Channel[] {
  const known = CHANNELS.filter((channel) => given.includes(CHANNEL_TO_PROTO[channel]));
  if (given.length === 0) throw new AppError('FIELD_REQUIRED', `${field} is required`, { field });
  const numbers: readonly ProtoChannel[] = Object.values(CHANNEL_TO_PROTO);
  if (!given.every((channel) => numbers.includes(channel))) {
    throw invalidField(field, 'must be CHANNEL_LIVE, CHANNEL_WEBHOOK or CHANNEL_EMAIL');
  }
  return known;
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
    channels: notification.channels.map((channel) => CHANNEL_TO_PROTO[channel]),
    createdAt: timestampOf(notification.createdAtMs),
    ...(readAtMs === null ? {} : { readAt: timestampOf(readAtMs) }),
    deliveries: notification.deliveries.map((delivery) => ({
      channel: CHANNEL_TO_PROTO[delivery.channel],
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

export function channelToProto(channel: Channel): ProtoChannel {
  return CHANNEL_TO_PROTO[channel];
}

export function endpointToProto(endpoint: Endpoint): ProtoEndpoint {
  return create(EndpointSchema, { ...endpoint, channel: CHANNEL_TO_PROTO[endpoint.channel] });
}

export function timestampOf(ms: number): Timestamp {
  return timestampFromMs(ms);
}
