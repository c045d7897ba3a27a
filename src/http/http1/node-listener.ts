import http from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import net from 'node:net';
import type { HeaderFields } from '../exchange/header-fields.ts';
import { type RawResponse, refusedMessageBody, statusLine } from '../exchange/raw-message.ts';
import { HEADER_BYTES_MAX, type HttpLimits, UNSENT_BYTES } from '../http-limits.ts';
import { descriptorOf, type SocketPeek } from '../socket-peek.ts';
import { NodeRequest, NodeResponse } from './node-message.ts';
import { PROBLEMS, refusalOf, type RefusedStatus, statusOfError } from './node-refusal.ts';

export type NodeListenerOptions = {
  readonly limits: HttpLimits;
  readonly fields: HeaderFields;
  /** Null where the system calls are not available. */
  readonly peek: SocketPeek | null;
  /** Takes a request whose fields were read. */
  readonly take: (res: RawResponse, request: NodeRequest) => void;
  readonly onIncident: (event: string, detail: string) => void;
};

/** The request that is being answered. */
type Current = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly raw: NodeResponse;
};

type QueuedRequest = { readonly request: IncomingMessage; readonly begin: () => void };

type Connection = {
  readonly socket: net.Socket;
  /** Requests behind one that is not answered, in order. */
  readonly waiting: QueuedRequest[];
  /** A request is being answered, or its turn has come. */
  isBusy: boolean;
  current: Current | null;
  /** Request that was answered before its body had come; the rest of it is thrown away. */
  discarded: IncomingMessage | null;
  /** No further request is taken. */
  isRefused: boolean;
  /** Writes the refusal, once the requests before it have their answers. */
  refusal: (() => void) | null;
  sinceMs: number;
  /** Bytes that wait for the client, and the time since which their number is the same. */
  queuedBytes: number;
  queuedSinceMs: number;
  /** The time until which the last answer may be read, or an unwanted body may end; 0: no limit. */
  untilMs: number;
};

/** Requests that wait behind unanswered ones: on a connection, and on all of them. */
const WAITING_MAX = 100;
const WAITING_TOTAL_MAX = 10_000;
const TICK_MS_MAX = 1_000;
const TICK_MS_MIN = 5;
const TICKS_PER_LIMIT = 8;
/** Time in ms that a client has to read its last answer. */
const LINGER_MS = 2_000;
/** Time in ms without progress after which an answer is given up. */
const STALL_MS = 10_000;
/** Idle time in ms after which connections may be closed for new ones, at the limit of connections. */
const EVICTABLE_MS = 10_000;
const EVICTED_AT_ONCE = 64;

/**
 * HTTP/1 on node:http. It takes connections whose first head uWebSockets.js would not read as others do, and all of them
 * where that has no binary. It serves HTTP/1.0, bodies in chunks, targets in absolute form, and several requests at once.
 * Malformed messages are answered 400. It costs a multiple of the CPU.
 */
export class NodeListener {
  readonly #options: NodeListenerOptions;
  readonly #server: http.Server;
  readonly #connections = new Map<net.Socket, Connection>();
  readonly #tickMs: number;
  readonly #into = Buffer.allocUnsafeSlow(1);
  #waitingCount = 0;
  #timer: NodeJS.Timeout | null = null;
  #evictedMs = 0;

