import type {
  ClaimRequest,
  DeadQuery,
  DeliveryKey,
  DeliveryPage,
  DeliveryQuery,
  DeliveryRecord,
  DisabledEndpoint,
  EndpointState,
  RetriedPage,
  Settlement,
} from './delivery.ts';
import type {
  Addressee,
  Endpoint,
  DueDelivery,
  NewNotification,
  Notification,
  Channel,
  UserKey,
} from './notification.ts';
import type { NewStreamOrder, StreamGrant, StreamOrders, StreamStanding } from './stream-order.ts';

export type PutResult = { readonly notification: Notification; readonly isDuplicate: boolean };

export type NotificationQuery = UserKey & {
  /** Only what one of these carries. */
  readonly channels: readonly Channel[];
  readonly unreadOnly: boolean;
  readonly limit: number;
  /** Only sequences below this; Infinity for the first page. */
  readonly beforeSequence: number;
};

/** What a claim found. */
export type Claim = {
  readonly deliveries: readonly DueDelivery[];
  /** For the next claim. */
  readonly afterTenant: string;
  /** It ended since it had looked at enough: another one may find more. */
  readonly isCut: boolean;
};

/** `reads`: the newest mark of the user; 0 where nothing is said of it. */
export type StoredListener = (user: UserKey | null, sequence: number, reads: number) => void;

/** Endpoints that one tenant may have. */
export const ENDPOINTS_PER_TENANT_MAX = 1_000;

/**
 * Where notifications are kept (test/notify/store-contract.ts).
 * Errors of every method: STORE_UNAVAILABLE when the database is away.
 */
