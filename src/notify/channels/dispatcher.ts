import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/clock.ts';
import type { NotifyLog } from '../core/event-log.ts';
import type { EndpointKey, NotificationStore } from '../model/notification-store.ts';
import type { DueDelivery, OutboundChannel } from '../model/notification.ts';
import type { AttemptOutcome, DispatchMetrics } from './dispatch-metrics.ts';
import { failed, type Sender, type SendResult } from './sender.ts';

export type DispatcherOptions = {
  readonly store: Pick<
    NotificationStore,
    'claimDue' | 'markSent' | 'markRetry' | 'markDead' | 'nextDueMs'
  >;
  /** Channels that this process carries; others wait for a process that does. */
  readonly senders: Readonly<Partial<Record<OutboundChannel, Sender>>>;
  readonly sendsMax: number;
  readonly sendTimeoutMs: number;
  readonly attemptsMax: number;
  readonly retryBaseMs: number;
  readonly retryMaxMs: number;
  readonly clock: Clock;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
  readonly metrics: DispatchMetrics;
  readonly log: NotifyLog;
};

/** How long the store is left alone when nothing is known to be due: other processes may store, too. */
const IDLE_MS = 1_000;
/** What is due but could not be claimed, being held by another claim or an endpoint with enough in progress. */
const OVERDUE_MS = 100;
/** Beyond the time-out of an attempt: a process that died gives its deliveries back after it. */
const LEASE_SLACK_MS = 5_000;
/** Attempts in progress to one endpoint, as a part of all: a slow one leaves the others their places. */
const ENDPOINT_SHARE = 4;

