import {
  ATTEMPTS_KEPT,
  type Attempt,
  type ClaimRequest,
  type DeliveryKey,
  type DeliveryPage,
  type DeliveryQuery,
  type DeliveryRecord,
  type DisabledEndpoint,
  type Settlement,
} from '../model/delivery.ts';
import type { Claim, NotificationStore } from '../model/notification-store.ts';
import type {
  Delivery,
  DeliveryStatus,
  Notification,
  OutboundChannel,
} from '../model/notification.ts';
import { MemoryClaims } from './memory-claims.ts';
import type { MemoryEndpoints, StoredEndpoint } from './memory-endpoints.ts';
import {
  ENDPOINT_DISABLED,
  ENDPOINT_REMOVED,
  notRetriable,
  unknownDelivery,
} from './store-refusals.ts';

type Stored = Omit<Notification, 'deliveries'>;
type StoredDelivery = Delivery & {
  readonly tenantId: string;
  readonly notification: Stored;
  readonly nextAttemptMs: number;
  readonly claimedUntilMs: number;
  readonly diedAtMs: number | null;
  readonly log: readonly Attempt[];
};

/** Deliveries of the memory driver. Lists are O(all of them); claims are not. */
export class MemoryDeliveries implements Pick<
  NotificationStore,
  | 'claimDue'
  | 'release'
  | 'settle'
  | 'listDeliveries'
  | 'findDelivery'
  | 'retryDelivery'
  | 'giveUpDisabled'
  | 'purgeDead'
  | 'backlog'
  | 'nextDueMs'
