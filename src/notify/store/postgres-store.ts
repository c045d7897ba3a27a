import { type Listening, startListening } from '../../store/listen.ts';
import type {
  ClaimFilter,
  DeliveryKey,
  ListQuery,
  NotificationStore,
  PutResult,
  StoredListener,
} from '../model/notification-store.ts';
import type {
  DueDelivery,
  Endpoint,
  NewNotification,
  Notification,
  OutboundChannel,
  UserKey,
} from '../model/notification.ts';
import { NotifyDatabase, type NotifyDatabaseOptions } from './notify-database.ts';
import { PostgresDeliveries } from './postgres-deliveries.ts';
import { PostgresEndpoints } from './postgres-endpoints.ts';
import { PostgresStreams } from './postgres-streams.ts';
import { putNotifications } from './put-notifications.ts';

/** Payload: tenant, user and sequence, separated by spaces, which no id holds. */
const STORED_CHANNEL = 'notify_stored';

export type PostgresStoreOptions = NotifyDatabaseOptions & {
  /** Told when it hears of other processes' notifications (again), and when it does so no more. */
  readonly onListening?: ((isConnected: boolean) => void) | undefined;
};

/**
 * The durable driver, on the tables of migrations/notify; several processes may share them. Listens from its
 * making on; the parts of the port are in the files beside it.
 */
export class PostgresStore implements NotificationStore {
  readonly #database: NotifyDatabase;
  readonly #streams: PostgresStreams;
  readonly #endpoints: PostgresEndpoints;
  readonly #deliveries: PostgresDeliveries;
  readonly #listening: Listening;
  #onStored: StoredListener = () => undefined;

  constructor(options: PostgresStoreOptions) {
    const { target, log, onListening } = options;
    this.#database = new NotifyDatabase(options);
    this.#streams = new PostgresStreams(this.#database);
    this.#endpoints = new PostgresEndpoints(this.#database);
    this.#deliveries = new PostgresDeliveries(this.#database);
    this.#listening = startListening({
      target,
      channel: STORED_CHANNEL,
      onPayload: (payload) => {
        const [tenantId = '', userId = '', sequence = ''] = payload.split(' ');
        this.#onStored({ tenantId, userId }, Number(sequence));
      },
      onMayHaveMissed: () => this.#onStored(null, 0),
      onConnected: onListening,
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

  list(query: ListQuery): Promise<readonly Notification[]> {
    return this.#streams.list(query);
  }

  liveAfter(user: UserKey, sequence: number, limit: number): Promise<readonly Notification[]> {
    return this.#streams.liveAfter(user, sequence, limit);
  }

  bounds(user: UserKey): Promise<{ readonly head: number; readonly oldest: number }> {
    return this.#streams.bounds(user);
  }

  unreadCount(user: UserKey): Promise<number> {
    return this.#streams.unreadCount(user);
  }

  markRead(
    user: UserKey,
    which: { readonly ids: readonly string[] } | { readonly upToSequence: number },
    atMs: number,
  ): Promise<{ readonly markedCount: number; readonly unreadCount: number }> {
    return this.#streams.markRead(user, which, atMs);
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

  claimDue(
    nowMs: number,
    leaseMs: number,
    limit: number,
    filter?: ClaimFilter,
  ): Promise<readonly DueDelivery[]> {
    return this.#deliveries.claimDue(nowMs, leaseMs, limit, filter);
  }

  markSent(key: DeliveryKey, attempts: number): Promise<void> {
    return this.#deliveries.markSent(key, attempts);
  }

  markRetry(
    key: DeliveryKey,
    attempts: number,
    error: string,
    nextAttemptMs: number,
  ): Promise<void> {
    return this.#deliveries.markRetry(key, attempts, error, nextAttemptMs);
  }

  markDead(key: DeliveryKey, attempts: number, error: string): Promise<void> {
    return this.#deliveries.markDead(key, attempts, error);
  }

  backlog(nowMs: number): Promise<{ readonly pending: number; readonly oldestDueMs: number }> {
    return this.#deliveries.backlog(nowMs);
  }

  nextDueMs(channels?: readonly OutboundChannel[]): Promise<number | undefined> {
    return this.#deliveries.nextDueMs(channels);
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