/**
 * Tries outbound deliveries until they are sent or dead. What waits is in the store alone: the process
 * may end at any time, and what it had claimed is tried again when its lease is over, so that each is
 * delivered at least once. Attempts are spaced by exponential back-off with equal jitter
 * (aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter).
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #stop = new AbortController();
  readonly #channels: readonly OutboundChannel[];
  readonly #perEndpointMax: number;
  /** Attempts in progress, by endpoint. */
  readonly #busy = new Map<string, { readonly key: EndpointKey; count: number }>();
  #inflight = 0;
  #isLooking = false;
  #wantsLook = false;
  #timer: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    // Its keys are those of its type.
    this.#channels = Object.keys(options.senders) as OutboundChannel[];
    this.#perEndpointMax = Math.max(1, Math.floor(options.sendsMax / ENDPOINT_SHARE));
  }

  get inflightCount(): number {
    return this.#inflight;
  }

  /** Something may be due now. Cheap; called for every notification with outbound channels. */
  wake(): void {
    if (this.#stop.signal.aborted) return;
    this.#wantsLook = true;
    if (!this.#isLooking) void this.#look();
  }

  /** Begins nothing more, and waits for the attempts in progress, at most `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    if (this.#inflight > 0 || this.#isLooking) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, deadlineMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    for (const sender of Object.values(this.#options.senders)) sender.close();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    clearTimeout(this.#timer);
    let waitMs = IDLE_MS;
    while (this.#wantsLook && !this.#stop.signal.aborted) {
      this.#wantsLook = false;
      const room = this.#options.sendsMax - this.#inflight;
      // An attempt that ends looks again.
      if (room <= 0) break;
      try {
        waitMs = await this.#claim(room);
      } catch {
        // The store is away; its own series and log say so. Nothing is lost: look again later.
        waitMs = IDLE_MS;
      }
    }
    this.#isLooking = false;
    this.#tellIdle();
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => this.wake(), waitMs).unref();
  }

  /** Starts what is due; returns how long nothing more is. */
  async #claim(room: number): Promise<number> {
    const { store, clock, sendTimeoutMs } = this.#options;
    const busy = [...this.#busy.values()].filter(({ count }) => count >= this.#perEndpointMax);
    const due = await store.claimDue(clock.nowMs(), sendTimeoutMs + LEASE_SLACK_MS, room, {
      channels: this.#channels,
      perEndpointMax: this.#perEndpointMax,
      without: busy.map(({ key }) => key),
    });
    for (const delivery of due) {
      if (this.#stop.signal.aborted) await this.#giveBack(delivery);
      else void this.#attempt(delivery);
    }
    if (due.length === room) {
      this.#wantsLook = true;
      return 0;
    }
    const nextMs = await store.nextDueMs(this.#channels);
    if (nextMs === undefined) return IDLE_MS;
    const waitMs = nextMs - clock.nowMs();
    return waitMs <= 0 ? OVERDUE_MS : Math.min(waitMs, IDLE_MS);
  }

  /** Claimed while the process began to stop: another one need not wait for the lease. */
  async #giveBack({ notification, endpoint, attempts }: DueDelivery): Promise<void> {
    const { store, clock } = this.#options;
    const key = { notificationId: notification.id, endpointId: endpoint.id };
    await store.markRetry(key, attempts, '', clock.nowMs());
  }

  async #attempt(delivery: DueDelivery): Promise<void> {
    this.#began(delivery);
    const { metrics, sendTimeoutMs } = this.#options;
    const { channel } = delivery.endpoint;
    const sender = this.#options.senders[channel];
    const startMs = performance.now();
    const result =
      sender === undefined
        ? failed(`the channel ${channel} is not set up here`)
        : await sender.send(delivery, AbortSignal.timeout(sendTimeoutMs));
    const status = this.#statusOf(delivery, result);
    metrics.send(channel, status, (performance.now() - startMs) / 1000);
    if (delivery.attempts > 0) metrics.retries[status].add();
    await this.#settle(delivery, result, status);
    this.#ended(delivery);
    this.#tellIdle();
    this.wake();
  }

  #began({ endpoint }: DueDelivery): void {
    this.#inflight += 1;
    const key = { tenantId: endpoint.tenantId, endpointId: endpoint.id };
    const text = `${key.tenantId} ${key.endpointId}`;
    const entry = this.#busy.get(text);
    if (entry === undefined) this.#busy.set(text, { key, count: 1 });
    else entry.count += 1;
  }

  #ended({ endpoint }: DueDelivery): void {
    this.#inflight -= 1;
    const text = `${endpoint.tenantId} ${endpoint.id}`;
    const entry = this.#busy.get(text);
    if (entry === undefined) return;
    entry.count -= 1;
    if (entry.count === 0) this.#busy.delete(text);
  }

  #statusOf(delivery: DueDelivery, result: SendResult): AttemptOutcome {
    if (result.isSent) return 'sent';
    return result.isFinal || delivery.attempts + 1 >= this.#options.attemptsMax ? 'dead' : 'failed';
  }

  /** A store that is away here costs a repeated delivery after the lease, never a lost one. */
  async #settle(delivery: DueDelivery, result: SendResult, status: AttemptOutcome): Promise<void> {
    const { log } = this.#options;
    const { notification, endpoint } = delivery;
    const problems = result.isSent ? [] : [result.error];
    try {
      await this.#record(delivery, result, status);
    } catch (error) {
      const text = error instanceof AppError ? error.message : 'internal error';
      problems.push(`not recorded: ${text}`);
    }
    if (problems.length === 0) return;
    log.retryFailed(notification.id, endpoint.id, delivery.attempts + 1, problems.join('; '));
  }

  async #record(delivery: DueDelivery, result: SendResult, status: AttemptOutcome): Promise<void> {
    const { store, clock } = this.#options;
    const key = { notificationId: delivery.notification.id, endpointId: delivery.endpoint.id };
    const attempts = delivery.attempts + 1;
    if (result.isSent) return store.markSent(key, attempts);
    if (status === 'dead') return store.markDead(key, attempts, result.error);
    const nextMs = clock.nowMs() + this.#delayMs(attempts, result.retryAfterMs ?? 0);
    return store.markRetry(key, attempts, result.error, nextMs);
  }

  #delayMs(attempts: number, askedMs: number): number {
    const { retryBaseMs, retryMaxMs, random } = this.#options;
    const ceiling = Math.min(retryBaseMs * 2 ** (attempts - 1), retryMaxMs);
    // At least half of it: a burst of failures is spread, and none is tried at once.
    return Math.round(Math.max(ceiling * (0.5 + random() / 2), Math.min(askedMs, retryMaxMs)));
  }

  #tellIdle(): void {
    if (this.#inflight > 0 || this.#isLooking) return;
    this.#onIdle?.();
  }
}