export interface NotificationStore {
  /**
   * Stores each, in order, and a pending delivery for every endpoint that its outbound channels reach:
   * webhooks of the user and of the whole tenant, mail addresses of the user. One with the dedupe key
   * of an earlier one of the user stores nothing and returns the earlier one. When it resolves, what it
   * says is durable. All or nothing.
   */
  put(batch: readonly NewNotification[]): Promise<readonly PutResult[]>;
  /** Newest first. */
  list(query: NotificationQuery): Promise<readonly Notification[]>;
  /** Notifications for the live channel with a sequence above `sequence`, oldest first. */
  liveAfter(user: UserKey, sequence: number, limit: number): Promise<readonly Notification[]>;
  /** Where the user's stream begins and ends. */
  bounds(user: UserKey): Promise<StreamBounds>;
  /** How many the user has not read of what one of these channels carries. Cost: O(unread of the user). */
  unreadCount(user: UserKey, channels: readonly Channel[]): Promise<number>;
  /**
   * Marks by id (all must be the user's) or everything up to a sequence; those read before keep their time. A call that
   * marks something is the user's next mark. Errors: NOTIFICATION_UNKNOWN with metadata.id; nothing is marked then.
   */
  markRead(user: UserKey, which: MarkedPart, atMs: number): Promise<Marked>;
  /** The user's marks after one, oldest first, at most `limit`, and what is unread by then. */
  readsAfter(user: UserKey, after: number, limit: number): Promise<ReadNews>;
  /** Forgets marks that are two hours old; at most `limit` at once. Returns how many. */
  purgeReads(limit: number): Promise<number>;
  /** `signingSecret` undefined keeps the one there is. Errors: RESULT_TOO_LARGE beyond the limit of a tenant. */
  putEndpoint(endpoint: Endpoint, signingSecret: string | undefined): Promise<void>;
  hasSigningSecret(tenantId: string, id: string): Promise<boolean>;
  /** Its pending deliveries die with it. False when there was none. */
  deleteEndpoint(tenantId: string, id: string): Promise<boolean>;
  /** By id. */
  listEndpoints(tenantId: string): Promise<readonly Endpoint[]>;
  /** How it fares; undefined when there is none. */
  endpointState(tenantId: string, id: string, nowMs: number): Promise<EndpointState | undefined>;
  /** With what signs for it now. Secret. */
  addressee(tenantId: string, id: string, nowMs: number): Promise<Addressee | undefined>;
  /** Lets deliveries go to it again, and forgets how long it failed. False when there is none. */
  enableEndpoint(tenantId: string, id: string): Promise<boolean>;
  /**
   * A new signing secret; the one before goes on signing beside it until `overlapUntilMs`. Repeating the newest one
   * changes nothing but the end of the overlap. False when there is no such endpoint with a secret.
   */
  rotateSecret(
    tenantId: string,
    id: string,
    secret: string,
    overlapUntilMs: number,
  ): Promise<boolean>;
  /**
   * Takes deliveries that are due, round the tenants and round the endpoints of each, within the bounds of the request. Fewer
   * than there are places do not mean that no more are due: bounds or another claim hold them.
   */
  claimDue(request: ClaimRequest): Promise<Claim>;
  /** Claimed, but not tried: due again at once. */
  release(keys: readonly DeliveryKey[], nowMs: number): Promise<void>;
  /**
   * Records how attempts ended, for each delivery that is still pending, and how its endpoint fares. One that has failed
   * for `failingMsMax` (null: for ever) is disabled; those are returned.
   */
  settle(
    batch: readonly Settlement[],
    nowMs: number,
    failingMsMax: number | null,
  ): Promise<readonly DisabledEndpoint[]>;
  /** Newest first. */
  listDeliveries(query: DeliveryQuery, nowMs: number): Promise<DeliveryPage>;
  /** Undefined when the tenant has no such delivery. */
  findDelivery(
    tenantId: string,
    key: DeliveryKey,
    nowMs: number,
  ): Promise<DeliveryRecord | undefined>;
  /**
   * Makes a dead or waiting delivery due at once. Errors: DELIVERY_UNKNOWN, DELIVERY_SENT, DELIVERY_RUNNING, and
   * ENDPOINT_UNKNOWN or ENDPOINT_DISABLED when it could go nowhere.
   */
  retryDelivery(tenantId: string, key: DeliveryKey, nowMs: number): Promise<void>;
  /** Makes dead deliveries due at once, in the order of their notifications. What is no longer dead is left alone. */
  retryDead(query: DeadQuery, nowMs: number): Promise<RetriedPage>;
  /** Gives up what waits for disabled endpoints, at most `limit` at once. Returns how many. */
  giveUpDisabled(limit: number, nowMs: number): Promise<number>;
  /** Forgets dead deliveries that died before `beforeMs`; at most `limit` at once. Returns how many. */
  purgeDead(beforeMs: number, limit: number): Promise<number>;
  /** Pending deliveries, and the age of the oldest one that is due, milliseconds. */
  backlog(nowMs: number): Promise<{ readonly pending: number; readonly oldestDueMs: number }>;
  /** When the next delivery of the channel that waits for its time is due; undefined when none does. */
  nextDueMs(channel: Channel): Promise<number | undefined>;
  /** Forgets notifications made before `beforeMs`, with their deliveries; at most `limit` at once. Returns how many. */
  purge(beforeMs: number, limit: number): Promise<number>;
  /**
   * Notified of each notification that was stored, by whichever process: its user and sequence. A hint: it
   * may repeat and come late; null: any user's stream may have grown. So it is with marks. One listener.
   */
  onStored(listener: StoredListener): void;
  /** The time of issue of a new stream token: after all that was revoked before for this user. */
  issueStreamToken(user: UserKey): Promise<number>;
  streamStanding(grant: StreamGrant): Promise<StreamStanding>;
  /** Once it resolves every instance will hear of it, and `streamStanding` says so. */
  orderStreams(order: NewStreamOrder): Promise<void>;
  /** What was ordered after a revision, oldest first, at most 1,000; undefined: the head alone. */
  streamOrdersAfter(revision: number | undefined): Promise<StreamOrders>;
  /** Forgets orders that concern no token any more; at most `limit` at once. Returns how many. */
  purgeStreamOrders(limit: number): Promise<number>;
  /** Whether streams of the tenant end with their token. */
  endsWithToken(tenantId: string): Promise<boolean>;
  /** Notified that something was ordered, by whichever process. A hint, as of `onStored`. One listener. */
  onOrdered(listener: () => void): void;
  /** Fails when the store cannot be used. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** What users mark as read. Each call that marks something is a mark of its user, numbered from 1 without gaps. */

/** Which notifications of a user: by id, or everything up to a sequence. */
export type MarkedPart = { readonly ids: readonly string[] } | { readonly upToSequence: number };

export type ReadMark = {
  readonly number: number;
  /** Undefined: more was marked than is known by now. */
  readonly which: MarkedPart | undefined;
};

/** What the live channel carried, up to `head`, and the user has not read. */
export type UnreadState = {
  /** The sequence of the user's newest notification, of whatever channel; 0 without any. */
  readonly head: number;
  readonly unreadCount: number;
  /** The newest mark; 0 without any. */
  readonly reads: number;
};

/** `oldest`: the lowest sequence that is kept; above the head when nothing is. */
export type StreamBounds = UnreadState & { readonly oldest: number };

/** What a call has marked. `reads` is 0 when it was nothing. */
export type Marked = UnreadState & { readonly markedCount: number };

/** Marks in their order; `upTo`: there are no others up to this one. The state is of the same moment. */
export type ReadNews = UnreadState & { readonly marks: readonly ReadMark[]; readonly upTo: number };
