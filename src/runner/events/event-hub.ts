import { randomBytes } from 'node:crypto';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import { AppError } from '../../shared/app-error.ts';
import type { EventPublisher, RunnerEvent } from '../model/events.ts';
import { FrameBatch, piecesOf, plainFrame } from './event-frames.ts';
import { EventRing } from './event-ring.ts';
import { EventSubscriber, WRITE_BYTES_MAX, type EventFilter } from './event-subscriber.ts';

export type EventHubOptions = {
  readonly subscribersMax: number;
  /** Bytes that may wait for one subscriber. */
  readonly bufferBytesMax: number;
  /** Time between two pings; the contract says 30 s. */
  readonly pingMs?: number | undefined;
  /** Frames kept for subscribers that come back; the contract says 10,000. */
  readonly ringFramesMax?: number | undefined;
};

/** Figures for metrics. */
export type EventHubStats = {
  readonly subscribers: number;
  readonly published: number;
  /** Lines that slow subscribers missed. */
  readonly dropped: number;
};

const PING_MS = 30_000;
const RING_FRAMES_MAX = 10_000;
/** 10,000 frames of ordinary lines take 2 to 3 MiB; long lines must not take a gigabyte. */
const RING_BYTES_MAX = 64 * 1024 * 1024;
/** Time that one turn of the event loop gives to subscribers: what runs do goes on in between. */
const TURN_MS = 4;
const EVENT_ID = /^([0-9a-z]{4,20})-(\d{1,15})$/;

/**
 * Multicasts every event of every run to all streams, in one order for all of them.
 *
 * `publish` numbers an event, puts it into the ring and returns; the frames of one turn of the event
 * loop go out together, encoded once, within a budget of time: whom it does not suffice for lags, as
 * does a client that reads slowly. A subscriber that lags is the only one that notices (see
 * EventSubscriber); one that comes back reads from the ring until it has caught up.
 */
export class EventHub implements EventPublisher {
  readonly #options: EventHubOptions;
  readonly #ring: EventRing;
  /** Ids of another process mean nothing here. */
  readonly #epoch = `${Date.now().toString(36)}${randomBytes(2).toString('hex')}`;
  readonly #subscribers = new Set<EventSubscriber>();
  /** Those that could take more than they were given, longest first. */
  readonly #behind = new Set<EventSubscriber>();
  #reservedCount = 0;
  #nextSeq = 1;
  #unsent: FrameBatch[] = [];
  #unsentBytes = 0;
  #isTurnScheduled = false;
  #isClosed = false;
  #droppedCount = 0;

  constructor(options: EventHubOptions) {
    this.#options = options;
    this.#ring = new EventRing(options.ringFramesMax ?? RING_FRAMES_MAX, RING_BYTES_MAX);
  }

  publish(event: RunnerEvent): void {
    if (event.type === 'step.log') {
      this.publishLog(event.runId, event.jobId, event.stepNumber, [event.line]);
      return;
    }
    this.#add(FrameBatch.ofEvent(event, this.#epoch, this.#nextSeq));
  }

  publishLog(runId: string, jobId: string, stepNumber: number, lines: readonly string[]): void {
    const place = { runId, jobId, stepNumber };
    for (const piece of piecesOf(lines, WRITE_BYTES_MAX)) {
      this.#add(FrameBatch.ofLines(place, piece, this.#epoch, this.#nextSeq));
    }
  }

