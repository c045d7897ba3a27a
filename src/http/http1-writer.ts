import type net from 'node:net';
import { descriptorOf } from './sniffing-listener.ts';
import { PEEK_FAILED, type SocketPeek } from './socket-peek.ts';

/** What writers share of their listener. */
export interface Http1WriterHost {
  readonly peek: SocketPeek | null;
  /** Memory in which heads and short bodies are put together. */
  readonly scratch: Buffer;
  readonly ticks: { readonly stall: number };
  readonly tick: number;
}

/**
 * Writes the answers of one connection: to the kernel itself while nothing waits, else by the socket, which then says when it
 * has taken all. Hot.
 */
export class Http1Writer {
  readonly #socket: net.Socket;
  readonly #host: Http1WriterHost;
  readonly #onDrained: () => void;
  readonly #written = (): void => this.#partWritten();
  #pendingWrites = 0;
  #queuedBytes = -1;
  #stallTick = 0;

  constructor(socket: net.Socket, host: Http1WriterHost, onDrained: () => void) {
    this.#socket = socket;
    this.#host = host;
    this.#onDrained = onDrained;
  }

  /** Nothing that was sent waits for the kernel. */
  get isDrained(): boolean {
    return this.#pendingWrites === 0;
  }

  /** To be asked every tick while something waits: has the client taken nothing for as long as is allowed? */
  isStalled(): boolean {
    const { tick, ticks } = this.#host;
    const handle = (this.#socket as unknown as { _handle: { writeQueueSize?: number } | null })
      ._handle;
    const bytes = (handle?.writeQueueSize ?? 0) + this.#socket.writableLength;
    if (bytes === this.#queuedBytes) return tick > this.#stallTick;
    this.#queuedBytes = bytes;
    this.#stallTick = tick + ticks.stall;
    return false;
  }

  /** A head, and what fits behind it in one piece. `body` is the caller's again on return. */
  sendHead(head: string, body: string | Uint8Array | undefined): void {
    const { scratch } = this.#host;
    if (head.length > scratch.length >> 1) {
      this.#send(Buffer.from(head, 'latin1'), head.length);
      if (body !== undefined) this.sendHead('', body);
      return;
    }
    let length = scratch.write(head, 0, 'latin1');
    if (typeof body === 'string') {
      if (body.length * 3 <= scratch.length - length) length += scratch.write(body, length);
      else {
        this.#send(scratch, length);
        const bytes = Buffer.from(body);
        this.#send(bytes, bytes.length);
        return;
      }
    } else if (body !== undefined) {
      if (body.byteLength <= scratch.length - length) {
        scratch.set(body, length);
        length += body.byteLength;
      } else {
        this.#send(scratch, length);
        this.#send(body, body.byteLength);
        return;
      }
    }
    this.#send(scratch, length);
  }

  /** `bytes` are the writer's from here on. */
  sendPart(bytes: Uint8Array): void {
    const taken = this.#offer(bytes, bytes.byteLength);
    if (taken < bytes.byteLength) this.#queue(bytes.subarray(taken));
  }

  /** Without the socket's own buffer while nothing waits. Returns how many bytes the kernel has taken. */
  #offer(bytes: Uint8Array, length: number): number {
    const { peek } = this.#host;
    if (this.#pendingWrites > 0 || peek === null) return 0;
    // Asked for anew each time: a number is another's once the socket is closed.
    const fd = descriptorOf(this.#socket);
    if (fd < 0) return length;
    const count = peek.send(fd, bytes, length);
    if (count >= 0) return count;
    if (count !== PEEK_FAILED) return 0;
    this.#socket.destroy();
    return length;
  }

  #send(bytes: Uint8Array, length: number): void {
    const taken = this.#offer(bytes, length);
    if (taken < length) this.#queue(Buffer.from(bytes.subarray(taken, length)));
  }

  #queue(bytes: Uint8Array): void {
    if (this.#socket.destroyed) return;
    this.#pendingWrites += 1;
    this.#stallTick = this.#host.tick + this.#host.ticks.stall;
    this.#socket.write(bytes, this.#written);
  }

  #partWritten(): void {
    this.#pendingWrites -= 1;
    if (this.#pendingWrites === 0) this.#onDrained();
  }
}
