import type { HotCounter } from '../../observability/metric-store.ts';
import { AppError } from '../../shared/app-error.ts';
import type { LoopReport } from '../../shared/loop-report.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { NotifyLog } from '../core/event-log.ts';
import type { Attempt, AttemptOutcome, Settlement } from '../model/delivery.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import type { DueDelivery, Channel } from '../model/notification.ts';
import { DuePlaces } from './places.ts';
import { retryDelayMs, type RetrySchedule } from './retry-schedule.ts';
import type { Sender, SendResult } from './sender.ts';
import type { SettlementWriter } from './settlement-writer.ts';

/** What the dispatcher counts. */
export interface DispatchMetrics {
  /** An attempt to deliver has ended after so many seconds. */
  readonly send: (channel: Channel, outcome: AttemptOutcome, seconds: number) => void;
  /** Attempts after the first one. */
  readonly retries: Readonly<Record<AttemptOutcome, HotCounter>>;
  /** Endpoints that were disabled since they had failed for long. */
  readonly endpointsDisabled: HotCounter;
}

export type DispatcherOptions = RetrySchedule & {
  readonly store: Pick<NotificationStore, 'claimDue' | 'release' | 'nextDueMs'>;
  readonly settlements: Pick<SettlementWriter, 'write'>;
  readonly channel: Channel;
  readonly sender: Sender;
  /** Attempts in progress at once, in all, of one tenant and to one endpoint. */
  readonly sendsMax: number;
  readonly perTenantMax: number;
  readonly perEndpointMax: number;
  readonly sendTimeoutMs: number;
  readonly clock: Clock;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
  readonly metrics: DispatchMetrics;
  /** Hears of each look for what is due. */
  readonly report: LoopReport;
  readonly log: NotifyLog;
};

/** How long the store is left alone when nothing is known to be due: other processes may store, too. */
const IDLE_MS = 1_000;
/** More has become due than one claim makes ready. */
const OVERDUE_MS = 10;
/** Beyond the time-out of an attempt: a process that died gives its deliveries back after it. */
const LEASE_SLACK_MS = 5_000;
/** What a tenant gets before the next one's turn. */
const VISIT_MAX = 4;
/** A call waits for the outcome of a test, so it may not take as long as others. */
const TEST_TIMEOUT_MS_MAX = 20_000;

