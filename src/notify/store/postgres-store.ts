import type { LoopReport } from '../../shared/loop-report.ts';
import { type Listening, startListening } from '../../store/postgres/listen.ts';
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
} from '../model/delivery.ts';
import type {
  Claim,
  Marked,
  MarkedPart,
  NotificationQuery,
  NotificationStore,
  PutResult,
  ReadNews,
  StoredListener,
  StreamBounds,
} from '../model/notification-store.ts';
import type {
  Addressee,
  Endpoint,
  NewNotification,
  Notification,
  Channel,
  UserKey,
} from '../model/notification.ts';
import type {
  NewStreamOrder,
  StreamGrant,
  StreamOrders,
  StreamStanding,
} from '../model/stream-order.ts';
import { NotifyDatabase, type NotifyDatabaseOptions } from './notify-database.ts';
import { PostgresDeliveries } from './postgres-deliveries.ts';
import { PostgresEndpoints } from './postgres-endpoints.ts';
import { PostgresFollowed } from './postgres-followed.ts';
import { PostgresReads } from './postgres-reads.ts';
import { PostgresStreamOrders } from './postgres-stream-orders.ts';
import { PostgresStreams } from './postgres-streams.ts';
import { putNotifications } from './put-notifications.ts';
import { SecretBox } from './secret-box.ts';

export type PostgresStoreOptions = NotifyDatabaseOptions & {
  /** Signing secrets are sealed with the first, and opened with any; none: they are kept as they are. Secret. */
  readonly secretKeys: readonly string[];
  /** Notified when it hears of other processes' notifications (again), and when it does so no more. */
  readonly onListening?: ((isConnected: boolean) => void) | undefined;
  /** Hears what becomes of that connection. */
  readonly report?: LoopReport | undefined;
};

/**
 * Payload: tenant, user and the user's newest sequence, separated by spaces, which no id holds; of a mark its number follows, which
 * releases from before do not look at.
 */
const STORED_CHANNEL = 'notify_stored';
/** Of payloads of the same channel that report orders about streams: no tenant is called so. */
const ORDERS_PREFIX = ' ';
/** Endpoints whose secrets are looked at together. */
const SEAL_BATCH = 500;

/**
 * The durable driver, on the tables of migrations/notify; several processes may share them. Listens from its
 * making on; the parts of the port are in the files beside it.
 */
export class PostgresStore implements NotificationStore {
  readonly #database: NotifyDatabase;
  readonly #streams: PostgresStreams;
  readonly #endpoints: PostgresEndpoints;
  readonly #deliveries: PostgresDeliveries;
  readonly #followed: PostgresFollowed;
  readonly #listening: Listening;
  readonly #orders: PostgresStreamOrders;
  readonly #reads: PostgresReads;
  #onStored: StoredListener = () => undefined;
  #onOrdered: () => void = () => undefined;

