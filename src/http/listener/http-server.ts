/*
 * Connections flow through this folder, from the port to the listener that reads them. `sniffing-listener` accepts one and
 * looks at its first bytes, by `first-head` and `first-hello`; `two-ports` replaces it where that is not possible.
 * `http-server` hands it to ../http1 or ../http2, and finds the route of each request of HTTP/1 (`route-table`).
 * `held-sockets` are ports that several processes share.
 */
import { assert } from '../../shared/assert.ts';
import type { CallStages } from '../../shared/time/stage-times.ts';
import { BodyBudget } from '../bodies/body-budget.ts';
import { BodyDeadlines } from '../bodies/body-deadlines.ts';
import type { ExchangeHost } from '../exchange/exchange-host.ts';
import { HeaderFields } from '../exchange/header-fields.ts';
import { guardedStreams, type HostGuard } from '../exchange/host-guard.ts';
import { HttpExchange } from '../exchange/http-exchange.ts';
import type { RawResponse } from '../exchange/raw-message.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from '../exchange/unread-answers.ts';
import { HTTP_LIMITS_DEFAULT, type HttpLimits } from '../http-limits.ts';
import { NodeListener } from '../http1/node-listener.ts';
import type { NodeRequest } from '../http1/node-message.ts';
import { loadUws } from '../http1/uws-binary.ts';
import { UwsListener, type UwsRoute } from '../http1/uws-listener.ts';
import type { UwsRequest } from '../http1/uws-request.ts';
import { type Http2StreamHandler, Http2Listener } from '../http2/http2-listener.ts';
import { loadSocketPeek, type SocketPeek } from '../socket-peek.ts';
import { InFlightRequests, QUIET_MS } from './in-flight-requests.ts';
import { type HttpHandler, type HttpMethod, RouteTable } from './route-table.ts';
import { SniffingListener } from './sniffing-listener.ts';
import { TwoPorts } from './two-ports.ts';

/**
 * The parser of HTTP/1: uWebSockets.js as it is installed, node:http alone, or the build of uWebSockets.js in a file,
 * `sha256:CHECKSUM:/PATH`.
 */
export type Http1Parser = 'uws' | 'node' | `sha256:${string}`;
/** Open connections by parser. */
export type Http1Counts = Readonly<Record<'uws' | 'node', number>>;

export type HttpServerOptions = {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Sockets that listen already, instead of `host` and `port`; see SniffingListener. */
  readonly descriptors?: readonly number[] | undefined;
  readonly limits?: Partial<HttpLimits> | undefined;
  /**
   * The parser of HTTP/1: uWebSockets.js where it has a binary and the first head is plain, or node:http alone. Default uws.
   */
  readonly http1?: Http1Parser | undefined;
  /** Serves HTTP/2 without TLS on the same port; absent = HTTP/1.1 only. */
  readonly http2?:
    | {
        readonly onStream: Http2StreamHandler;
      }
    | undefined;
  /** Tests only: false behaves as a platform on which no port can be shared. HTTP/2 has the next port there. */
  readonly isPortShared?: boolean | undefined;
  /** Budget of all request bodies of the process; default a new one. */
  readonly bodyBudget?: BodyBudget | undefined;
  /** Callback for each request of HTTP/1.1 before its handler is called; absent where stages are not measured. */
  readonly stages?: Pick<CallStages, 'arrived'> | undefined;
  /** Answers that wait for their readers; default a new table of `UNREAD_BYTES_MAX`. */
  readonly unread?: UnreadAnswers | undefined;
  /** Guard of host names; absent: requests may be addressed to any name. */
  readonly hostGuard?: HostGuard | undefined;
  /** Callback for incidents of no single request: refused connections, broken HTTP/2 sessions. */
  readonly onIncident?: ((event: string, detail: string) => void) | undefined;
};

/** A listener for one port. Routes are added before `listen`; `stop` is final and idempotent. */
export interface HttpServer {
  /**
   * Adds a route. `pattern` is one of `/a`, `/a/:b` and `/a/*`. Other verbs on it answer 405.
   * Where `needsHost` is false, requests without a Host pass the guard, such as those of health checks. Only HTTP/1.0 has
   * such requests.
   */
  route(method: HttpMethod, pattern: string, handler: HttpHandler, needsHost?: boolean): void;
  /** Takes every request that no route takes. */
  fallback(handler: HttpHandler): void;
  /** Binds the port. Errors: rejects with the system's error (port taken, no right to it). */
  listen(): Promise<{ readonly port: number; readonly http2Port: number }>;
  /** Begins to drain: from now on answers close their connection and HTTP/2 clients are sent away; all is served. */
  beginDrain(): void;
  /** Stops accepting, gives what is in flight `deadlineMs` ms to end, then closes everything. */
  stop(deadlineMs: number): Promise<void>;
  readonly isDraining: boolean;
  /** Requests and streams not yet answered. */
  readonly inFlightCount: number;
  readonly connectionCount: number;
  readonly http1Counts: Http1Counts;
  /** Answers of the listener that wait for their readers. */
  readonly unread: UnreadAnswers;
}