/**
 * Tries the outbound deliveries of one channel until they are sent or dead. What waits is in the store alone: the process
 * may end at any time, and what it had claimed is tried again when its lease is over, so that each is
 * delivered at least once. How attempts are spaced retry-schedule.ts says, and who gets a place is the rule of
 * `NotificationStore.claimDue`: tenants in turn, and some places stay free however many want all.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #stop = new AbortController();
  readonly #places: DuePlaces;
  #afterTenant = '';
  #isLooking = false;
  #wantsLook = false;
  #timer: NodeJS.Timeout | undefined;
  #onIdle: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { sendsMax, perTenantMax, perEndpointMax } = options;
    this.#places = new DuePlaces(sendsMax, perTenantMax, perEndpointMax);
  }

  get channel(): Channel {
    return this.#options.channel;
  }

  get inflightCount(): number {
    return this.#places.used;
  }

  get placesMax(): number {
    return this.#places.max;
  }

  /** Something may be due now. Cheap; called for every notification with outbound channels. */
  wake(): void {
    if (this.#stop.signal.aborted) return;
    this.#wantsLook = true;
    if (!this.#isLooking) void this.#look();
  }

  /**
   * One attempt of a delivery that is not stored, by the same places. Errors: QUEUE_FULL when the tenant has all it may,
   * SHUTTING_DOWN.
   */
  async test(delivery: DueDelivery): Promise<Attempt> {
    const { clock, sender, sendTimeoutMs } = this.#options;
    if (this.#stop.signal.aborted) throw new AppError('SHUTTING_DOWN', 'shutting down');
    if (!this.#places.hasCapacityFor(delivery.endpoint)) {
      throw new AppError('QUEUE_FULL', 'the tenant has as many attempts in progress as it may');
    }
    this.#places.began(delivery.endpoint);
    const atMs = clock.nowMs();
    const startMs = performance.now();
    const timeoutMs = Math.min(sendTimeoutMs, TEST_TIMEOUT_MS_MAX);
    const result = await sender.send(delivery, AbortSignal.timeout(timeoutMs));
    this.#ended(delivery);
    return attemptOf(result, result.isSent ? 'sent' : 'failed', atMs, performance.now() - startMs);
  }

  /** Begins nothing more, and waits for the attempts in progress, at most `deadlineMs`. */
  async close(deadlineMs: number): Promise<void> {
    this.#stop.abort();
    clearTimeout(this.#timer);
    if (this.#places.used > 0 || this.#isLooking) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, deadlineMs);
        this.#onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#options.sender.close();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    clearTimeout(this.#timer);
    let waitMs = IDLE_MS;
    while (this.#wantsLook && !this.#stop.signal.aborted) {
      this.#wantsLook = false;
      // An attempt that ends looks again.
      if (this.#places.free <= 0) break;
      try {
        waitMs = await this.#claim();
        this.#options.report.succeeded();
      } catch (error) {
        // Nothing is lost: look again later.
        this.#options.report.failed(error);
        waitMs = IDLE_MS;
      }
    }
    this.#isLooking = false;
    this.#notifyIdle();
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => this.wake(), waitMs).unref();
  }

  /** Starts what is due; returns how long nothing more is. */
  async #claim(): Promise<number> {
    const { store, clock, sendTimeoutMs, channel, perTenantMax, perEndpointMax } = this.#options;
    const { deliveries, afterTenant, isCut } = await store.claimDue({
      channel,
      nowMs: clock.nowMs(),
      leaseMs: sendTimeoutMs + LEASE_SLACK_MS,
      places: this.#places.free,
      perTenantMax,
      perEndpointMax,
      visitMax: VISIT_MAX,
      busy: this.#places.busy(),
      afterTenant: this.#afterTenant,
    });
    this.#afterTenant = afterTenant;
    if (this.#stop.signal.aborted) {
      await this.#release(deliveries);
      return IDLE_MS;
    }
    for (const delivery of deliveries) void this.#attempt(delivery);
    // With something taken another look may find more; what bounds hold back waits for an attempt to end.
    if (isCut || (deliveries.length > 0 && this.#places.free > 0)) {
      this.#wantsLook = true;
      return 0;
    }
    const nextMs = await store.nextDueMs(channel);
    if (nextMs === undefined) return IDLE_MS;
    const waitMs = nextMs - clock.nowMs();
    return waitMs <= 0 ? OVERDUE_MS : Math.min(waitMs, IDLE_MS);
  }

  /** Claimed while the process began to stop: another one need not wait for the lease. */
  async #release(deliveries: readonly DueDelivery[]): Promise<void> {
    if (deliveries.length === 0) return;
    const { store, clock } = this.#options;
    await store.release(deliveries.map(keyOf), clock.nowMs());
  }

  async #attempt(delivery: DueDelivery): Promise<void> {
    this.#places.began(delivery.endpoint);
    const { metrics, sendTimeoutMs, sender, channel, clock } = this.#options;
    const atMs = clock.nowMs();
    const startMs = performance.now();
    const result = await sender.send(delivery, AbortSignal.timeout(sendTimeoutMs));
    const tookMs = performance.now() - startMs;
    const outcome = this.#outcomeOf(delivery, result);
    metrics.send(channel, outcome, tookMs / 1000);
    if (delivery.attempts > 0) metrics.retries[outcome].add();
    await this.#settle(delivery, result, attemptOf(result, outcome, atMs, tookMs));
    this.#ended(delivery);
    this.wake();
  }

  #ended({ endpoint }: DueDelivery): void {
    this.#places.ended(endpoint);
    this.#notifyIdle();
  }

  #outcomeOf(delivery: DueDelivery, result: SendResult): AttemptOutcome {
    if (result.isSent) return 'sent';
    return result.isFinal || delivery.attempts + 1 >= this.#options.attemptsMax ? 'dead' : 'failed';
  }

  /** A store that is away here costs a repeated delivery after the lease, never a lost one. */
  async #settle(delivery: DueDelivery, result: SendResult, attempt: Attempt): Promise<void> {
    const { log, settlements, clock } = this.#options;
    const { notification, endpoint } = delivery;
    const problems = result.isSent ? [] : [result.error];
    const attempts = delivery.attempts + 1;
    const askedMs = result.isSent ? 0 : (result.retryAfterMs ?? 0);
    const delayMs = retryDelayMs(this.#options, attempts, askedMs, this.#options.random());
    const settlement: Settlement = {
      ...keyOf(delivery),
      tenantId: endpoint.tenantId,
      status: attempt.outcome === 'failed' ? 'pending' : attempt.outcome,
      attempts,
      nextAttemptMs: attempt.outcome === 'failed' ? clock.nowMs() + delayMs : null,
      attempt,
    };
    try {
      await settlements.write(settlement);
    } catch (error) {
      const text = error instanceof AppError ? error.message : 'internal error';
      problems.push(`not recorded: ${text}`);
    }
    if (problems.length === 0) return;
    log.retryFailed({
      key: notification.id,
      connectionId: endpoint.id,
      attempt: attempts,
      error: problems.join('; '),
      tenantId: notification.tenantId,
      userId: notification.userId,
      deliveryId: `${notification.id}.${endpoint.id}`,
    });
  }

  #notifyIdle(): void {
    if (this.#places.used > 0 || this.#isLooking) return;
    this.#onIdle?.();
  }
}

function keyOf({ notification, endpoint }: DueDelivery) {
  return { notificationId: notification.id, endpointId: endpoint.id };
}

function attemptOf(
  result: SendResult,
  outcome: AttemptOutcome,
  atMs: number,
  tookMs: number,
): Attempt {
  const { answerStatus, answer } = result;
  const error = result.isSent ? '' : result.error;
  return { atMs, outcome, answerStatus, tookMs: Math.round(tookMs), error, answer };
}