  constructor(options: NodeListenerOptions) {
    const { http1IdleMs, sniffTimeoutMs } = options.limits;
    this.#options = options;
    const shortest = Math.min(http1IdleMs, sniffTimeoutMs) / TICKS_PER_LIMIT;
    this.#tickMs = Math.ceil(Math.min(TICK_MS_MAX, Math.max(TICK_MS_MIN, shortest)));
    this.#server = http.createServer(
      {
        maxHeaderSize: HEADER_BYTES_MAX,
        // A missing Host is refused with other problems.
        requireHostHeader: false,
        insecureHTTPParser: false,
        keepAliveTimeout: http1IdleMs,
        headersTimeout: sniffTimeoutMs,
        // Bodies have deadlines of their own.
        requestTimeout: 0,
        connectionsCheckingInterval: this.#tickMs,
      },
      (request, response) => this.#arrived(request, response),
    );
    // This starts the checks of head timeouts; connections are handed to the server.
    this.#server.emit('listening');
    this.#server.on('checkExpectation', (request, response) => this.#arrived(request, response));
    // A request for a tunnel is refused.
    this.#server.on('connect', (_request, socket: net.Socket) => {
      const connection = this.#connections.get(socket);
      if (connection !== undefined) this.#refuse(connection, 405);
    });
    this.#server.on('timeout', (socket: net.Socket) => this.#closeIfIdle(socket));
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket: net.Socket) =>
      this.#failed(error, socket),
    );
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /** Adopts a connection whose bytes are still unread, and returns its socket. */
  takeDescriptor(fd: number): net.Socket {
    const socket = new net.Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
    socket.setNoDelay(true);
    this.takeSocket(socket);
    return socket;
  }

  /** Adopts a socket that Node.js has accepted. */
  takeSocket(socket: net.Socket): void {
    const connection: Connection = {
      socket,
      waiting: [],
      isBusy: false,
      current: null,
      discarded: null,
      isRefused: false,
      refusal: null,
      sinceMs: performance.now(),
      queuedBytes: 0,
      queuedSinceMs: 0,
      untilMs: 0,
    };
    this.#connections.set(socket, connection);
    // node:http calls this to end a connection after its last answer.
    socket.destroySoon = () => this.#linger(connection);
    socket.once('close', () => {
      this.#waitingCount -= connection.waiting.length;
      this.#connections.delete(socket);
    });
    this.#server.emit('connection', socket);
    socket.resume();
    this.#schedule();
  }

  /** Closes some connections that have been idle for long, to make space for new ones. Returns whether there were any. */
  evictIdle(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#evictedMs < this.#tickMs) return false;
    let evicted = 0;
    for (const connection of this.#connections.values()) {
      if (nowMs - connection.sinceMs < EVICTABLE_MS || !this.#closeIfIdle(connection.socket))
        continue;
      evicted += 1;
      if (evicted === EVICTED_AT_ONCE) return true;
    }
    // Another sweep within a tick would find none.
    this.#evictedMs = nowMs;
    return evicted > 0;
  }

  /** Closes connections that have no open request, and on which nothing has arrived. */
  closeIdle(): void {
    for (const socket of this.#connections.keys()) this.#closeIfIdle(socket);
  }

  /** Drops all connections. */
  destroy(): void {
    for (const socket of this.#connections.keys()) socket.destroy();
    this.#server.close();
  }

  #closeIfIdle(socket: net.Socket): boolean {
    const connection = this.#connections.get(socket);
    if (connection === undefined || socket.writableLength > 0) return false;
    // A lingering connection has its last answer.
    const isInUse = connection.isBusy || connection.untilMs !== 0;
    if (isInUse && !socket.writableEnded) return false;
    const fd = descriptorOf(socket);
    const { peek } = this.#options;
    if (peek !== null && fd >= 0 && peek.peek(fd, this.#into) > 0) return false;
    socket.destroy();
    return true;
  }

  #arrived(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined || request.socket.destroyed) return;
    const { isBusy, isRefused } = connection;
    if (!isBusy && !isRefused) return this.#begin(connection, request, response);
    // Requests behind the last answer wait in vain, within the same bounds.
    if (connection.waiting.length < WAITING_MAX && this.#waitingCount < WAITING_TOTAL_MAX) {
      this.#waitingCount += 1;
      const begin = (): void => this.#begin(connection, request, response);
      connection.waiting.push({ request, begin });
      return;
    }
    const detail = `${WAITING_MAX} requests wait on a connection, or ${WAITING_TOTAL_MAX} on all`;
    this.#options.onIncident('pipelining_limit', detail);
    connection.isRefused = true;
    request.socket.destroy();
  }

  #begin(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    const message = new NodeRequest(request);
    const refused = refusalOf(message, request, this.#options.fields);
    if (refused !== null) {
      connection.isRefused = true;
      this.#answerRefusal(connection, ...refused);
      return;
    }
    const raw = new NodeResponse(request, response, this.#options.limits, () =>
      this.#boundUnsent(connection.socket),
    );
    connection.isBusy = true;
    connection.current = { request, response, raw };
    response.once('close', () => this.#answered(connection, request));
    this.#options.take(raw, message);
  }

  #answered(connection: Connection, request: IncomingMessage): void {
    const { socket } = connection;
    connection.current = null;
    connection.sinceMs = performance.now();
    if (socket.destroyed || connection.refusal === DONE) return;
    if (!request.complete) this.#discard(connection, request);
    // Requests that wait behind the last answer get none.
    if (socket.writableEnded) return;
    const next = connection.waiting.shift();
    if (next === undefined) {
      connection.isBusy = false;
      connection.refusal?.();
      return;
    }
    this.#waitingCount -= 1;
    // Other connections have their turn first.
    setImmediate(() => {
      if (socket.destroyed) return;
      const { refusal } = connection;
      // A message that turned out malformed never comes whole.
      if (refusal === null || next.request.complete) next.begin();
      else refusal();
    });
  }

  /** Bounds what the kernel holds of a stream for a client that does not read; without a bound it takes some megabytes. */
  #boundUnsent(socket: net.Socket): void {
    const fd = descriptorOf(socket);
    if (fd >= 0) this.#options.peek?.boundUnsent(fd, UNSENT_BYTES);
  }

  /** Throws away the rest of an unwanted body, within limits. */
  #discard(connection: Connection, request: IncomingMessage): void {
    const { discardBytesMax, bodyTimeoutMs } = this.#options.limits;
    let left = discardBytesMax;
    connection.discarded = request;
    const { socket } = connection;
    if (!socket.writableEnded) connection.untilMs = connection.sinceMs + bodyTimeoutMs;
    request.removeAllListeners('readable');
    request.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) socket.destroy();
    });
    request.once('end', () => {
      if (connection.discarded !== request) return;
      connection.discarded = null;
      if (!socket.writableEnded) connection.untilMs = 0;
    });
    request.resume();
  }

  #failed({ code = '' }: NodeJS.ErrnoException, socket: net.Socket): void {
    const connection = this.#connections.get(socket);
    // A refused connection ends by itself after its last answer.
    if (connection?.isRefused === true) return;
    const isMalformed = code.startsWith('HPE_') && socket.writable;
    if (connection === undefined || !isMalformed) socket.destroy();
    else this.#refuse(connection, statusOfError(code));
  }

  /** Refuses a message that is malformed or asks for a tunnel, once those before it have their answers. */
  #refuse(connection: Connection, status: RefusedStatus): void {
    const { current } = connection;
    connection.isRefused = true;
    const isOfCurrent = current !== null && !current.request.complete;
    if (connection.discarded?.complete === false || (isOfCurrent && current.response.headersSent)) {
      // The request has its answer; another one would be taken for the answer to the next.
      this.#linger(connection);
    } else if (isOfCurrent) {
      connection.refusal = DONE;
      // The answer is complete, though not yet sent.
      if (current.raw.sendHeld()) return;
      current.raw.abort();
      this.#answerRefusal(connection, 400, PROBLEMS[400]);
    } else if (connection.isBusy)
      connection.refusal = () => this.#answerRefusal(connection, status, PROBLEMS[status]);
    else this.#answerRefusal(connection, status, PROBLEMS[status]);
  }

  /**
   * Ends a connection after its last answer. Reads on until the client has closed, or for `LINGER_MS`: closing with unread
   * bytes would reset the connection, and lose the answer (RFC 9112 §9.6).
   */
  #linger(connection: Connection): void {
    connection.isRefused = true;
    connection.untilMs = performance.now() + LINGER_MS;
    connection.socket.end();
  }

  #answerRefusal(connection: Connection, status: RefusedStatus, problem: string): void {
    const body = refusedMessageBody(problem);
    connection.discarded = null;
    connection.socket.write(
      `HTTP/1.1 ${statusLine(status)}\r\ncontent-type: application/json\r\nconnection: close\r\n` +
        `date: ${new Date().toUTCString()}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    this.#linger(connection);
  }

  #schedule(): void {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      const nowMs = performance.now();
      for (const connection of this.#connections.values()) this.#check(connection, nowMs);
      if (this.#connections.size > 0) this.#schedule();
    }, this.#tickMs);
    this.#timer.unref();
  }

  #check(connection: Connection, nowMs: number): void {
    const { socket } = connection;
    if (connection.untilMs !== 0 && nowMs > connection.untilMs) socket.destroy();
    const handle = (socket as unknown as { _handle: { writeQueueSize?: number } | null })._handle;
    const queued = (handle?.writeQueueSize ?? 0) + socket.writableLength;
    if (queued !== connection.queuedBytes || queued === 0) {
      connection.queuedBytes = queued;
      connection.queuedSinceMs = nowMs;
    } else if (nowMs - connection.queuedSinceMs > STALL_MS) socket.destroy();
  }
}

/** Marks a connection whose refusal is written. */
const DONE = (): void => undefined;
