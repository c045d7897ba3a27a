import { AppError } from '../../shared/app-error.ts';
import type {
  ClaimRequest,
  DeliveryKey,
  DeliveryPage,
  DeliveryQuery,
  DeliveryRecord,
  DisabledEndpoint,
  EndpointState,
  Settlement,
} from '../model/delivery.ts';
import type {
  Claim,
  ListQuery,
  NotificationStore,
  PutResult,
  StoredListener,
} from '../model/notification-store.ts';
import type {
  Addressee,
  Endpoint,
  NewNotification,
  Notification,
  OutboundChannel,
  UserKey,
} from '../model/notification.ts';
import type {
  NewStreamOrder,
  StreamGrant,
  StreamOrders,
  StreamStanding,
} from '../model/stream-order.ts';
import { MemoryDeliveries } from './memory-deliveries.ts';
import { MemoryEndpoints } from './memory-endpoints.ts';
import { MemoryStreamOrders } from './memory-stream-orders.ts';
import { unknownNotification } from './store-refusals.ts';

type Stored = Omit<Notification, 'deliveries'> & { readonly dedupeKey: string };

/** One user's notifications, oldest first; `notifications[i].sequence` ascends without gaps. */
type Stream = { head: number; unread: number; readonly notifications: Stored[] };

/** Notifications that the memory driver keeps before it refuses more. */
const NOTIFICATIONS_MAX = 1_000_000;
/** Bytes that they take, estimated. */
const BYTES_MAX = 512 * 1024 * 1024;
/** Of the objects and map entries around the text of one. */
const OVERHEAD_BYTES = 1_000;

/**
 * The driver for development, tests and ephemeral use: everything is gone when the process ends. One
 * process. Reads are O(answer) but for `backlog`, O(pending deliveries), and `listDeliveries`, O(all).
 */
export class MemoryStore implements NotificationStore {
  readonly #streams = new Map<string, Stream>();
  readonly #byId = new Map<string, Stored>();
  readonly #byDedupeKey = new Map<string, Stored>();
  readonly #endpoints = new MemoryEndpoints();
  readonly #deliveries = new MemoryDeliveries(this.#endpoints);
  readonly #notificationsMax: number;
  readonly #bytesMax: number;
  #bytes = 0;
  readonly #orders = new MemoryStreamOrders();
  #onStored: StoredListener = () => undefined;
  #onOrdered: () => void = () => undefined;

  constructor(notificationsMax: number = NOTIFICATIONS_MAX, bytesMax: number = BYTES_MAX) {
    this.#notificationsMax = notificationsMax;
    this.#bytesMax = bytesMax;
  }

