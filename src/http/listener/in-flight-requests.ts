import type { Http2Listener } from '../http2/http2-listener.ts';

/** Time in ms without a new request after which nothing is left to read. */
export const QUIET_MS = 10;

type StreamCounts = Pick<Http2Listener, 'openStreamCount' | 'streamTotal'>;

/** Counts open requests, and waits until there are none. `http2` counts those that are streams. */
export class InFlightRequests {
  readonly #http2: StreamCounts | null;
  #exchangeCount = 0;
  #exchangeTotal = 0;
  #onIdle: (() => void) | null = null;

  constructor(http2: StreamCounts | null) {
    this.#http2 = http2;
  }

  /** Requests of HTTP/1 not yet answered. */
  get exchangeCount(): number {
    return this.#exchangeCount;
  }

  /** Requests and streams not yet answered. */
  get inFlightCount(): number {
    return this.#exchangeCount + (this.#http2?.openStreamCount ?? 0);
  }

  exchangeBegan(): void {
    this.#exchangeCount += 1;
    this.#exchangeTotal += 1;
  }

  exchangeEnded(): void {
    this.#exchangeCount -= 1;
    if (this.#onIdle !== null) this.checkIdle();
  }

  /**
   * Resolves once idle, and still idle after a moment: bytes that have arrived on open connections may not have been read
   * yet. Resolves after `timeMaxMs` at the latest.
   */
  async quietWithin(timeMaxMs: number): Promise<void> {
    const untilMs = performance.now() + timeMaxMs;
    const leftMs = (): number => Math.max(0, untilMs - performance.now());
    const total = (): number => this.#exchangeTotal + (this.#http2?.streamTotal ?? 0);
    for (let before = -1; before !== total();) {
      before = total();
      await this.#idleWithin(leftMs());
      if (leftMs() === 0) return;
      await new Promise((resolve) => setTimeout(resolve, Math.min(QUIET_MS, leftMs())));
    }
    await this.#idleWithin(leftMs());
  }

  /** Wakes the waiter if no request is open any more. */
  checkIdle(): void {
    if (this.#onIdle === null || this.inFlightCount > 0) return;
    const onIdle = this.#onIdle;
    this.#onIdle = null;
    onIdle();
  }

  #idleWithin(deadlineMs: number): Promise<void> {
    if (this.inFlightCount === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        // The last answers are with the kernel after this turn; closing now could overtake them.
        setImmediate(resolve);
      };
    });
  }
}
