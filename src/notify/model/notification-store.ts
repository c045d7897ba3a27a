import type {
  Endpoint,
  DueDelivery,
  NewNotification,
  Notification,
  OutboundChannel,
  UserKey,
} from './notification.ts';

export type PutResult = { readonly notification: Notification; readonly isDuplicate: boolean };

export type ListQuery = UserKey & {
  readonly unreadOnly: boolean;
  readonly limit: number;
  /** Only sequences below this; Infinity for the first page. */
  readonly beforeSequence: number;
};

/** Which delivery: a notification on its way to one endpoint. */
export type DeliveryKey = { readonly notificationId: string; readonly endpointId: string };

/** Which endpoint: ids are unique within a tenant. */
export type EndpointKey = { readonly tenantId: string; readonly endpointId: string };

/** What a claim leaves to others or for later, so that one slow endpoint does not take every place. */
export type ClaimFilter = {
  readonly channels: readonly OutboundChannel[];
  /** Deliveries to one endpoint that one claim takes. */
  readonly perEndpointMax: number;
  readonly without: readonly EndpointKey[];
};

export type StoredListener = (user: UserKey | null, sequence: number) => void;

/** Due deliveries that a claim looks at, times its limit, to find some of different endpoints. */
export const CLAIM_LOOK_FACTOR = 8;
/** Endpoints that one tenant may have. */
export const ENDPOINTS_PER_TENANT_MAX = 1_000;

/**
 * Where notifications are kept. Two drivers, `memory` and `postgres`, pass the same tests
 * (test/notify/store-contract.ts). Errors of every method: STORE_UNAVAILABLE when the database is away.
 */
export interface NotificationStore {
  /**
   * Stores each, in order, and a pending delivery for every endpoint that its outbound channels reach:
   * webhooks of the user and of the whole tenant, mail addresses of the user. One with the dedupe key
   * of an earlier one of the user stores nothing and returns the earlier one. When it resolves, what it
   * says is durable (as far as the driver is). All or nothing.
   */
  put(batch: readonly NewNotification[]): Promise<readonly PutResult[]>;
  /** Newest first. */
  list(query: ListQuery): Promise<readonly Notification[]>;
  /** Notifications for the live channel with a sequence above `sequence`, oldest first. */
  liveAfter(user: UserKey, sequence: number, limit: number): Promise<readonly Notification[]>;
  /** The sequence of the user's newest notification, 0 without any; and the oldest that is kept. */
  bounds(user: UserKey): Promise<{ readonly head: number; readonly oldest: number }>;
  unreadCount(user: UserKey): Promise<number>;
  /**
   * Marks by id (all must be the user's) or everything up to a sequence; those read before keep their time.
   * Errors: NOTIFICATION_UNKNOWN with metadata.id; nothing is marked then.
   */
  markRead(
    user: UserKey,
    which: { readonly ids: readonly string[] } | { readonly upToSequence: number },
    atMs: number,
  ): Promise<{ readonly markedCount: number; readonly unreadCount: number }>;
  /** `signingSecret` undefined keeps the one there is. Errors: RESULT_TOO_LARGE beyond the limit of a tenant. */
  putEndpoint(endpoint: Endpoint, signingSecret: string | undefined): Promise<void>;
  hasSigningSecret(tenantId: string, id: string): Promise<boolean>;
  /** Its pending deliveries die with it. False when there was none. */
  deleteEndpoint(tenantId: string, id: string): Promise<boolean>;
  /** By id. */
  listEndpoints(tenantId: string): Promise<readonly Endpoint[]>;
  /**
   * Takes up to `limit` deliveries that are due, oldest first, and hides them from other claims until
   * `leaseMs` has passed. Fewer do not mean that no more are due: the filter or another claim holds them.
   */
  claimDue(
    nowMs: number,
    leaseMs: number,
    limit: number,
    filter?: ClaimFilter,
  ): Promise<readonly DueDelivery[]>;
  markSent(key: DeliveryKey, attempts: number): Promise<void>;
  markRetry(
    key: DeliveryKey,
    attempts: number,
    error: string,
    nextAttemptMs: number,
  ): Promise<void>;
  markDead(key: DeliveryKey, attempts: number, error: string): Promise<void>;
  /** Pending deliveries, and the age of the oldest one that is due, milliseconds. */
  backlog(nowMs: number): Promise<{ readonly pending: number; readonly oldestDueMs: number }>;
  /** When the next pending delivery of these channels (all) is due; undefined when none waits. */
  nextDueMs(channels?: readonly OutboundChannel[]): Promise<number | undefined>;
  /** Forgets notifications made before `beforeMs`, with their deliveries; at most `limit` at once. Returns how many. */
  purge(beforeMs: number, limit: number): Promise<number>;
  /**
   * Told of each notification that was stored, by whichever process: its user and sequence. A hint: it
   * may repeat and come late; null: any user's stream may have grown. One listener.
   */
  onStored(listener: StoredListener): void;
  /** Fails when the store cannot be used. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