  put(batch: readonly NewNotification[]): Promise<readonly PutResult[]> {
    if (this.#byId.size + batch.length > this.#notificationsMax) {
      const problem = `the memory store holds ${this.#notificationsMax} notifications`;
      return Promise.reject(new AppError('QUEUE_FULL', problem));
    }
    const bytes = batch.reduce((sum, request) => sum + bytesOf(request), this.#bytes);
    if (bytes > this.#bytesMax) {
      const problem = `the memory store holds ${this.#bytesMax} bytes`;
      return Promise.reject(new AppError('QUEUE_FULL', problem));
    }
    return Promise.resolve(batch.map((request) => this.#putOne(request)));
  }

  list(query: ListQuery): Promise<readonly Notification[]> {
    const found: Notification[] = [];
    const all = this.#streams.get(userText(query))?.notifications ?? [];
    for (let i = all.length - 1; i >= 0 && found.length < query.limit; i--) {
      const stored = all[i] as Stored;
      if (stored.sequence >= query.beforeSequence) continue;
      if (!query.unreadOnly || stored.readAtMs === null) found.push(this.#withDeliveries(stored));
    }
    return Promise.resolve(found);
  }

  liveAfter(user: UserKey, sequence: number, limit: number): Promise<readonly Notification[]> {
    const all = this.#streams.get(userText(user))?.notifications ?? [];
    const found: Notification[] = [];
    // Sequences have no gaps: the place is known.
    const oldest = all[0]?.sequence ?? 1;
    for (let i = Math.max(0, sequence + 1 - oldest); i < all.length && found.length < limit; i++) {
      const stored = all[i] as Stored;
      if (stored.channels.includes('live')) found.push(this.#withDeliveries(stored));
    }
    return Promise.resolve(found);
  }

  bounds(user: UserKey): Promise<{ readonly head: number; readonly oldest: number }> {
    const stream = this.#streams.get(userText(user));
    const head = stream?.head ?? 0;
    return Promise.resolve({ head, oldest: stream?.notifications[0]?.sequence ?? head + 1 });
  }

  unreadCount(user: UserKey): Promise<number> {
    return Promise.resolve(this.#streams.get(userText(user))?.unread ?? 0);
  }

  markRead(
    user: UserKey,
    which: { readonly ids: readonly string[] } | { readonly upToSequence: number },
    atMs: number,
  ): Promise<{ readonly markedCount: number; readonly unreadCount: number }> {
    const stream = this.#streams.get(userText(user));
    let chosen: readonly Stored[];
    if ('ids' in which) {
      const unknown = which.ids.find((id) => !isOf(this.#byId.get(id), user));
      if (unknown !== undefined) return Promise.reject(unknownNotification(unknown));
      chosen = [...new Set(which.ids)].map((id) => this.#byId.get(id) as Stored);
    } else {
      chosen = stream?.notifications.filter((n) => n.sequence <= which.upToSequence) ?? [];
    }
    const unread = chosen.filter((stored) => stored.readAtMs === null);
    for (const stored of unread) this.#replace({ ...stored, readAtMs: atMs });
    if (stream !== undefined) stream.unread -= unread.length;
    return Promise.resolve({ markedCount: unread.length, unreadCount: stream?.unread ?? 0 });
  }

  putEndpoint(endpoint: Endpoint, signingSecret: string | undefined): Promise<void> {
    return promised(() => this.#endpoints.put(endpoint, signingSecret));
  }

  hasSigningSecret(tenantId: string, id: string): Promise<boolean> {
    return Promise.resolve((this.#endpoints.find(tenantId, id)?.signingSecret ?? '') !== '');
  }

  deleteEndpoint(tenantId: string, id: string): Promise<boolean> {
    const isKnown = this.#endpoints.delete(tenantId, id);
    this.#deliveries.giveUpRemoved(tenantId, id);
    return Promise.resolve(isKnown);
  }

  listEndpoints(tenantId: string): Promise<readonly Endpoint[]> {
    return Promise.resolve(
      this.#endpoints
        .ofTenant(tenantId)
        .map((one) => this.#endpoints.bare(one))
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
  }

  endpointState(tenantId: string, id: string, nowMs: number): Promise<EndpointState | undefined> {
    return Promise.resolve(this.#endpoints.state(tenantId, id, nowMs));
  }

  addressee(tenantId: string, id: string, nowMs: number): Promise<Addressee | undefined> {
    return Promise.resolve(this.#endpoints.addressee(tenantId, id, nowMs));
  }

  enableEndpoint(tenantId: string, id: string): Promise<boolean> {
    return Promise.resolve(this.#endpoints.enable(tenantId, id));
  }

  rotateSecret(
    tenantId: string,
    id: string,
    secret: string,
    overlapUntilMs: number,
  ): Promise<boolean> {
    return Promise.resolve(this.#endpoints.rotate(tenantId, id, secret, overlapUntilMs));
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
    return this.#deliveries.listDeliveries(query, nowMs);
  }

  findDelivery(
    tenantId: string,
    key: DeliveryKey,
    nowMs: number,
  ): Promise<DeliveryRecord | undefined> {
    return this.#deliveries.findDelivery(tenantId, key, nowMs);
  }

  retryDelivery(tenantId: string, key: DeliveryKey, nowMs: number): Promise<void> {
    return this.#deliveries.retryDelivery(tenantId, key, nowMs);
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

  nextDueMs(channel: OutboundChannel): Promise<number | undefined> {
    return this.#deliveries.nextDueMs(channel);
  }

  purge(beforeMs: number, limit: number): Promise<number> {
    let count = 0;
    for (const stored of this.#byId.values()) {
      // Insertion order is order of creation.
      if (stored.createdAtMs >= beforeMs || count === limit) break;
      this.#forget(stored);
      count += 1;
    }
    return Promise.resolve(count);
  }

  issueStreamToken(user: UserKey): Promise<number> {
    return Promise.resolve(this.#orders.issueMs(user));
  }

  streamStanding(grant: StreamGrant): Promise<StreamStanding> {
    return Promise.resolve(this.#orders.standing(grant));
  }

  orderStreams(order: NewStreamOrder): Promise<void> {
    this.#orders.give(order);
    // As what a database would notify of.
    setImmediate(() => this.#onOrdered());
    return Promise.resolve();
  }

  streamOrdersAfter(revision: number | undefined): Promise<StreamOrders> {
    return Promise.resolve(this.#orders.after(revision));
  }

  purgeStreamOrders(limit: number): Promise<number> {
    return Promise.resolve(this.#orders.purge(limit));
  }

  endsWithToken(tenantId: string): Promise<boolean> {
    return Promise.resolve(this.#orders.endsWithToken(tenantId));
  }

  onOrdered(listener: () => void): void {
    this.#onOrdered = listener;
  }

  onStored(listener: StoredListener): void {
    this.#onStored = listener;
  }

  ping(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #putOne(request: NewNotification): PutResult {
    const key = userText(request);
    if (request.dedupeKey !== '') {
      const earlier = this.#byDedupeKey.get(dedupeText(request));
      if (earlier !== undefined) {
        return { notification: this.#withDeliveries(earlier), isDuplicate: true };
      }
    }
    let stream = this.#streams.get(key);
    if (stream === undefined) {
      this.#streams.set(key, (stream = { head: 0, unread: 0, notifications: [] }));
    }
    stream.head += 1;
    stream.unread += 1;
    const stored: Stored = { ...request, sequence: stream.head, readAtMs: null };
    stream.notifications.push(stored);
    this.#byId.set(stored.id, stored);
    this.#bytes += bytesOf(stored);
    if (stored.dedupeKey !== '') this.#byDedupeKey.set(dedupeText(stored), stored);
    this.#deliveries.add(bareOf(stored));
    const user = { tenantId: stored.tenantId, userId: stored.userId };
    // After the caller has its answer: it announces by itself what it stored.
    setImmediate(() => this.#onStored(user, stored.sequence));
    return { notification: this.#withDeliveries(stored), isDuplicate: false };
  }

  #replace(stored: Stored): void {
    this.#byId.set(stored.id, stored);
    if (stored.dedupeKey !== '') this.#byDedupeKey.set(dedupeText(stored), stored);
    const all = this.#streams.get(userText(stored))?.notifications ?? [];
    all[stored.sequence - (all[0]?.sequence ?? 1)] = stored;
  }

  #forget(stored: Stored): void {
    this.#byId.delete(stored.id);
    this.#bytes -= bytesOf(stored);
    if (stored.dedupeKey !== '') this.#byDedupeKey.delete(dedupeText(stored));
    this.#deliveries.forget(stored.id);
    const stream = this.#streams.get(userText(stored));
    // The oldest of all is the oldest of its user. The stream stays: its head must not begin anew.
    stream?.notifications.shift();
    if (stream !== undefined && stored.readAtMs === null) stream.unread -= 1;
  }

  #withDeliveries(stored: Stored): Notification {
    return { ...bareOf(stored), deliveries: this.#deliveries.of(stored.id) };
  }
}

function bareOf({ dedupeKey: _dedupeKey, ...stored }: Stored): Omit<Notification, 'deliveries'> {
  return stored;
}

/** What was thrown becomes a rejection. */
async function promised<T>(work: () => T): Promise<T> {
  return await Promise.resolve(work());
}

/** Two bytes a character at worst; the data is as long as its JSON. */
function bytesOf({ title, body, data, dedupeKey }: NewNotification | Stored): number {
  const dataLength = data === null ? 0 : JSON.stringify(data).length;
  return OVERHEAD_BYTES + 2 * (title.length + body.length + dedupeKey.length + dataLength);
}

function isOf(stored: Stored | undefined, user: UserKey): boolean {
  return stored?.tenantId === user.tenantId && stored.userId === user.userId;
}

function userText({ tenantId, userId }: UserKey): string {
  return `${tenantId} ${userId}`;
}

function dedupeText(stored: NewNotification | Stored): string {
  return `${userText(stored)} ${stored.dedupeKey}`;
}