/** A listener that is not yet bound. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  return new OwnHttpServer(options);
}

/**
 * Time in ms, at least a round trip, after which clients of HTTP/2 send no more on a connection that they were asked to
 * leave.
 */
const FAREWELL_MS = 500;
const NO_DESCRIPTORS = `connections cannot be handed over on ${process.platform} ${process.arch}: koffi does not load`;
class OwnHttpServer implements HttpServer, ExchangeHost {
  readonly #options: HttpServerOptions;
  readonly #limits: HttpLimits;
  readonly #http2: Http2Listener | null;
  readonly #node: NodeListener;
  /** Null before `listen`, and where node:http takes all of HTTP/1. */
  #uws: UwsListener | null = null;
  readonly headerFields = new HeaderFields();
  readonly #routes: RouteTable;
  readonly inFlight: InFlightRequests;
  readonly bodyDeadlines: BodyDeadlines;
  readonly bodyBudget: BodyBudget;
  readonly unread: UnreadAnswers;
  /** Null where no port can be shared. */
  readonly #peek: SocketPeek | null;
  #sniffing: SniffingListener | null = null;
  /** Takes the place of the sniffing listener where no port can be shared. */
  #apart: TwoPorts | null = null;
  #isDraining = false;
  #stopping: Promise<void> | null = null;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#limits = { ...HTTP_LIMITS_DEFAULT, ...options.limits };
    this.#routes = new RouteTable(this.headerFields, options.hostGuard);
    this.bodyDeadlines = new BodyDeadlines(this.#limits.bodyTimeoutMs);
    this.bodyBudget = options.bodyBudget ?? new BodyBudget();
    this.unread =
      options.unread ??
      new UnreadAnswers({
        bytesMax: UNREAD_BYTES_MAX,
        stallMs: this.#limits.answerStallMs,
        onDropped: (bytes, isStalled) => {
          const event = isStalled ? 'answer_stalled' : 'answer_unread';
          this.#incident(event, `an answer of ${bytes} bytes was not read`);
        },
      });
    this.#peek = options.isPortShared === false ? null : loadSocketPeek();
    this.#http2 = options.http2 === undefined ? null : this.#createHttp2(options.http2);
    this.inFlight = new InFlightRequests(this.#http2);
    this.#node = new NodeListener({
      limits: this.#limits,
      fields: this.headerFields,
      peek: this.#peek,
      take: (res, request) => this.#accept(res, request),
      onIncident: (event, detail) => this.#incident(event, detail),
    });
    this.#http2?.whenDrained(() => this.inFlight.checkIdle());
  }

  #createHttp2(http2: NonNullable<HttpServerOptions['http2']>): Http2Listener {
    const onIncident = (event: string, detail: string): void => this.#incident(event, detail);
    const { bodyDeadlines, bodyBudget } = this;
    const onStream = guardedStreams(http2.onStream, this.#options.hostGuard);
    const options = { onStream, limits: this.#limits, bodyDeadlines, bodyBudget, onIncident };
    return new Http2Listener(options);
  }

  get discardBytesMax(): number {
    return this.#limits.discardBytesMax;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  get inFlightCount(): number {
    return this.inFlight.inFlightCount;
  }

  get connectionCount(): number {
    const http2Count = this.#http2?.connectionCount ?? 0;
    const { uws, node } = this.http1Counts;
    return uws + node + http2Count + (this.#sniffing?.sniffingCount ?? 0);
  }

  get http1Counts(): Http1Counts {
    return { uws: this.#uws?.connectionCount ?? 0, node: this.#node.connectionCount };
  }

  route(method: HttpMethod, pattern: string, handler: HttpHandler, needsHost = true): void {
    this.#routes.add(method, pattern, handler, needsHost);
  }

  fallback(handler: HttpHandler): void {
    this.#routes.fallback(handler);
  }

  async listen(): Promise<{ readonly port: number; readonly http2Port: number }> {
    this.#routes.complete();
    const peek = this.#peek;
    if (peek === null) {
      assert(
        this.#options.descriptors === undefined,
        'sockets are shared where they can be peeked at',
      );
      return this.#listenApart();
    }
    const uws = (this.#uws = await this.#openUws(peek));
    this.#sniffing = new SniffingListener({
      host: this.#options.host,
      port: this.#options.port,
      descriptors: this.#options.descriptors,
      sniffingMax: this.#limits.sniffingMax,
      sniffTimeoutMs: this.#limits.sniffTimeoutMs,
      peek,
      admits: () => this.#admits(),
      onHttp1: (fd, isPlain) => (isPlain && uws !== null ? uws : this.#node).takeDescriptor(fd),
      onTls: (fd, offersHttp2) => {
        const { remoteAddress, localPort } = this.#node.takeDescriptor(fd);
        const offer = offersHttp2 ? ', and offered HTTP/2' : '';
        const detail = `${remoteAddress ?? ''} began TLS on port ${localPort ?? ''}, which serves plain text${offer}`;
        this.#incident('tls_refused', detail);
      },
      onHttp2: (socket) => {
        if (this.#http2 === null) socket.destroy();
        else this.#http2.adopt(socket);
      },
      onIncident: (event, detail) => this.#incident(event, detail),
    });
    const port = await this.#sniffing.listen();
    return { port, http2Port: port };
  }

  beginDrain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#http2?.beginDrain();
  }

  stop(deadlineMs: number): Promise<void> {
    this.#stopping ??= this.#stop(deadlineMs);
    return this.#stopping;
  }

  async #stop(deadlineMs: number): Promise<void> {
    this.beginDrain();
    if (deadlineMs > 0) await this.#sniffing?.finish();
    else this.#sniffing?.close();
    this.#apart?.close();
    // Clients that learn only now that this is the end may have sent more meanwhile, which a closing session would refuse.
    if (this.#http2 !== null) await this.inFlight.quietWithin(Math.min(deadlineMs, FAREWELL_MS));
    this.#http2?.closeGracefully();
    const untilMs = performance.now() + deadlineMs;
    await this.inFlight.quietWithin(deadlineMs);
    this.#closeIdle();
    // Closing a socket on a peer that still reads would lose what the kernel has not delivered.
    while (this.#openCount > 0 && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
      this.#closeIdle();
    }
    this.#sniffing?.close();
    if (this.inFlightCount > 0) {
      this.#incident('drain_deadline', `${this.inFlightCount} requests were cut off`);
    }
    this.#http2?.destroy();
    this.#node.destroy();
    this.#uws?.destroy();
  }

  get #openCount(): number {
    const http1Count = this.#node.connectionCount + (this.#uws?.closableCount ?? 0);
    return http1Count + (this.#http2?.connectionCount ?? 0);
  }

  #closeIdle(): void {
    this.#node.closeIdle();
    // uWebSockets.js does not say which connections are busy.
    if (this.inFlight.exchangeCount === 0) this.#uws?.closeIdle();
  }

  async #openUws(peek: SocketPeek): Promise<UwsListener | null> {
    const { http1 = 'uws' } = this.#options;
    if (http1 === 'node') return null;
    const module = await loadUws(http1, (reason) => this.#incident('http1_on_node', reason));
    if (module === null) return null;
    return new UwsListener(module, {
      limits: this.#limits,
      fields: this.headerFields,
      peek,
      take: (res, request) => this.#accept(res, request),
      routes: this.#uwsRoutes(),
    });
  }

  *#uwsRoutes(): Iterable<UwsRoute> {
    for (const { method, path, take } of this.#routes.fixed()) {
      yield { method, path, take: (res, request) => take(this.#exchangeOf(res, request)) };
    }
  }

  #admits(): boolean {
    if (this.connectionCount < this.#limits.connectionsMax) return true;
    if (this.#node.evictIdle()) return true;
    this.#incident('connection_limit', `${this.#limits.connectionsMax} connections are open`);
    return false;
  }

  /** Listens without the system calls: node:http takes HTTP/1 on one port, HTTP/2 has the next. */
  async #listenApart(): Promise<{ readonly port: number; readonly http2Port: number }> {
    const { host, port: wanted, http1 } = this.#options;
    const node = this.#node;
    const http2 = this.#http2;
    this.#apart = new TwoPorts({
      host,
      port: wanted,
      admits: () => this.#admits(),
      onHttp1: (socket) => node.takeSocket(socket),
      onHttp2: http2 === null ? null : (socket) => http2.adopt(socket),
    });
    const { port, http2Port } = await this.#apart.listen();
    if (http1 !== 'node') this.#incident('http1_on_node', NO_DESCRIPTORS);
    if (http2Port !== port) {
      this.#incident('http2_port', `HTTP/2 is served on port ${http2Port}, not on ${port}`);
    }
    return { port, http2Port };
  }

  /** Hot. Takes every request of HTTP/1 but those of fixed routes of uWebSockets.js. */
  #accept(res: RawResponse, request: UwsRequest | NodeRequest): void {
    this.#routes.dispatch(this.#exchangeOf(res, request), request);
  }

  #exchangeOf(res: RawResponse, request: UwsRequest | NodeRequest): HttpExchange {
    this.#options.stages?.arrived();
    return new HttpExchange(res, request, this);
  }

  #incident(event: string, detail: string): void {
    this.#options.onIncident?.(event, detail);
  }
}
