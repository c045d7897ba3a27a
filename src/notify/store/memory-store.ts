import { AppError } from '../../shared/app-error.ts';
import {
  ENDPOINTS_PER_TENANT_MAX,
  type ClaimFilter,
  type DeliveryKey,
  type EndpointKey,
  type ListQuery,
  type NotificationStore,
  type PutResult,
  type StoredListener,
} from '../model/notification-store.ts';
import type {
  Delivery,
  DueDelivery,
  Endpoint,
  NewNotification,
  Notification,
  OutboundChannel,
  UserKey,
} from '../model/notification.ts';
import { tooManyEndpoints, unknownNotification } from './store-refusals.ts';

type Stored = Omit<Notification, 'deliveries'> & { readonly dedupeKey: string };
type StoredDelivery = Delivery & { readonly notification: Stored; readonly nextAttemptMs: number };
type StoredEndpoint = Endpoint & { readonly signingSecret: string };

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
 * process. Reads are O(answer) but for `claimDue`, `nextDueMs` and `backlog`: O(pending deliveries).
 */
export class MemoryStore implements NotificationStore {
  readonly #streams = new Map<string, Stream>();
  readonly #byId = new Map<string, Stored>();
  readonly #byDedupeKey = new Map<string, Stored>();
  readonly #endpoints = new Map<string, Map<string, StoredEndpoint>>();
  /** By notification, then endpoint. */
  readonly #deliveries = new Map<string, Map<string, StoredDelivery>>();
  readonly #pending = new Set<StoredDelivery>();
  readonly #notificationsMax: number;
  readonly #bytesMax: number;
  #bytes = 0;
  #onStored: StoredListener = () => undefined;

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
    let ofTenant = this.#endpoints.get(endpoint.tenantId);
    if (ofTenant === undefined) this.#endpoints.set(endpoint.tenantId, (ofTenant = new Map()));
    const before = ofTenant.get(endpoint.id);
    if (before === undefined && ofTenant.size >= ENDPOINTS_PER_TENANT_MAX) {
      return Promise.reject(tooManyEndpoints());
    }
    const secret = signingSecret ?? before?.signingSecret ?? '';
    ofTenant.set(endpoint.id, { ...endpoint, signingSecret: secret });
    return Promise.resolve();
  }

  hasSigningSecret(tenantId: string, id: string): Promise<boolean> {
    return Promise.resolve((this.#endpoints.get(tenantId)?.get(id)?.signingSecret ?? '') !== '');
  }

  deleteEndpoint(tenantId: string, id: string): Promise<boolean> {
    const isKnown = this.#endpoints.get(tenantId)?.delete(id) ?? false;
    for (const delivery of this.#pending) {
      if (delivery.notification.tenantId !== tenantId || delivery.endpointId !== id) continue;
      this.#finish(delivery, {
        ...delivery,
        status: 'dead',
        lastError: 'the endpoint was removed',
      });
    }
    return Promise.resolve(isKnown);
  }

  listEndpoints(tenantId: string): Promise<readonly Endpoint[]> {
    const endpoints = [...(this.#endpoints.get(tenantId)?.values() ?? [])];
    return Promise.resolve(
      endpoints
        .map(({ signingSecret: _hidden, ...endpoint }) => endpoint)
        .sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
  }

  claimDue(
    nowMs: number,
    leaseMs: number,
    limit: number,
    filter?: ClaimFilter,
  ): Promise<readonly DueDelivery[]> {
    const without = new Set(filter?.without.map(endpointText));
    const taken = new Map<string, number>();
    const due = [...this.#pending]
      .filter(({ nextAttemptMs }) => nextAttemptMs <= nowMs)
      .filter(({ channel }) => filter?.channels.includes(channel) ?? true)
      .sort((a, b) => a.nextAttemptMs - b.nextAttemptMs)
      .filter(({ notification: { tenantId }, endpointId }) => {
        const key = endpointText({ tenantId, endpointId });
        const place = (taken.get(key) ?? 0) + 1;
        taken.set(key, place);
        return !without.has(key) && place <= (filter?.perEndpointMax ?? Infinity);
      })
      .slice(0, limit);
    return Promise.resolve(
      due.flatMap((delivery) => {
        this.#keep(delivery, { ...delivery, nextAttemptMs: nowMs + leaseMs });
        const { endpointId, attempts } = delivery;
        const { dedupeKey: _dedupeKey, ...notification } = delivery.notification;
        const found = this.#endpoints.get(notification.tenantId)?.get(endpointId);
        if (found === undefined) return [];
        const { signingSecret, ...endpoint } = found;
        return [{ notification, endpoint, signingSecret, attempts }];
      }),
    );
  }

  markSent(key: DeliveryKey, attempts: number): Promise<void> {
    return this.#settle(key, { status: 'sent', attempts, lastError: '' });
  }

  markRetry(
    key: DeliveryKey,
    attempts: number,
    error: string,
    nextAttemptMs: number,
  ): Promise<void> {
    const delivery = this.#deliveries.get(key.notificationId)?.get(key.endpointId);
    if (delivery?.status === 'pending') {
      this.#keep(delivery, { ...delivery, attempts, lastError: error, nextAttemptMs });
    }
    return Promise.resolve();
  }

  markDead(key: DeliveryKey, attempts: number, error: string): Promise<void> {
    return this.#settle(key, { status: 'dead', attempts, lastError: error });
  }

  backlog(nowMs: number): Promise<{ readonly pending: number; readonly oldestDueMs: number }> {
    let oldest = nowMs;
    for (const { nextAttemptMs } of this.#pending) oldest = Math.min(oldest, nextAttemptMs);
    return Promise.resolve({ pending: this.#pending.size, oldestDueMs: nowMs - oldest });
  }

  nextDueMs(channels?: readonly OutboundChannel[]): Promise<number | undefined> {
    let next: number | undefined;
    for (const { channel, nextAttemptMs } of this.#pending) {
      if (channels?.includes(channel) ?? true) next = Math.min(next ?? Infinity, nextAttemptMs);
    }
    return Promise.resolve(next);
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
    this.#addDeliveries(stored);
    const user = { tenantId: stored.tenantId, userId: stored.userId };
    // After the caller has its answer: it announces by itself what it stored.
    setImmediate(() => this.#onStored(user, stored.sequence));
    return { notification: this.#withDeliveries(stored), isDuplicate: false };
  }

  #addDeliveries(stored: Stored): void {
    for (const endpoint of this.#endpoints.get(stored.tenantId)?.values() ?? []) {
      if (!stored.channels.includes(endpoint.channel)) continue;
      if (endpoint.userId !== '' && endpoint.userId !== stored.userId) continue;
      const delivery: StoredDelivery = {
        notification: stored,
        channel: endpoint.channel,
        endpointId: endpoint.id,
        status: 'pending',
        attempts: 0,
        lastError: '',
        nextAttemptMs: stored.createdAtMs,
      };
      this.#keep(undefined, delivery);
    }
  }

  #settle(
    key: DeliveryKey,
    result: Pick<Delivery, 'status' | 'attempts' | 'lastError'>,
  ): Promise<void> {
    const delivery = this.#deliveries.get(key.notificationId)?.get(key.endpointId);
    if (delivery?.status === 'pending') this.#finish(delivery, { ...delivery, ...result });
    return Promise.resolve();
  }

  #keep(before: StoredDelivery | undefined, after: StoredDelivery): void {
    if (before !== undefined) this.#pending.delete(before);
    this.#pending.add(after);
    this.#remember(after);
  }

  #finish(before: StoredDelivery, after: StoredDelivery): void {
    this.#pending.delete(before);
    this.#remember(after);
  }

  #remember(delivery: StoredDelivery): void {
    const { id } = delivery.notification;
    let ofNotification = this.#deliveries.get(id);
    if (ofNotification === undefined) this.#deliveries.set(id, (ofNotification = new Map()));
    ofNotification.set(delivery.endpointId, delivery);
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
    for (const delivery of this.#deliveries.get(stored.id)?.values() ?? []) {
      this.#pending.delete(delivery);
    }
    this.#deliveries.delete(stored.id);
    const stream = this.#streams.get(userText(stored));
    // The oldest of all is the oldest of its user. The stream stays: its head must not begin anew.
    stream?.notifications.shift();
    if (stream !== undefined && stored.readAtMs === null) stream.unread -= 1;
  }

  #withDeliveries({ dedupeKey: _dedupeKey, ...stored }: Stored): Notification {
    const deliveries = [...(this.#deliveries.get(stored.id)?.values() ?? [])]
      .map(({ channel, endpointId, status, attempts, lastError }) => {
        return { channel, endpointId, status, attempts, lastError };
      })
      .sort((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
    return { ...stored, deliveries };
  }
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

function endpointText({ tenantId, endpointId }: EndpointKey): string {
  return `${tenantId} ${endpointId}`;
}

function dedupeText(stored: NewNotification | Stored): string {
  return `${userText(stored)} ${stored.dedupeKey}`;
}