  /** Takes a place among the subscribers, for `subscribe`. Errors: TOO_MANY_SUBSCRIBERS, SHUTTING_DOWN. */
  reserve(): void {
    if (this.#isClosed) throw new AppError('SHUTTING_DOWN', 'the runner is shutting down');
    const { subscribersMax } = this.#options;
    if (this.#subscribers.size + this.#reservedCount >= subscribersMax) {
      const text = `${subscribersMax} event streams are open already`;
      throw new AppError('TOO_MANY_SUBSCRIBERS', text);
    }
    this.#reservedCount += 1;
  }

  /**
   * Begins a stream on an exchange for which a place was reserved: `ping` first, then what came after
   * `lastEventId` ('' for nothing), `reset` when that is no longer known, then all that happens.
   */
  subscribe(
    exchange: HttpExchange,
    head: readonly string[],
    filter: EventFilter,
    lastEventId: string,
  ): void {
    this.#reservedCount -= 1;
    if (exchange.isEnded) return;
    // What is not handed out yet came before this subscriber.
    this.#handOut(performance.now());
    const subscriber = new EventSubscriber(exchange, filter, this.#options.bufferBytesMax, {
      onReady: () => {
        this.#behind.add(subscriber);
        this.#scheduleTurn();
      },
      onDropped: (lineCount) => {
        this.#droppedCount += lineCount;
      },
    });
    const pings = setInterval(() => subscriber.ping(), this.#options.pingMs ?? PING_MS);
    pings.unref();
    exchange.onAborted(() => {
      clearInterval(pings);
      this.#subscribers.delete(subscriber);
      this.#behind.delete(subscriber);
    });
    exchange.begin(200, 'text/event-stream', head);
    this.#subscribers.add(subscriber);
    subscriber.ping();
    if (lastEventId === '') return;
    subscriber.replayFrom = this.#seqAfter(lastEventId);
    this.#replay(subscriber);
  }

  get stats(): EventHubStats {
    return {
      subscribers: this.#subscribers.size,
      published: this.#nextSeq - 1,
      dropped: this.#droppedCount,
    };
  }

  /** Sends what is left and completes all streams; new ones are refused. */
  close(): void {
    this.#isClosed = true;
    this.#handOut(Number.POSITIVE_INFINITY);
    for (const subscriber of this.#subscribers) subscriber.end();
    this.#subscribers.clear();
    this.#behind.clear();
  }

  #add(batch: FrameBatch): void {
    this.#nextSeq += batch.count;
    this.#ring.add(batch);
    if (this.#subscribers.size === 0) return;
    this.#unsent.push(batch);
    this.#unsentBytes += batch.estimatedBytes;
    if (this.#unsentBytes >= WRITE_BYTES_MAX) this.#turn();
    else this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    setImmediate(() => {
      this.#isTurnScheduled = false;
      this.#turn();
    });
  }

  #turn(): void {
    const deadlineMs = performance.now() + TURN_MS;
    this.#handOut(deadlineMs);
    for (const subscriber of this.#behind) {
      if (performance.now() >= deadlineMs) break;
      // To the end of the line, if there is more for it.
      this.#behind.delete(subscriber);
      if (subscriber.isBlocked) continue;
      if (subscriber.hasWaiting) subscriber.drainSome();
      else if (subscriber.replayFrom !== undefined) this.#replay(subscriber);
      const hasMore = subscriber.hasWaiting || subscriber.replayFrom !== undefined;
      if (hasMore && !subscriber.isBlocked && subscriber.isOpen) this.#behind.add(subscriber);
    }
    if (this.#behind.size > 0) this.#scheduleTurn();
  }

  /**
   * Hands what was published to every subscriber: writes it to those that are up to date, until the
   * deadline, and lets it wait for the others. O(subscribers), plus encoding once.
   */
  #handOut(deadlineMs: number): void {
    const batches = this.#unsent;
    if (batches.length === 0) return;
    this.#unsent = [];
    this.#unsentBytes = 0;
    const bytesOfKey = new Map<string, Uint8Array>();
    for (const subscriber of this.#subscribers) {
      // It reads the ring, where the batches are.
      if (subscriber.replayFrom !== undefined) continue;
      const isUpToDate = !subscriber.isBlocked && !subscriber.hasWaiting;
      if (isUpToDate && performance.now() < deadlineMs) {
        let bytes = bytesOfKey.get(subscriber.filterKey);
        if (bytes === undefined) {
          bytes = joined(batches.filter((batch) => subscriber.wants(batch)));
          bytesOfKey.set(subscriber.filterKey, bytes);
        }
        subscriber.write(bytes);
        continue;
      }
      for (const batch of batches) if (subscriber.wants(batch)) subscriber.enqueue(batch);
      if (!subscriber.isBlocked && subscriber.hasWaiting) this.#behind.add(subscriber);
    }
  }

  /** Writes from the ring as far as the client takes it, once everything is handed out to the others. */
  #replay(subscriber: EventSubscriber): void {
    this.#handOut(performance.now());
    while (subscriber.isOpen && !subscriber.isBlocked) {
      const from = subscriber.replayFrom;
      if (from === undefined) return;
      if (from < this.#ring.oldest(this.#nextSeq)) {
        subscriber.replayFrom = undefined;
        subscriber.write(plainFrame('reset', { reason: 'history_lost' }));
        return;
      }
      const batch = this.#ring.find(from);
      if (batch === undefined) {
        subscriber.replayFrom = undefined;
        return;
      }
      subscriber.replayFrom = batch.firstSeq + batch.count;
      if (subscriber.wants(batch)) subscriber.write(batch.bytesFrom(from));
    }
  }

  /** The frame that follows `id`; 0, which is always too old, for an id that means nothing here. */
  #seqAfter(id: string): number {
    const parts = EVENT_ID.exec(id);
    if (parts === null || parts[1] !== this.#epoch) return 0;
    const seq = Number(parts[2]) + 1;
    return seq > this.#nextSeq ? 0 : seq;
  }
}

function joined(batches: readonly FrameBatch[]): Uint8Array {
  const [first] = batches;
  if (batches.length === 1 && first !== undefined) return first.bytes();
  return Buffer.concat(batches.map((batch) => batch.bytes()));
}
