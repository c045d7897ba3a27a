import type { Socket } from 'node:net';
import type { Http2Connections, Http2ConnectionsOptions } from './http2-connections.ts';
import { Http2Connection } from './http2/connection.ts';
import { CountedUnreadBytes } from './unread-bytes.ts';

/** HTTP/2 on framing of our own: see http2/connection.ts, which keeps the bounds. */
export class OwnHttp2Listener implements Http2Connections {
  readonly #connections = new Set<Http2Connection>();
  readonly #options: Http2ConnectionsOptions;
  #openStreamCount = 0;
  #streamTotal = 0;
  #isDraining = false;
  #onDrained: (() => void) | null = null;

  constructor(options: Http2ConnectionsOptions) {
    this.#options = options;
  }

  take(socket: Socket): void {
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

  get streamTotal(): number {
    return this.#streamTotal;
  }

  beginDrain(): void {
    this.#isDraining = true;
    for (const connection of this.#connections) connection.askToGo();
  }

  closeGracefully(): void {
    for (const connection of this.#connections) connection.close();
  }

  destroy(): void {
    for (const connection of this.#connections) connection.destroy();
  }

  whenDrained(listener: () => void): void {
    this.#onDrained = listener;
  }

  #count(change: 1 | -1): void {
    this.#openStreamCount += change;
    if (change === 1) this.#streamTotal += 1;
    else if (this.#openStreamCount === 0) this.#onDrained?.();
  }
}
