/*
 * Sockets flow into this folder, streams out of it: one for each request. `frames/` cuts bytes into frames and writes them,
 * `hpack/` reads and writes heads. `connection` keeps the rules of a connection, `open-streams` those of its streams,
 * `send-side` all that leaves. `own-stream` is a request and its answer; `whole-stream` reads its body.
 */
import type { Socket } from 'node:net';
import type { BodyBudget, BodyHold, HeldBody } from '../bodies/body-budget.ts';
import type { BodyDeadlines } from '../bodies/body-deadlines.ts';
import { PieceGatherer } from '../bodies/piece-gatherer.ts';
import type { HttpLimits } from '../http-limits.ts';
import { Http2Connection } from './connection.ts';
import type { UnreadBytes } from './own-stream.ts';
import type { Http2Headers, Http2RequestStream } from './request-stream.ts';

/** Bytes of a body that wait for its reader, in blocks that count against the budget of all bodies. */
export class CountedUnreadBytes implements UnreadBytes, HeldBody {
  readonly #gatherer = new PieceGatherer();
  readonly #hold: BodyHold;

  constructor(budget: BodyBudget, owner: string) {
    this.#hold = budget.open(owner, this);
  }

  get length(): number {
    return this.#gatherer.length;
  }

  add(chunk: Uint8Array): boolean {
    this.#gatherer.append(chunk);
    return this.#counted();
  }

  shift(): Uint8Array {
    const bytes = this.#gatherer.shift();
    this.#counted();
    return bytes;
  }

  moveTo(owner: string): boolean {
    return this.#hold.moveTo(owner) === null;
  }

  release(): void {
    this.#gatherer.clear();
    this.#hold.release();
  }

  /** Never called: the bytes wait for our reader, and not for their sender. */
  evict(): void {
    this.#gatherer.clear();
  }

  #counted(): boolean {
    return this.#hold.resize(this.#gatherer.capacity, false) === null;
  }
}

/** Takes one HTTP/2 request; `bodyDeadlines` cuts bodies that it expects whole. */
export type Http2StreamHandler = (
  stream: Http2RequestStream,
  headers: Http2Headers,
  bodyDeadlines: BodyDeadlines,
) => void;

export type Http2ListenerOptions = {
  readonly onStream: Http2StreamHandler;
  readonly limits: HttpLimits;
  readonly bodyDeadlines: BodyDeadlines;
  readonly bodyBudget: BodyBudget;
  readonly onIncident: (event: string, detail: string) => void;
};

/** HTTP/2 without TLS on sockets that were accepted elsewhere. Bounds of a connection are in connection-options.ts. */
export class Http2Listener {
  readonly #connections = new Set<Http2Connection>();
  readonly #options: Http2ListenerOptions;
  #openStreamCount = 0;
  #streamTotal = 0;
  #isDraining = false;
  #onDrained: (() => void) | null = null;

  constructor(options: Http2ListenerOptions) {
    this.#options = options;
  }

  /** Adopts a connection whose bytes are still unread. */
  adopt(socket: Socket): void {
    const { onStream, limits, bodyDeadlines, bodyBudget, onIncident } = this.#options;
    const connection: Http2Connection = new Http2Connection(socket, {
      streamsMax: limits.http2StreamsMax,
      headerBytesMax: limits.http2HeaderBytesMax,
      idleMs: limits.http2IdleMs,
      handshakeMs: limits.http2HandshakeMs,
      answerStallMs: limits.answerStallMs,
      onStream: (stream, headers) => onStream(stream, headers, bodyDeadlines),
      newUnread: (owner) => new CountedUnreadBytes(bodyBudget, owner),
      onCount: (change) => this.#count(change),
      onClose: () => this.#connections.delete(connection),
      onIncident,
    });
    this.#connections.add(connection);
    if (this.#isDraining) connection.askToGo();
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  get openStreamCount(): number {
    return this.#openStreamCount;
  }

  /** Streams of all connections since the start, ended ones too. */
  get streamTotal(): number {
    return this.#streamTotal;
  }

  /**
   * Asks every client to go elsewhere, also those that come from now on. Streams on the way are still served. A first GOAWAY
   * refuses nothing; the one that refuses comes a round trip later (RFC 9113 section 6.8).
   */
  beginDrain(): void {
    this.#isDraining = true;
    for (const connection of this.#connections) connection.askToGo();
  }

  /** Refuses new streams; each connection closes when its last stream ends. */
  closeGracefully(): void {
    for (const connection of this.#connections) connection.close();
  }

  /** Drops all connections. */
  destroy(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  /** Sets the listener that is called when the last open stream has ended. One listener. */
  whenDrained(listener: () => void): void {
    this.#onDrained = listener;
  }

  #count(change: 1 | -1): void {
    this.#openStreamCount += change;
    if (change === 1) this.#streamTotal += 1;
    else if (this.#openStreamCount === 0) this.#onDrained?.();
  }
}
