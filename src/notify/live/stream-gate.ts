import { AppError } from '../../shared/app-error.ts';
import type { LoopReport } from '../../shared/loop-report.ts';
import type { FairGate } from '../core/round-robin-queue.ts';
import type { NotificationStore } from '../model/notification-store.ts';
import {
  revokes,
  type StreamGrant,
  type StreamOrder,
  type StreamStanding,
} from '../model/stream-order.ts';
import type { LiveHub } from './live-hub.ts';

export type StreamGateOptions = {
  readonly store: Pick<NotificationStore, 'streamStanding' | 'streamOrdersAfter'>;
  readonly hub: Pick<LiveHub, 'apply' | 'endAll'>;
  /** Of reads of the store for streams. */
  readonly gate: FairGate;
  /** How often the store is asked for orders when no hint comes. */
  readonly pollMs: number;
  /** What was ordered until then concerns no stream that is to be opened here. */
  readonly revision: number;
  readonly report: LoopReport;
};

type Opening = { readonly grant: StreamGrant; isRevoked: boolean };

/** How long a device waits for its stream while the store does not answer. */
const OPENING_MS_MAX = 10_000;
const RETRY_MS = 250;

/**
 * Whether a stream may be opened, and which must end: follows what is ordered about streams, by whichever process, and asks the
 * store about each token.
 *
 * Invariant: once an order was followed here, no stream that it ends is open or becomes open. A token is looked up while it is
 * among those that open, so that an order which the look-up came too early for meets it there; with none in between, since
 * admitted streams are handed over in the same turn. (test/notify/revocation.pg.test.ts)
 */
export class StreamGate {
  readonly #options: StreamGateOptions;
  readonly #opening = new Set<Opening>();
  readonly #timer: NodeJS.Timeout;
  #revision: number;
  #isReading = false;
  #wantsRead = false;
  #isClosed = false;
  #readAtMs = performance.now();

  constructor(options: StreamGateOptions) {
    this.#options = options;
    this.#revision = options.revision;
    this.#timer = setInterval(() => this.hint(), options.pollMs).unref();
  }

  /** How long ago the store last said what was ordered, milliseconds. */
  get ageMs(): number {
    return performance.now() - this.#readAtMs;
  }

  /** Something may have been ordered. */
  hint(): void {
    this.#wantsRead = true;
    if (!this.#isReading && !this.#isClosed) void this.#read();
  }

  /**
   * Calls `open` at once when the store has said that the token is good. Errors: STREAM_TOKEN_INVALID, those of `open`, and those of
   * the store once the device has waited for long. `isGone` ends the waiting without an error.
   */
  async admit(
    grant: StreamGrant,
    isGone: () => boolean,
    open: (standing: StreamStanding) => void,
  ): Promise<void> {
    const opening: Opening = { grant, isRevoked: false };
    this.#opening.add(opening);
    try {
      const standing = await this.#standingOf(grant, isGone);
      if (standing === undefined) return;
      if (standing.isRevoked || opening.isRevoked) {
        throw new AppError('STREAM_TOKEN_INVALID', 'the stream token has been revoked');
      }
      open(standing);
    } finally {
      this.#opening.delete(opening);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  async #standingOf(
    grant: StreamGrant,
    isGone: () => boolean,
  ): Promise<StreamStanding | undefined> {
    const { store, gate } = this.#options;
    const untilMs = performance.now() + OPENING_MS_MAX;
    while (!isGone() && !this.#isClosed) {
      try {
        return await gate.run(grant.tenantId, () => store.streamStanding(grant));
      } catch (error) {
        // EventSource takes a refusal for final, so a store that is away for a moment is waited for.
        if (performance.now() > untilMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
    return undefined;
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    while (this.#wantsRead && !this.#isClosed) {
      this.#wantsRead = false;
      const startMs = performance.now();
      try {
        const { head, orders, hasGap } = await this.#options.store.streamOrdersAfter(
          this.#revision,
        );
        this.#readAtMs = startMs;
        // Whoever was away for longer than orders are kept cannot know whose streams should have ended.
        if (hasGap) this.#options.hub.endAll();
        for (const { order } of orders) this.#follow(order);
        const last = orders.at(-1)?.revision;
        this.#revision = hasGap || last === undefined ? head : last;
        if (!hasGap && last !== undefined && last < head) this.#wantsRead = true;
        this.#options.report.succeeded();
      } catch (error) {
        // The next turn of the timer reads again.
        this.#options.report.failed(error);
      }
    }
    this.#isReading = false;
  }

  #follow(order: StreamOrder): void {
    for (const opening of this.#opening) {
      if (revokes(order, opening.grant)) opening.isRevoked = true;
    }
    this.#options.hub.apply(order);
  }
}
