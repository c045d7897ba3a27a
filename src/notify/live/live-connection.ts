import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import { encodeSseEvent } from '../../http/exchange/sse-event.ts';
import type { NotifyLog, StreamIdentity } from '../core/event-log.ts';
import type { UnreadState } from '../model/notification-store.ts';
import type { StreamGrant } from '../model/stream-order.ts';
import type { EndReason, LiveMetrics } from './live-metrics.ts';

export type LiveConnectionOptions = {
  readonly exchange: HttpExchange;
  readonly identity: StreamIdentity;
  /** What it was opened with. */
  readonly grant: StreamGrant;
  /** Sent with the head of the answer: name, value, name, value… */
  readonly headers: readonly string[];
  /** Events that may wait for a client that does not read. */
  readonly bufferEventsMax: number;
  readonly metrics: LiveMetrics;
  readonly log: NotifyLog;
  /** Called once, when the stream has ended for whatever reason. */
  readonly onClosed: (connection: LiveConnection) => void;
};

const HEARTBEAT = ':\n\n';

/**
 * One live stream: Server-Sent Events (WHATWG HTML §9.2) on an HTTP exchange, with a bounded buffer of
 * events. When a client reads too slowly its oldest waiting event is dropped, logged and counted, and the
 * client is reported with a `gap` event before the next one, so that it can list what it missed.
 */
export class LiveConnection {
  readonly identity: StreamIdentity;
  readonly grant: StreamGrant;
  /** Every notification up to this sequence was sent, dropped, or is not for this stream. */
  position = 0;
  /** A catch-up from the store is going on; what arrives meanwhile is left to it. */
  isCatchingUp = false;
  /** The newest mark that the client knows of; undefined until it was greeted. */
  reads: number | undefined;
  readonly #exchange: HttpExchange;
  readonly #options: LiveConnectionOptions;
  /** Encoded events, oldest first, from `#first` on. */
  #waiting: string[] = [];
  #first = 0;
  #isBlocked = false;
  #droppedCount = 0;
  #isClosed = false;
  #onDrained: (() => void) | null = null;
  #endTimer: NodeJS.Timeout | undefined;

  constructor(options: LiveConnectionOptions) {
    this.#options = options;
    this.#exchange = options.exchange;
    this.identity = options.identity;
    this.grant = options.grant;
    this.#exchange.onAborted(() => this.#closed());
    const headers = ['cache-control', 'no-store', 'x-accel-buffering', 'no', ...options.headers];
    this.#exchange.begin(200, 'text/event-stream', headers);
    options.metrics.streamEvents.open.add();
  }

  get isOpen(): boolean {
    return !this.#exchange.isEnded;
  }

  get waitingCount(): number {
    return this.#waiting.length - this.#first;
  }

  /**
   * The first event. Its id is where the stream begins: whoever reconnects with it misses nothing, even
   * if no notification came. It says what is unread, so that no mark is missed either.
   */
  greet({ head, unreadCount, reads }: UnreadState): void {
    this.reads = reads;
    const data = JSON.stringify({
      connection_id: this.identity.connectionId,
      head,
      unread_count: unreadCount,
      reads,
    });
    this.send(encodeSseEvent({ id: String(this.position), event: 'open', data }));
  }

  /** Sends an encoded event, or lets it wait; false when an older one had to be dropped for it. */
  send(frame: string): boolean {
    if (!this.isOpen) return true;
    if (!this.#isBlocked) {
      this.#write(frame);
      return true;
    }
    const { bufferEventsMax, log, metrics } = this.#options;
    const isFull = this.waitingCount >= bufferEventsMax;
    if (isFull) {
      this.#waiting[this.#first] = '';
      this.#first += 1;
      this.#droppedCount += 1;
      metrics.dropped.buffer_full.add();
      metrics.liveDropped.add();
      log.eventQueueFull(this.identity);
    }
    this.#waiting.push(frame);
    // Moving the rest is paid for by as many drops or writes.
    if (this.#first > bufferEventsMax) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    return !isFull;
  }

  /** A comment, so that proxies and clients see a live connection. Never waits. */
  heartbeat(): void {
    if (!this.isOpen || this.#isBlocked) return;
    this.#options.metrics.streamEvents.heartbeat.add();
    this.#write(HEARTBEAT);
  }

  /**
   * Completes the answer; the client reconnects after `retryMs`, the field that EventSource knows, so
   * that not all come at once.
   */
  end(retryMs: number): void {
    if (!this.#isBlocked) this.#exchange.write(`retry: ${retryMs}\n\n`);
    this.#exchange.finish();
    this.#closed();
  }

  /** As `end`, and notifies the client why, in an `end` event. */
  endFor(reason: EndReason, retryMs: number): void {
    if (!this.isOpen) return;
    this.#options.metrics.ended[reason].add();
    if (!this.#isBlocked) {
      this.#exchange.write(encodeSseEvent({ event: 'end', data: JSON.stringify({ reason }) }));
    }
    this.end(retryMs);
  }

  /** Ends it after so many milliseconds, as expired; undefined: not for that any more. */
  endAfter(ms: number | undefined, retryMs: number): void {
    clearTimeout(this.#endTimer);
    if (ms === undefined || !this.isOpen) return;
    this.#endTimer = setTimeout(() => this.endFor('expired', retryMs), Math.max(0, ms)).unref();
  }

  /** Resolves when nothing waits for the client, or the stream has ended. One caller at a time. */
  drained(): Promise<void> {
    if (!this.#isBlocked || !this.isOpen) return Promise.resolve();
    return new Promise((resolve) => (this.#onDrained = resolve));
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#endTimer);
    this.#waiting = [];
    this.#first = 0;
    this.#notifyDrained();
    this.#options.onClosed(this);
  }

  #notifyDrained(): void {
    const listener = this.#onDrained;
    this.#onDrained = null;
    listener?.();
  }

  #write(text: string): void {
    if (this.#exchange.write(text)) return;
    this.#isBlocked = true;
    this.#exchange.onWritable(() => this.#drain());
  }

  #drain(): void {
    this.#isBlocked = false;
    if (!this.isOpen) return;
    if (this.#droppedCount > 0) {
      const data = JSON.stringify({ dropped: this.#droppedCount });
      this.#droppedCount = 0;
      this.#options.metrics.streamEvents.gap.add();
      this.#write(encodeSseEvent({ event: 'gap', data }));
    }
    while (!this.#isBlocked && this.#first < this.#waiting.length) {
      const frame = this.#waiting[this.#first] as string;
      this.#waiting[this.#first] = '';
      this.#first += 1;
      this.#write(frame);
    }
    if (this.#first === this.#waiting.length) {
      this.#waiting = [];
      this.#first = 0;
    }
    if (!this.#isBlocked) this.#notifyDrained();
  }
}