> {
  readonly #endpoints: MemoryEndpoints;
  /** By notification, then endpoint. */
  readonly #all = new Map<string, Map<string, StoredDelivery>>();
  readonly #pending = new Set<StoredDelivery>();
  readonly #claims: Readonly<Record<OutboundChannel, MemoryClaims<StoredDelivery>>>;

  constructor(endpoints: MemoryEndpoints) {
    this.#endpoints = endpoints;
    const isCurrent = (one: StoredDelivery): boolean => this.#pending.has(one);
    this.#claims = { webhook: new MemoryClaims(isCurrent), email: new MemoryClaims(isCurrent) };
  }

  /** As `notify.put` makes them. */
  add(notification: Stored): void {
    for (const endpoint of this.#endpoints.ofTenant(notification.tenantId)) {
      if (!notification.channels.includes(endpoint.channel)) continue;
      if (endpoint.userId !== '' && endpoint.userId !== notification.userId) continue;
      const isOff = endpoint.disabledAtMs !== null;
      this.#keep(undefined, {
        tenantId: notification.tenantId,
        notification,
        channel: endpoint.channel,
        endpointId: endpoint.id,
        status: isOff ? 'dead' : 'pending',
        attempts: 0,
        lastError: isOff ? ENDPOINT_DISABLED : '',
        nextAttemptMs: notification.createdAtMs,
        claimedUntilMs: 0,
        diedAtMs: isOff ? notification.createdAtMs : null,
        log: [],
      });
    }
  }

  /** By endpoint, as a notification shows them. */
  of(notificationId: string): readonly Delivery[] {
    return [...(this.#all.get(notificationId)?.values() ?? [])]
      .map(({ channel, endpointId, status, attempts, lastError }) => ({
        channel,
        endpointId,
        status,
        attempts,
        lastError,
      }))
      .sort((a, b) => (a.endpointId < b.endpointId ? -1 : 1));
  }

  forget(notificationId: string): void {
    for (const delivery of this.#all.get(notificationId)?.values() ?? []) {
      this.#pending.delete(delivery);
    }
    this.#all.delete(notificationId);
  }

  giveUpRemoved(tenantId: string, endpointId: string): void {
    for (const delivery of this.#pending) {
      if (delivery.tenantId !== tenantId || delivery.endpointId !== endpointId) continue;
      this.#die(delivery, ENDPOINT_REMOVED, Date.now());
    }
  }

  claimDue(request: ClaimRequest): Promise<Claim> {
    const { nowMs } = request;
    const isOff = ({ tenantId, endpointId }: StoredDelivery): boolean =>
      this.#endpoints.find(tenantId, endpointId)?.disabledAtMs != null;
    const claimed = this.#claims[request.channel].claim(request, isOff);
    const deliveries = claimed.flatMap((delivery) => {
      const untilMs = nowMs + request.leaseMs;
      this.#keep(delivery, { ...delivery, nextAttemptMs: untilMs, claimedUntilMs: untilMs });
      const { endpointId, attempts, notification } = delivery;
      const found = this.#endpoints.addressee(notification.tenantId, endpointId, nowMs);
      return found === undefined ? [] : [{ ...found, notification, attempts, isTest: false }];
    });
    return Promise.resolve({ deliveries, afterTenant: '', isCut: false });
  }

  release(keys: readonly DeliveryKey[], nowMs: number): Promise<void> {
    for (const key of keys) {
      const delivery = this.#find(key);
      if (delivery?.status !== 'pending') continue;
      this.#keep(delivery, { ...delivery, nextAttemptMs: nowMs, claimedUntilMs: 0 });
    }
    return Promise.resolve();
  }

  settle(
    batch: readonly Settlement[],
    nowMs: number,
    failingMsMax: number | null,
  ): Promise<readonly DisabledEndpoint[]> {
    const told = new Map<StoredEndpoint, boolean>();
    for (const one of batch) {
      const delivery = this.#find(one);
      if (delivery?.status !== 'pending') continue;
      this.#keep(delivery, {
        ...delivery,
        status: one.status,
        attempts: one.attempts,
        lastError: one.attempt.error,
        nextAttemptMs: one.nextAttemptMs ?? delivery.nextAttemptMs,
        claimedUntilMs: 0,
        diedAtMs: one.status === 'dead' ? nowMs : null,
        log: [...delivery.log, one.attempt].slice(-ATTEMPTS_KEPT),
      });
      const endpoint = this.#endpoints.find(one.tenantId, one.endpointId);
      if (endpoint === undefined) continue;
      told.set(endpoint, (told.get(endpoint) ?? false) || one.status === 'sent');
    }
    const disabled = [...told].flatMap(([endpoint, hasSent]) =>
      this.#endpoints.fared(endpoint, hasSent, nowMs, failingMsMax),
    );
    return Promise.resolve(disabled);
  }

  listDeliveries(query: DeliveryQuery, nowMs: number): Promise<DeliveryPage> {
    const after = query.after === null ? undefined : orderOf(query.after);
    const found = [...this.#all.values()]
      .flatMap((ofNotification) => [...ofNotification.values()])
      .filter((delivery) => isAsked(delivery, query))
      .map((delivery) => recordOf(delivery, nowMs))
      .filter((record) => after === undefined || orderOf(record) < after)
      .sort((a, b) => (orderOf(a) < orderOf(b) ? 1 : -1));
    const deliveries = found.slice(0, query.limit);
    const next = found.length > query.limit ? (deliveries.at(-1) ?? null) : null;
    return Promise.resolve({ deliveries, next });
  }

  findDelivery(
    tenantId: string,
    key: DeliveryKey,
    nowMs: number,
  ): Promise<DeliveryRecord | undefined> {
    const delivery = this.#find(key);
    const isKnown = delivery?.tenantId === tenantId;
    return Promise.resolve(isKnown ? recordOf(delivery, nowMs) : undefined);
  }

  async retryDelivery(tenantId: string, key: DeliveryKey, nowMs: number): Promise<void> {
    const delivery = this.#find(key);
    if (delivery?.tenantId !== tenantId) throw unknownDelivery();
    if (delivery.status === 'sent') throw notRetriable('sent');
    if (isRunning(delivery, nowMs)) throw notRetriable('running');
    const endpoint = this.#endpoints.find(tenantId, key.endpointId);
    if (endpoint === undefined) throw notRetriable('removed');
    if (endpoint.disabledAtMs !== null) throw notRetriable('disabled');
    const again = { status: 'pending' as const, nextAttemptMs: nowMs, claimedUntilMs: 0 };
    this.#keep(delivery, { ...delivery, ...again, diedAtMs: null });
    await Promise.resolve();
  }

  giveUpDisabled(limit: number, nowMs: number): Promise<number> {
    let count = 0;
    for (const delivery of this.#pending) {
      if (count === limit) break;
      const endpoint = this.#endpoints.find(delivery.tenantId, delivery.endpointId);
      if (endpoint?.disabledAtMs == null || delivery.claimedUntilMs !== 0) continue;
      this.#die(delivery, ENDPOINT_DISABLED, nowMs);
      count += 1;
    }
    return Promise.resolve(count);
  }

  purgeDead(beforeMs: number, limit: number): Promise<number> {
    let count = 0;
    for (const ofNotification of this.#all.values()) {
      for (const { endpointId, diedAtMs } of ofNotification.values()) {
        if (diedAtMs === null || diedAtMs >= beforeMs || count === limit) continue;
        ofNotification.delete(endpointId);
        count += 1;
      }
    }
    return Promise.resolve(count);
  }

  backlog(nowMs: number): Promise<{ readonly pending: number; readonly oldestDueMs: number }> {
    let oldest = nowMs;
    for (const { nextAttemptMs } of this.#pending) oldest = Math.min(oldest, nextAttemptMs);
    return Promise.resolve({ pending: this.#pending.size, oldestDueMs: nowMs - oldest });
  }

  nextDueMs(channel: OutboundChannel): Promise<number | undefined> {
    return Promise.resolve(this.#claims[channel].nextMs);
  }

  #find(key: DeliveryKey): StoredDelivery | undefined {
    return this.#all.get(key.notificationId)?.get(key.endpointId);
  }

  #die(delivery: StoredDelivery, lastError: string, diedAtMs: number): void {
    this.#keep(delivery, { ...delivery, status: 'dead', lastError, diedAtMs, claimedUntilMs: 0 });
  }

  #keep(before: StoredDelivery | undefined, after: StoredDelivery): void {
    if (before !== undefined) this.#pending.delete(before);
    if (after.status === 'pending') {
      this.#pending.add(after);
      this.#claims[after.channel].add(after.nextAttemptMs, after);
    }
    const { id } = after.notification;
    let ofNotification = this.#all.get(id);
    if (ofNotification === undefined) this.#all.set(id, (ofNotification = new Map()));
    ofNotification.set(after.endpointId, after);
  }
}

function isRunning(delivery: StoredDelivery, nowMs: number): boolean {
  return delivery.status === 'pending' && delivery.claimedUntilMs > nowMs;
}

function isAsked({ notification, status, endpointId }: StoredDelivery, asked: DeliveryQuery) {
  const wantsStatus: DeliveryStatus | null = asked.status;
  return (
    notification.tenantId === asked.tenantId &&
    (wantsStatus === null || status === wantsStatus) &&
    (asked.endpointId === '' || endpointId === asked.endpointId) &&
    (asked.userId === '' || notification.userId === asked.userId) &&
    (asked.fromMs === null || notification.createdAtMs >= asked.fromMs) &&
    (asked.untilMs === null || notification.createdAtMs < asked.untilMs)
  );
}

function recordOf(delivery: StoredDelivery, nowMs: number): DeliveryRecord {
  const { notification, status, nextAttemptMs } = delivery;
  const isBusy = isRunning(delivery, nowMs);
  return {
    notificationId: notification.id,
    endpointId: delivery.endpointId,
    tenantId: notification.tenantId,
    userId: notification.userId,
    channel: delivery.channel,
    status,
    attempts: delivery.attempts,
    lastError: delivery.lastError,
    isRunning: isBusy,
    createdAtMs: notification.createdAtMs,
    nextAttemptMs: status === 'pending' && !isBusy ? nextAttemptMs : null,
    diedAtMs: delivery.diedAtMs,
    log: delivery.log,
  };
}

function orderOf({ notificationId, endpointId }: DeliveryKey): string {
  return `${notificationId} ${endpointId}`;
}
