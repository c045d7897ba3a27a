import net from 'node:net';
import { HEADER_BYTES_MAX } from '../http-limits.ts';
import { descriptorOf, PEEK_AGAIN, PEEK_FAILED, POLLIN, type SocketPeek } from '../socket-peek.ts';
import { firstHeadOf } from './first-head.ts';
import { firstHelloOf } from './first-hello.ts';
import { describePortHolder } from './port-holder.ts';

export type SniffingListenerOptions = {
  readonly host: string;
  readonly port: number;
  /**
   * Sockets that listen already, instead of `host` and `port`. The first is this process's own. Others belong to neighbour
   * processes: what waits at them is accepted here every `HELP_MS`.
   */
  readonly descriptors?: readonly number[] | undefined;
  readonly sniffingMax: number;
  readonly sniffTimeoutMs: number;
  readonly peek: SocketPeek;
  /** False closes a new connection at once. */
  readonly admits: () => boolean;
  /**
   * Adopts the descriptor of a connection with its bytes still unread. `isPlain`: they begin with a plain head
   * (`first-head.ts`).
   */
  readonly onHttp1: (fd: number, isPlain: boolean) => void;
  /** Adopts the descriptor of a connection with its bytes still unread, which begin with a ClientHello of TLS. */
  readonly onTls: (fd: number, offersHttp2: boolean) => void;
  /** Adopts a paused socket whose bytes, still unread, begin with the HTTP/2 preface. */
  readonly onHttp2: (socket: net.Socket) => void;
  readonly onIncident: (event: string, detail: string) => void;
};

/** A connection by its descriptor, and by the socket that owns it where Node.js made one. */
type Accepted = { readonly fd: number; readonly socket: net.Socket | null };
type WaitingConnection = Accepted & { readonly sinceMs: number };
type Protocol = 'plain' | 'other' | 'http2' | 'tls' | 'tls with http2' | 'unknown' | 'gone';

/**
 * First bytes of the preface of HTTP/2, with which no method of HTTP/1.1 begins. The framing of HTTP/2 checks the whole
 * preface.
 */
const PREFACE = [0x50, 0x52, 0x49]; // "PRI"
/** The shortest request line, "GET / HTTP/1.1\r\n". */
const REQUEST_LINE_BYTES_MIN = 16;
const DEFER_ACCEPT_SECONDS = 2;
/**
 * Connections that may wait to be accepted, as many as are admitted. The kernel takes net.core.somaxconn instead where that
 * is less (docs/operations.md).
 */
const BACKLOG = 16_384;
/**
 * Connections accepted in one turn of the event loop, in addition to its other work. libuv accepts one a turn, and a turn of
 * a busy service is as long as all requests that came meanwhile.
 */
const ACCEPTED_PER_TURN_MAX = 512;
/** Pauses in ms between two checks of the silent connections: short while the youngest is young. */
const POLL_MS_YOUNG = 1;
const POLL_MS_OLD = 20;
const YOUNG_MS = 50;
/** Connections that have sent something, read in one check. */
const POLLS_MAX = 512;
/** Time in ms between two checks of the sockets of neighbours, which may have ended or hang. */
const HELP_MS = 20;
/**
 * Pause in ms between two checks, at the end, of whether connections still wait for their first bytes; `END_MS` bounds it
 * all.
 */
const QUIET_MS = 5;
/** Round trip in ms of clients that are being let in as the port closes. */
const LET_IN_MS = 50;
/** The same where another process decides when no more clients are let in. */
const LET_IN_HELD_MS = 250;
const END_MS = 1_000;

/**
 * One port for two protocols. Accepts connections and looks at their first bytes without taking them. Passes them on to the
 * framing of HTTP/1 or of HTTP/2, or to the handler of TLS. A connection whose first head has not come after `sniffTimeoutMs`
 * is closed. At most `sniffingMax` of them wait: beyond that the oldest is closed. Accepts all that wait at once, so that new
 * clients do not wait behind requests.
 *
 * Cost: two system calls for a connection whose first bytes arrived with it (nearly all of them, by deferred accept). Silent
 * ones share one timer.
 */
export class SniffingListener {
  readonly #options: SniffingListenerOptions;
  readonly #server: net.Server;
  /** Buffer for a head and one byte more: longer heads are refused by the listener that gets the connection. */
  readonly #first = Buffer.allocUnsafeSlow(HEADER_BYTES_MAX + 1);
  /** Connections in order of arrival, so the first one is the oldest. */
  readonly #waiting = new Set<WaitingConnection>();
  #polled = new Int32Array(0);
  #timer: NodeJS.Timeout | null = null;
  #helper: NodeJS.Timeout | null = null;
  #youngestMs = 0;
  #acceptedCount = 0;

