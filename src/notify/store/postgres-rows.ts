import type { JsonObject } from '../../shared/json.ts';
import {
  type Channel,
  DELIVERY_STATUSES,
  type Delivery,
  type DeliveryStatus,
  type NewNotification,
  type Notification,
} from '../model/notification.ts';

/** Rows of migrations/notify and their form in the model. */

export type NotificationRow = {
  readonly id: string;
  readonly tenant_id: string;
  readonly user_id: string;
  readonly sequence: string;
  readonly title: string;
  readonly body: string;
  readonly data: JsonObject | null;
  readonly channels: number;
  readonly created_ms: string;
  readonly read_ms: string | null;
  /** [endpoint id, channel, status, attempts, last error], by endpoint id. */
  readonly deliveries: readonly (readonly [string, number, number, number, string])[];
};

/** The columns of a NotificationRow, of `n`. Times as whole milliseconds. */
export const NOTIFICATION_COLUMNS = `
  n.id, n.tenant_id, n.user_id, n.sequence, n.title, n.body, n.data, n.channels,
  round(extract(epoch from n.created_at) * 1000)::bigint as created_ms,
  round(extract(epoch from n.read_at) * 1000)::bigint as read_ms`;

/** Its deliveries, for queries that show them. */
export const DELIVERIES_COLUMN = `
  (select coalesce(jsonb_agg(
      jsonb_build_array(d.endpoint_id, d.channel, d.status, d.attempts, d.last_error)
      order by d.endpoint_id), '[]')
    from notify.delivery d where d.notification_id = n.id) as deliveries`;

/** A channel is kept as one bit, so that a number holds all channels of a notification. */
export function bitOfChannel(channel: Channel): number {
  return 1 << (channel - 1);
}

export function bitsOfChannels(channels: readonly Channel[]): number {
  return channels.reduce((bits, channel) => bits | bitOfChannel(channel), 0);
}

/** The channel of a bit. O(1). */
export function channelOfBit(bit: number): Channel {
  return 32 - Math.clz32(bit);
}

/** The channels of all bits, ascending. */
export function channelsOfBits(bits: number): readonly Channel[] {
  const channels: Channel[] = [];
  for (let left = bits; left !== 0; left &= left - 1) channels.push(channelOfBit(left & -left));
  return channels;
}

export function numberOfStatus(status: DeliveryStatus): number {
  return DELIVERY_STATUSES.indexOf(status) + 1;
}

export function statusOfNumber(number: number): DeliveryStatus {
  return DELIVERY_STATUSES[number - 1] ?? 'pending';
}

export function notificationFromRow(row: NotificationRow): Notification {
  const deliveries = row.deliveries.map(([endpointId, channel, status, attempts, lastError]) => {
    const delivery: Delivery = {
      channel: channelOfBit(channel),
      endpointId,
      status: statusOfNumber(status),
      attempts,
      lastError,
    };
    return delivery;
  });
  return { ...bareNotificationFromRow(row), deliveries };
}

/** Without its deliveries. */
export function bareNotificationFromRow(
  row: Omit<NotificationRow, 'deliveries'>,
): Omit<Notification, 'deliveries'> {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    userId: row.user_id,
    sequence: Number(row.sequence),
    title: row.title,
    body: row.body,
    data: row.data,
    channels: channelsOfBits(row.channels),
    createdAtMs: Number(row.created_ms),
    readAtMs: row.read_ms === null ? null : Number(row.read_ms),
  };
}

/** One member of the argument of notify.put. */
export function putMember(request: NewNotification): object {
  return {
    id: request.id,
    tenant_id: request.tenantId,
    user_id: request.userId,
    title: request.title,
    body: request.body,
    data: request.data,
    channels: bitsOfChannels(request.channels),
    dedupe_key: request.dedupeKey,
    created_at: new Date(request.createdAtMs).toISOString(),
  };
}
