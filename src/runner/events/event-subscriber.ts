import type { RunnerEventType } from '../model/events.ts';
import { plainFrame, type FrameBatch } from './event-frames.ts';

export type EventFilter = {
  readonly runId?: string | undefined;
  readonly types?: ReadonlySet<RunnerEventType> | undefined;
};

/** Where frames go: the answer side of an HttpExchange. */
export interface EventSink {
  readonly isEnded: boolean;
  /** False: the client lags; more only after `onWritable`. */
  write(bytes: Uint8Array): boolean;
  onWritable(listener: () => void): void;
  finish(): void;
  abort(): void;
}

/** Log lines that were left out, reported in their place. */
type Gap = { readonly runId: string; dropped: number };
type WaitingFrames = { readonly batch: FrameBatch } | { readonly gap: Gap };

/** How much is given to the socket at once, so that little waits in it unseen. */
export const WRITE_BYTES_MAX = 262_144;
const PING = plainFrame('ping', {});

/**
 * One open stream. What the client does not take waits here, as references to frames that all
 * subscribers share: at most `bufferBytesMax` bytes of them. Beyond that its log lines, also those
 * that wait, become `gap` events, until all has been taken; when what is left does not fit either,
 * the connection is dropped, and the client comes back with Last-Event-ID.
 */
export class EventSubscriber {
  readonly filter: EventFilter;
  /** Subscribers of the same key get the same bytes. */
  readonly filterKey: string;
  /** The next frame that is owed from the ring; undefined once the subscriber is live. */
  replayFrom: number | undefined;
  readonly #exchange: EventSink;
  readonly #bufferBytesMax: number;
  readonly #onReady: () => void;
  readonly #onDropped: (lineCount: number) => void;
  #queue: WaitingFrames[] = [];
  #queuedBytes = 0;
  /** Bytes of the last write, which the client has not taken whole; 0 when it has. */
  #heldBytes = 0;
  #isDropping = false;
  /** Gaps behind the last event that is not a log line. */
  readonly #tailGaps = new Map<string, Gap>();

  constructor(
    exchange: EventSink,
    filter: EventFilter,
    bufferBytesMax: number,
    hooks: { readonly onReady: () => void; readonly onDropped: (lineCount: number) => void },
  ) {
    this.#exchange = exchange;
    this.filter = filter;
    this.filterKey = `${filter.runId ?? ''} ${[...(filter.types ?? [])].sort().join(',')}`;
    this.#bufferBytesMax = bufferBytesMax;
    this.#onReady = hooks.onReady;
    this.#onDropped = hooks.onDropped;
  }

  get isOpen(): boolean {
    return !this.#exchange.isEnded;
  }

  /** True while the client lags behind what was written. */
  get isBlocked(): boolean {
    return this.#heldBytes > 0;
  }

  /** True while something waits to be written. */
  get hasWaiting(): boolean {
    return this.#queue.length > 0;
  }

  wants(batch: FrameBatch): boolean {
    const { runId, types } = this.filter;
    if (runId !== undefined && runId !== batch.runId) return false;
    return types === undefined || types.has(batch.type);
  }

  ping(): void {
    if (!this.isBlocked && !this.hasWaiting) this.write(PING);
  }

  /** Sends bytes now; only while not blocked and nothing waits. */
  write(bytes: Uint8Array): void {
    if (bytes.byteLength === 0 || !this.isOpen || this.#exchange.write(bytes)) return;
    this.#heldBytes = bytes.byteLength;
    this.#exchange.onWritable(() => {
      this.#heldBytes = 0;
      if (this.isOpen) this.#onReady();
    });
  }

  /** Keeps a batch for later. O(1), but for the one time that dropping begins. */
  enqueue(batch: FrameBatch): void {
    const bytes = batch.bytes().byteLength;
    if (!this.#isDropping && !this.#hasCapacity(bytes)) this.#beginDropping();
    if (this.#isDropping && batch.isLog) return this.#drop(batch);
    if (!this.#hasCapacity(bytes)) return this.#exchange.abort();
    this.#queue.push({ batch });
    this.#queuedBytes += bytes;
    if (!batch.isLog) this.#tailGaps.clear();
  }

  /** Completes the answer, after what waits. */
  end(): void {
    while (this.hasWaiting && this.isOpen) this.drainSome();
    this.#exchange.finish();
  }

  #hasCapacity(bytes: number): boolean {
    return this.#heldBytes + this.#queuedBytes + bytes <= this.#bufferBytesMax;
  }

  #beginDropping(): void {
    this.#isDropping = true;
    const waiting = this.#queue;
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#tailGaps.clear();
    for (const entry of waiting) {
      if ('gap' in entry || entry.batch.isLog) {
        if ('batch' in entry) this.#drop(entry.batch);
        continue;
      }
      this.#queue.push(entry);
      this.#queuedBytes += entry.batch.bytes().byteLength;
      this.#tailGaps.clear();
    }
  }

  #drop(batch: FrameBatch): void {
    this.#onDropped(batch.count);
    const known = this.#tailGaps.get(batch.runId);
    if (known !== undefined) {
      known.dropped += batch.count;
      return;
    }
    const gap: Gap = { runId: batch.runId, dropped: batch.count };
    this.#tailGaps.set(batch.runId, gap);
    this.#queue.push({ gap });
  }

  /** Writes some of what waits, about WRITE_BYTES_MAX; only while not blocked. */
  drainSome(): void {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for (const entry of this.#queue) {
      if (bytes >= WRITE_BYTES_MAX) break;
      const part = 'gap' in entry ? plainFrame('gap', entry.gap) : entry.batch.bytes();
      // A gap that is on its way counts no further lines.
      if ('gap' in entry) this.#tailGaps.delete(entry.gap.runId);
      else this.#queuedBytes -= part.byteLength;
      parts.push(part);
      bytes += part.byteLength;
    }
    this.#queue.splice(0, parts.length);
    if (this.#queue.length === 0) {
      this.#isDropping = false;
      this.#tailGaps.clear();
    }
    this.write(parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts));
  }
}