  constructor(options: PostgresStoreOptions) {
    const { target, log, onListening, report } = options;
    this.#database = new NotifyDatabase(options);
    this.#streams = new PostgresStreams(this.#database);
    const secrets = new SecretBox(options.secretKeys);
    this.#endpoints = new PostgresEndpoints(this.#database, secrets);
    this.#deliveries = new PostgresDeliveries(this.#database, secrets);
    this.#orders = new PostgresStreamOrders(this.#database);
    this.#reads = new PostgresReads(this.#database);
    this.#followed = new PostgresFollowed(this.#database);
    this.#listening = startListening({
      target,
      channel: STORED_CHANNEL,
      onPayload: (payload) => {
        if (payload.startsWith(ORDERS_PREFIX)) return this.#onOrdered();
        const [tenantId = '', userId = '', sequence = '', reads = '0'] = payload.split(' ');
        this.#onStored({ tenantId, userId }, Number(sequence), Number(reads));
      },
      onMayHaveMissed: () => {
        this.#onOrdered();
        this.#onStored(null, 0, 0);
      },
      onConnected: onListening,
      report,
      log,
    });
  }

  /** The pool, for figures about it. */
  get pool(): NotifyDatabase['pool'] {
    return this.#database.pool;
  }

  /** Resolves once other processes' notifications are heard of. */
  get started(): Promise<void> {
    return this.#listening.started;
  }

  put(batch: readonly NewNotification[]): Promise<readonly PutResult[]> {
    return putNotifications(this.#database, batch);
  }

  list(query: NotificationQuery): Promise<readonly Notification[]> {
    return this.#streams.list(query);
  }

  liveAfter(user: UserKey, sequence: number, limit: number): Promise<readonly Notification[]> {
    return this.#streams.liveAfter(user, sequence, limit);
  }

  bounds(user: UserKey): Promise<StreamBounds> {
    return this.#streams.bounds(user);
  }

  unreadCount(user: UserKey, channels: readonly Channel[]): Promise<number> {
    return this.#streams.unreadCount(user, channels);
  }

  markRead(user: UserKey, which: MarkedPart, atMs: number): Promise<Marked> {
    return this.#reads.markRead(user, which, atMs);
  }

  readsAfter(user: UserKey, after: number, limit: number): Promise<ReadNews> {
    return this.#reads.readsAfter(user, after, limit);
  }

  purgeReads(limit: number): Promise<number> {
    return this.#reads.purgeReads(limit);
  }

  purge(beforeMs: number, limit: number): Promise<number> {
    return this.#streams.purge(beforeMs, limit);
  }

  putEndpoint(endpoint: Endpoint, signingSecret: string | undefined): Promise<void> {
    return this.#endpoints.putEndpoint(endpoint, signingSecret);
  }

  hasSigningSecret(tenantId: string, id: string): Promise<boolean> {
    return this.#endpoints.hasSigningSecret(tenantId, id);
  }

  deleteEndpoint(tenantId: string, id: string): Promise<boolean> {
    return this.#endpoints.deleteEndpoint(tenantId, id);
  }

  listEndpoints(tenantId: string): Promise<readonly Endpoint[]> {
    return this.#endpoints.listEndpoints(tenantId);
  }

  endpointState(tenantId: string, id: string, nowMs: number): Promise<EndpointState | undefined> {
    return this.#endpoints.endpointState(tenantId, id, nowMs);
  }

  addressee(tenantId: string, id: string, nowMs: number): Promise<Addressee | undefined> {
    return this.#endpoints.addressee(tenantId, id, nowMs);
  }

  enableEndpoint(tenantId: string, id: string): Promise<boolean> {
    return this.#endpoints.enableEndpoint(tenantId, id);
  }

  rotateSecret(
    tenantId: string,
    id: string,
    secret: string,
    overlapUntilMs: number,
  ): Promise<boolean> {
    return this.#endpoints.rotateSecret(tenantId, id, secret, overlapUntilMs);
  }

  /**
   * Seals every signing secret that is not sealed with the newest key. Cost: looks at every endpoint; call it once, when
   * the process starts.
   */
  async sealSecrets(): Promise<void> {
    let after = { tenantId: '', id: '' };
    for (;;) {
      const page = await this.#endpoints.sealAgain(after, SEAL_BATCH);
      const last = page.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  claimDue(request: ClaimRequest): Promise<Claim> {
    return this.#deliveries.claimDue(request);
  }

  release(keys: readonly DeliveryKey[], nowMs: number): Promise<void> {
    return this.#deliveries.release(keys, nowMs);
  }

  settle(
    batch: readonly Settlement[],
    nowMs: number,
    failingMsMax: number | null,
  ): Promise<readonly DisabledEndpoint[]> {
    return this.#deliveries.settle(batch, nowMs, failingMsMax);
  }

  listDeliveries(query: DeliveryQuery, nowMs: number): Promise<DeliveryPage> {
    return this.#followed.listDeliveries(query, nowMs);
  }

  findDelivery(
    tenantId: string,
    key: DeliveryKey,
    nowMs: number,
  ): Promise<DeliveryRecord | undefined> {
    return this.#followed.findDelivery(tenantId, key, nowMs);
  }

  retryDelivery(tenantId: string, key: DeliveryKey, nowMs: number): Promise<void> {
    return this.#followed.retryDelivery(tenantId, key, nowMs);
  }

  retryDead(query: DeadQuery, nowMs: number): Promise<RetriedPage> {
    return this.#followed.retryDead(query, nowMs);
  }

  giveUpDisabled(limit: number, nowMs: number): Promise<number> {
    return this.#deliveries.giveUpDisabled(limit, nowMs);
  }

  purgeDead(beforeMs: number, limit: number): Promise<number> {
    return this.#deliveries.purgeDead(beforeMs, limit);
  }

  backlog(nowMs: number): Promise<{ readonly pending: number; readonly oldestDueMs: number }> {
    return this.#deliveries.backlog(nowMs);
  }

  nextDueMs(channel: Channel): Promise<number | undefined> {
    return this.#deliveries.nextDueMs(channel);
  }

  issueStreamToken(user: UserKey): Promise<number> {
    return this.#orders.issueStreamToken(user);
  }

  streamStanding(grant: StreamGrant): Promise<StreamStanding> {
    return this.#orders.streamStanding(grant);
  }

  orderStreams(order: NewStreamOrder): Promise<void> {
    return this.#orders.orderStreams(order);
  }

  streamOrdersAfter(revision: number | undefined): Promise<StreamOrders> {
    return this.#orders.streamOrdersAfter(revision);
  }

  purgeStreamOrders(limit: number): Promise<number> {
    return this.#orders.purgeStreamOrders(limit);
  }

  endsWithToken(tenantId: string): Promise<boolean> {
    return this.#orders.endsWithToken(tenantId);
  }

  onOrdered(listener: () => void): void {
    this.#onOrdered = listener;
  }

  onStored(listener: StoredListener): void {
    this.#onStored = listener;
  }

  async ping(): Promise<void> {
    await this.#database.query('notify-ping', 'select 1', []);
  }

  async close(): Promise<void> {
    await this.#listening.stop();
    await this.#database.close();
  }
}
