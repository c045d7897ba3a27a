import net from 'node:net';
import type { HeaderFields } from './header-fields.ts';
import { HEADER_BYTES_MAX, type HttpLimits } from './http-limits.ts';
import { Http1Connection, type Http1Host, type Http1Ticks } from './http1-connection.ts';
import { Http1Head } from './http1-head.ts';
import type { RawResponse } from './raw-message.ts';
import type { SocketPeek } from './socket-peek.ts';

export type Http1ListenerOptions = {
  readonly limits: HttpLimits;
  readonly fields: HeaderFields;
  /** Null where the system calls cannot be had. */
  readonly peek: SocketPeek | null;
  readonly isDraining: () => boolean;
  /** Takes a request whose fields were read. */
  readonly take: (res: RawResponse, request: Http1Head) => void;
  readonly onIncident: (event: string, detail: string) => void;
};

const READ_BYTES = 65_536;
/** Room for a head of an answer and a body behind it. */
const SCRATCH_BYTES = 2 * READ_BYTES + HEADER_BYTES_MAX;
const TICK_MS_MIN = 5;
const TICK_MS_MAX = 1_000;
const TICKS_PER_LIMIT = 8;
/** How long a client may take to read its last answer. */
const LINGER_MS = 2_000;
/** An answer of which the client takes nothing for so long is given up. */
const STALL_MS = 10_000;
/** Closed for new ones at the limit of connections, where they were idle for so long. */
const EVICTABLE_MS = 10_000;
const EVICTED_AT_ONCE = 64;

/** The connections of HTTP/1 of one listener: what they share, and their clock. */
export class Http1Listener implements Http1Host {
  readonly #options: Http1ListenerOptions;
  readonly #connections = new Set<Http1Connection>();
  readonly #readInto = Buffer.allocUnsafeSlow(READ_BYTES);
  readonly #tickMs: number;
  readonly #evictableTicks: number;
  readonly head = new Http1Head();
  readonly scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  readonly ticks: Http1Ticks;
  readonly keptField: string;
  readonly take: (res: RawResponse, request: Http1Head) => void;
  tick = 0;
  #heldBytes = 0;
  #dateField = '';
  #dateMs = 0;
  #evictedTick = -1;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: Http1ListenerOptions) {
    const { limits } = options;
    this.#options = options;
    this.take = options.take;
    const shortest = Math.min(limits.http1IdleMs, limits.sniffTimeoutMs, limits.bodyTimeoutMs);
    this.#tickMs = Math.ceil(
      Math.min(TICK_MS_MAX, Math.max(TICK_MS_MIN, shortest / TICKS_PER_LIMIT)),
    );
    const ticksOf = (ms: number): number => Math.ceil(ms / this.#tickMs) + 1;
    this.ticks = {
      idle: ticksOf(limits.http1IdleMs),
      head: ticksOf(limits.sniffTimeoutMs),
      body: ticksOf(limits.bodyTimeoutMs),
      linger: ticksOf(LINGER_MS),
      stall: ticksOf(STALL_MS),
    };
    this.#evictableTicks = ticksOf(EVICTABLE_MS);
    const seconds = Math.floor(limits.http1IdleMs / 1_000);
    this.keptField = seconds < 1 ? '' : `keep-alive: timeout=${seconds}\r\n`;
  }

  get fields(): HeaderFields {
    return this.#options.fields;
  }

  get peek(): SocketPeek | null {
    return this.#options.peek;
  }

  get discardBytesMax(): number {
    return this.#options.limits.discardBytesMax;
  }

  get isDraining(): boolean {
    return this.#options.isDraining();
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Notified anew once a second. */
  get dateField(): string {
    const nowMs = Date.now();
    if (nowMs - this.#dateMs >= 1_000 || nowMs < this.#dateMs) {
      this.#dateMs = nowMs - (nowMs % 1_000);
      this.#dateField = `date: ${new Date(nowMs).toUTCString()}\r\n`;
    }
    return this.#dateField;
  }

  /** Adopts a connection whose bytes are still unread. */
  takeDescriptor(fd: number): void {
    const socket = new net.Socket({
      fd,
      readable: true,
      writable: true,
      onread: {
        buffer: this.#readInto,
        callback: (count: number, bytes: Uint8Array): boolean => {
          connection.came(bytes as Buffer, count);
          return true;
        },
      },
    });
    socket.setNoDelay(true);
    const connection = this.#add(socket);
    socket.resume();
  }

  /** The same for one that Node.js has accepted. */
  takeSocket(socket: net.Socket): void {
    const connection = this.#add(socket);
    socket.on('data', (bytes: Buffer) => connection.came(bytes, bytes.length));
    socket.resume();
  }

  #add(socket: net.Socket): Http1Connection {
    const connection = new Http1Connection(socket, this);
    this.#connections.add(connection);
    if (this.#timer === null) this.#schedule();
    return connection;
  }

  gone(connection: Http1Connection): void {
    this.#connections.delete(connection);
  }

  holds(bytes: number): boolean {
    const { pipelinedBytesMax } = this.#options.limits;
    if (bytes > 0 && this.#heldBytes + bytes > pipelinedBytesMax) {
      this.#options.onIncident('pipelining_limit', `${pipelinedBytesMax} bytes wait to be read`);
      return false;
    }
    this.#heldBytes += bytes;
    return true;
  }

  /** Makes room for new connections by closing some that are idle for long. Returns whether there were any. */
  evictIdle(): boolean {
    if (this.#evictedTick === this.tick) return false;
    let evicted = 0;
    for (const connection of this.#connections) {
      if (connection.idleTicks < this.#evictableTicks || !connection.closeIdle()) continue;
      evicted += 1;
      if (evicted === EVICTED_AT_ONCE) return true;
    }
    // The next look finds none sooner.
    this.#evictedTick = this.tick;
    return evicted > 0;
  }

  /** Closes connections on which nothing is asked. */
  closeIdle(): void {
    for (const connection of this.#connections) connection.closeIdle();
  }

  destroy(): void {
    for (const connection of this.#connections) connection.drop();
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.tick += 1;
      for (const connection of this.#connections) connection.check();
      if (this.#connections.size > 0) this.#schedule();
    }, this.#tickMs);
    this.#timer.unref();
  }
}
