/** What the notification service stores and delivers. Ids are opaque text; times are milliseconds since the epoch. */
import type { JsonObject } from '../../shared/json.ts';

/** A way to a user, by its number in notify.v1.Channel. What it is, the registry says (notify/channels/registry.ts). */
export type Channel = number;
/** The open streams of the user's devices; every other channel goes to endpoints. */
export const LIVE_CHANNEL: Channel = 1;

/** The only values of the label `device_type`. */
export const DEVICE_TYPES = ['web', 'ios', 'android', 'desktop', 'other'] as const;
export type DeviceType = (typeof DEVICE_TYPES)[number];

/** Whose stream it is. */
export type UserKey = { readonly tenantId: string; readonly userId: string };

export const DELIVERY_STATUSES = ['pending', 'sent', 'dead'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export type Delivery = {
  readonly channel: Channel;
  readonly endpointId: string;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  /** '' when no attempt failed. */
  readonly lastError: string;
};

/** What a caller asks for, checked. */
export type NewNotification = UserKey & {
  /** UUIDv7. */
  readonly id: string;
  readonly title: string;
  readonly body: string;
  readonly data: JsonObject | null;
  /** Without repeats, ascending. */
  readonly channels: readonly Channel[];
  /** '' for none. */
  readonly dedupeKey: string;
  readonly createdAtMs: number;
};

export type Notification = Omit<NewNotification, 'dedupeKey'> & {
  /** From 1, without gaps, for each user; commit order is sequence order. */
  readonly sequence: number;
  readonly readAtMs: number | null;
  readonly deliveries: readonly Delivery[];
};

export type Endpoint = {
  readonly tenantId: string;
  readonly id: string;
  /** '' for every user of the tenant; webhooks only. */
  readonly userId: string;
  readonly channel: Channel;
  /** An http(s) URL or a mail address. */
  readonly address: string;
};

/** A delivery that is due, with all that an attempt needs. Leased to the process that claimed it. */
export type DueDelivery = {
  readonly notification: Omit<Notification, 'deliveries'>;
  readonly endpoint: Endpoint;
  /** The newest first; none for email, nor where none can be read. Secret. */
  readonly signingSecrets: readonly string[];
  /** Attempts made before this one. */
  readonly attempts: number;
  /** Not of a notification, but to see whether the endpoint takes one. */
  readonly isTest: boolean;
};

/** An endpoint with what signs for it. Secret. */
export type Addressee = Pick<DueDelivery, 'endpoint' | 'signingSecrets'>;