  constructor(options: SniffingListenerOptions) {
    this.#options = options;
    this.#server = net.createServer({ pauseOnConnect: true, noDelay: true }, (socket) => {
      socket.on('error', ignoreResetBeforeFirstByte);
      this.#accept({ fd: descriptorOf(socket), socket });
      this.#acceptMore();
    });
    this.#server.on('error', (error) => options.onIncident('listener_error', error.message));
  }

  /** Binds and returns the port. Errors: rejects with the system's error (EADDRINUSE, EACCES…). */
  async listen(): Promise<number> {
    const { host, port, descriptors = [] } = this.#options;
    const [own, ...others] = descriptors;
    await listenOn(this.#server, own === undefined ? { host, port } : { fd: own });
    if (others.length > 0) {
      this.#helper = setInterval(() => this.#helpOut(others), HELP_MS);
      this.#helper.unref();
    }
    const fd = descriptorOf(this.#server);
    if (fd >= 0) this.#options.peek.deferAccept(fd, DEFER_ACCEPT_SECONDS);
    return (this.#server.address() as net.AddressInfo).port;
  }

  get sniffingCount(): number {
    return this.#waiting.size;
  }

  /**
   * Stops accepting once no client comes any more, or after `END_MS`. The kernel lets no new client in from now on. Clients
   * that it has let in are accepted, since closing the socket would cut them off. Then waits at most as long for first bytes.
   */
  async finish(): Promise<void> {
    const { peek, descriptors } = this.#options;
    const fd = descriptorOf(this.#server);
    if (fd >= 0) {
      peek.deferAccept(fd, 0);
      // Other processes may go on with a socket that was handed over; its holder decides when it ends.
      if (descriptors === undefined) peek.letNobodyIn(fd);
    }
    const quietMs = descriptors === undefined ? LET_IN_MS : LET_IN_HELD_MS;
    await this.#quietWithin(END_MS, () => this.#acceptedCount, quietMs);
    if (fd >= 0) this.#acceptFrom(fd, Infinity);
    this.stopAccepting();
    await this.#quietWithin(END_MS, () => (this.#waiting.size > 0 ? performance.now() : 0));
  }

  /** Resolves when `figure` has not changed for a while, at the latest after `timeMaxMs`. */
  async #quietWithin(timeMaxMs: number, figure: () => number, quietMs = QUIET_MS): Promise<void> {
    const deadlineMs = performance.now() + timeMaxMs;
    for (let before = Number.NaN; performance.now() < deadlineMs;) {
      const now = figure();
      if (now === before) return;
      before = now;
      await new Promise((resolve) => setTimeout(resolve, quietMs));
    }
  }

  /** Stops accepting; connections whose protocol is not known yet are still looked at. */
  stopAccepting(): void {
    if (this.#helper !== null) clearInterval(this.#helper);
    this.#helper = null;
    this.#server.close();
  }

  /** Stops accepting and closes the connections whose protocol is not known yet. */
  close(): void {
    this.stopAccepting();
    for (const waiting of this.#waiting) this.#drop(waiting);
    this.#waiting.clear();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /**
   * Accepts connections that wait in addition to the one that libuv has taken, without a socket of Node.js for those that
   * need none.
   */
  #acceptMore(): void {
    const listening = descriptorOf(this.#server);
    if (listening >= 0) this.#acceptFrom(listening);
  }

  /** Accepts connections that wait at the sockets of neighbours, which would have accepted them by now if they could. */
  #helpOut(descriptors: readonly number[]): void {
    for (const listening of descriptors) this.#acceptFrom(listening);
  }

  #acceptFrom(listening: number, countMax = ACCEPTED_PER_TURN_MAX): void {
    for (let i = 0; i < countMax; i++) {
      const fd = this.#options.peek.accept(listening);
      if (fd < 0) return;
      this.#accept({ fd, socket: null });
    }
  }

  #accept(accepted: Accepted): void {
    this.#acceptedCount += 1;
    // A silent connection is closed for a new one.
    if (!this.#options.admits()) {
      if (this.#waiting.size > 0) this.#evictOldest();
      else {
        this.#drop(accepted);
        return;
      }
    }
    if (this.#hand(accepted) !== 'unknown') return;
    if (this.#waiting.size >= this.#options.sniffingMax) this.#evictOldest();
    this.#youngestMs = performance.now();
    this.#waiting.add({ ...accepted, sinceMs: this.#youngestMs });
    if (this.#timer === null) this.#schedule(POLL_MS_YOUNG);
  }

  #drop({ fd, socket }: Accepted): void {
    if (socket === null) this.#options.peek.close(fd);
    else socket.destroy();
  }

  #evictOldest(): void {
    for (const oldest of this.#waiting) {
      this.#waiting.delete(oldest);
      this.#drop(oldest);
      this.#options.onIncident('sniffing_limit', 'a silent connection was closed for a new one');
      return;
    }
  }

  #schedule(delayMs: number): void {
    this.#timer = setTimeout(() => this.#pollAgain(), delayMs);
    this.#timer.unref();
  }

  #pollAgain(): void {
    this.#timer = null;
    const nowMs = performance.now();
    this.#handReadable();
    for (const waiting of this.#waiting) {
      if (nowMs - waiting.sinceMs < this.#options.sniffTimeoutMs) break;
      this.#waiting.delete(waiting);
      this.#drop(waiting);
    }
    if (this.#waiting.size === 0) return;
    this.#schedule(nowMs - this.#youngestMs < YOUNG_MS ? POLL_MS_YOUNG : POLL_MS_OLD);
  }

  /**
   * Reads some of the connections that have sent something, from a random one on: one that sends half a head stays readable.
   */
  #handReadable(): void {
    const all = [...this.#waiting];
    if (this.#polled.length < all.length * 2) this.#polled = new Int32Array(all.length * 4);
    const polled = this.#polled;
    for (const [i, { fd, socket }] of all.entries()) {
      polled[i * 2] = socket === null ? fd : descriptorOf(socket);
      polled[i * 2 + 1] = POLLIN;
    }
    this.#options.peek.poll(polled, all.length);
    const start = Math.floor(Math.random() * all.length);
    let polls = 0;
    for (let n = 0; n < all.length && polls < POLLS_MAX; n++) {
      const i = (start + n) % all.length;
      const waiting = all[i] as WaitingConnection;
      // A descriptor below 0 is one that Node.js has closed, which poll leaves out.
      if ((polled[i * 2 + 1] ?? 0) >>> 16 === 0 && (polled[i * 2] ?? 0) >= 0) continue;
      polls += 1;
      if (this.#hand(waiting) !== 'unknown') this.#waiting.delete(waiting);
    }
  }

  /** Passes the connection on if its protocol is known; 'unknown' leaves it with the listener. */
  #hand(accepted: Accepted): Protocol {
    // A socket of Node.js may have been closed meanwhile, and its descriptor be another's.
    const fd = accepted.socket === null ? accepted.fd : descriptorOf(accepted.socket);
    const protocol = fd < 0 ? 'gone' : this.#protocolOf(fd);
    if (protocol === 'unknown') return protocol;
    if (protocol === 'gone') this.#drop(accepted);
    else if (protocol === 'http2') {
      const socket = accepted.socket ?? pausedSocket(fd);
      socket.off('error', ignoreResetBeforeFirstByte);
      this.#options.onHttp2(socket);
    } else this.#handOver(fd, accepted.socket, protocol);
    return protocol;
  }

  #handOver(
    fd: number,
    socket: net.Socket | null,
    protocol: Exclude<Protocol, 'http2' | 'unknown' | 'gone'>,
  ): void {
    const { peek, onHttp1, onTls, onIncident } = this.#options;
    const own = socket === null ? fd : peek.duplicate(fd);
    socket?.destroy();
    if (own < 0) onIncident('descriptor_limit', 'dup of a connection failed');
    else if (protocol === 'plain' || protocol === 'other') onHttp1(own, protocol === 'plain');
    else onTls(own, protocol === 'tls with http2');
  }

  #protocolOf(fd: number): Protocol {
    const count = this.#options.peek.peek(fd, this.#first);
    if (count === PEEK_AGAIN) return 'unknown';
    if (count === PEEK_FAILED || count === 0) return 'gone';
    for (let i = 0; i < PREFACE.length; i++) {
      if (i >= count) return 'unknown';
      if (this.#first[i] !== PREFACE[i]) return this.#tlsOf(count) ?? this.#http1Of(count);
    }
    return 'http2';
  }

  /** Returns null where the bytes do not begin TLS. */
  #tlsOf(count: number): Protocol | null {
    const hello = firstHelloOf(this.#first, count);
    if (hello === 'none') return null;
    if (hello === 'partial') return 'unknown';
    return hello === 'http2' ? 'tls with http2' : 'tls';
  }

  #http1Of(count: number): Protocol {
    if (count < REQUEST_LINE_BYTES_MIN) return 'unknown';
    // Bytes that are no head, or too long a one, are refused by the listener that takes them.
    const first = firstHeadOf(this.#first, count);
    return first === 'partial' ? 'unknown' : first;
  }
}

/** Makes a socket as net.Server does with `pauseOnConnect`: nothing is read. */
function pausedSocket(fd: number): net.Socket {
  const options = { fd, readable: true, writable: true, pauseOnCreate: true };
  const socket = new net.Socket(options);
  socket.setNoDelay(true);
  return socket;
}

/** Resolves when `server` is bound; rejects with the system's error. */
export function listenOn(
  server: net.Server,
  where:
    | { readonly host: string; readonly port: number; readonly reusePort?: boolean }
    | { readonly fd: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => {
      if (error.code === 'EADDRINUSE' && 'port' in where) {
        error.message += describePortHolder(where.port);
      }
      reject(error);
    };
    server.once('error', fail);
    server.listen({ ...where, backlog: BACKLOG }, () => {
      server.off('error', fail);
      resolve();
    });
  });
}

function ignoreResetBeforeFirstByte(): void {
  // The peer went away before it said anything: nothing was asked, nothing is lost.
}
