import './uws-environment.ts';
import type net from 'node:net';
import * as uws from 'uWebSockets.js';
import { App, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js';
import type { TemplatedApp, us_listen_socket } from 'uWebSockets.js';
import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import type { CallStages } from '../shared/stage-times.ts';
import { BodyBudget } from './body-budget.ts';
import { BodyDeadlines } from './body-deadlines.ts';
import { HeaderFields } from './header-fields.ts';
import { isStreamAccepted, type HostGuard } from './host-guard.ts';
import { HttpExchange, type ExchangeHost } from './http-exchange.ts';
import { HTTP_LIMITS_DEFAULT, type HttpLimits } from './http-limits.ts';
import type { HttpReason } from './http-reason.ts';
import { Http1Fallback } from './http1-fallback.ts';
import type { Http2Connections, Http2StreamHandler } from './http2-connections.ts';
import { Http2Listener } from './http2-listener.ts';
import type { NodeRequest } from './node-message.ts';
import { OwnHttp2Listener } from './own-http2-listener.ts';
import { describePortHolder } from './port-holder.ts';
import type { RawRequest, RawResponse } from './raw-message.ts';
import { refuseMessage } from './refused-message.ts';
import { RouteMatch } from './route-match.ts';
import { SniffingListener, listenOn } from './sniffing-listener.ts';
import { loadSocketPeek, type SocketPeek } from './socket-peek.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from './unread-answers.ts';

export type HttpHandler = (exchange: HttpExchange) => void;
export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Who cuts and writes the frames of HTTP/2. */
export type Http2Framing = 'own' | 'node';

export type HttpServerOptions = {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Sockets that listen already, instead of `host` and `port`; see SniffingListener. */
  readonly descriptors?: readonly number[] | undefined;
  readonly limits?: Partial<HttpLimits> | undefined;
  /** Serves HTTP/2 without TLS on the same port; absent = HTTP/1.1 only. */
  readonly http2?:
    | {
        readonly onStream: Http2StreamHandler;
        /** Whose framing: our own, or that of node:http2, which a port of its own has in any case. Default own. */
        readonly framing?: Http2Framing | undefined;
        /** Where HTTP/2 goes on platforms that cannot share the port; default port + 1. */
        readonly fallbackPort?: number | undefined;
        /** Tests only: behaves as on such a platform. */
        readonly isPortShared?: boolean | undefined;
      }
    | undefined;
  /** Of all request bodies of the process; default one of its own. */
  readonly bodyBudget?: BodyBudget | undefined;
  /** Told of each request of HTTP/1.1 before its headers are read; absent where stages are not measured. */
  readonly stages?: Pick<CallStages, 'arrived'> | undefined;
  /** Where answers are held that nobody reads; absent: the listener has its own, of `UNREAD_BYTES_MAX`. */
  readonly unread?: UnreadAnswers | undefined;
  /** Absent: requests may be addressed to any name, and nothing is looked at. */
  readonly hostGuard?: HostGuard | undefined;
  /** Told of what no request can be told of: refused connections, broken HTTP/2 sessions. */
  readonly onIncident?: ((event: string, detail: string) => void) | undefined;
};

/** A listener for one port. Routes are added before `listen`; `stop` is final and idempotent. */
export interface HttpServer {
  /** `pattern` is matched by uWebSockets.js: `/a/:b`, `/a/*`. Other verbs on it answer 405. */
  route(method: HttpMethod, pattern: string, handler: HttpHandler): void;
  /** Takes every request that no route takes. */
  fallback(handler: HttpHandler): void;
  /** Errors: rejects with LISTEN error of the system as its cause (port taken, no right to it). */
  listen(): Promise<{ readonly port: number; readonly http2Port: number }>;
  /** From now on answers close their connection and HTTP/2 clients are sent away; all is served. */
  beginDrain(): void;
  /** Stops accepting, lets what is in flight end until `deadlineMs`, then closes everything. */
  stop(deadlineMs: number): Promise<void>;
  readonly isDraining: boolean;
  /** Requests and streams not yet answered. */
  readonly inFlightCount: number;
  readonly connectionCount: number;
}

/** A listener that is not yet bound. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  return new UwsHttpServer(options);
}

/** Nobody asked anything for this long: there is nothing left to read. */
const QUIET_MS = 10;
/** At least the round trip after which no client of HTTP/2 sends more on a connection that it was asked to leave. */
const FAREWELL_MS = 500;
/** Else a second process could bind the same port unnoticed. */
const LISTEN_EXCLUSIVE = 1;

/** uWebSockets.js has these, its typings do not. */
type ExclusiveListen = (
  host: string,
  port: number,
  options: number,
  onListen: (socket: us_listen_socket | false) => void,
) => void;
type AdoptingApp = TemplatedApp & { adoptSocket(fd: number): void };

/** The key by which uWebSockets.js leaves its own name out of answers. */
const SILENT = '999999990007';
(uws as unknown as { _cfg(key: string): void })._cfg(SILENT);

/** How a handler is entered, from uWebSockets.js and from node:http. */
type Take = (exchange: HttpExchange) => void;
type Route = { readonly method: string; readonly match: RouteMatch; readonly take: Take };

class UwsHttpServer implements HttpServer, ExchangeHost {
  readonly #options: HttpServerOptions;
  readonly #limits: HttpLimits;
  readonly #app = App() as AdoptingApp;
  readonly #http2: Http2Connections | null;
  /** Where it is node:http2's, and has a port of its own perhaps. */
  #http2OfNode: Http2Listener | null = null;
  readonly #unusual: Http1Fallback;
  readonly headerFields = new HeaderFields();
  readonly #routes: Route[] = [];
  readonly #methodsOfPattern = new Map<string, Set<HttpMethod>>();
  readonly bodyDeadlines: BodyDeadlines;
  readonly bodyBudget: BodyBudget;
  readonly unread: UnreadAnswers;
  #fallback: HttpHandler = (exchange) => exchange.sendEmpty(404);
  #peek: SocketPeek | null = null;
  #sniffing: SniffingListener | null = null;
  #listenSocket: us_listen_socket | null = null;
  #http1ConnectionCount = 0;
  #exchangeCount = 0;
  #exchangeTotal = 0;
  #isDraining = false;
  #onIdle: (() => void) | null = null;
  #stopping: Promise<void> | null = null;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#limits = { ...HTTP_LIMITS_DEFAULT, ...options.limits };
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
    if (options.http2 === undefined) this.#peek = loadSocketPeek();
    this.#http2 = options.http2 === undefined ? null : this.#createHttp2(options.http2);
    this.#unusual = new Http1Fallback({
      limits: this.#limits,
      fields: this.headerFields,
      take: (res, request) => this.#takeUnusual(res, request),
      onIncident: (event, detail) => this.#incident(event, detail),
    });
    this.#http2?.whenDrained(() => this.#checkIdle());
    this.#app.filter((_res, change) => {
      this.#http1ConnectionCount += change;
    });
  }

  #createHttp2(http2: NonNullable<HttpServerOptions['http2']>): Http2Connections {
    const onIncident = (event: string, detail: string): void => this.#incident(event, detail);
    const { bodyDeadlines, bodyBudget } = this;
    const onStream = guardedStreams(http2.onStream, this.#options.hostGuard);
    const options = { onStream, limits: this.#limits, bodyDeadlines, bodyBudget, onIncident };
    this.#peek = http2.isPortShared === false ? null : loadSocketPeek();
    if (http2.framing !== 'node' && this.#peek !== null) {
      return new OwnHttp2Listener(options);
    }
    this.#http2OfNode = new Http2Listener(options);
    return this.#http2OfNode;
  }

  get discardBytesMax(): number {
    return this.#limits.discardBytesMax;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  get inFlightCount(): number {
    return this.#exchangeCount + (this.#http2?.openStreamCount ?? 0);
  }

  get connectionCount(): number {
    const http2Count = this.#http2?.connectionCount ?? 0;
    const http1Count = this.#http1ConnectionCount + this.#unusual.connectionCount;
    return http1Count + http2Count + (this.#sniffing?.sniffingCount ?? 0);
  }

  route(method: HttpMethod, pattern: string, handler: HttpHandler): void {
    let methods = this.#methodsOfPattern.get(pattern);
    if (methods === undefined) this.#methodsOfPattern.set(pattern, (methods = new Set()));
    assert(!methods.has(method), 'a route is registered once');
    methods.add(method);
    const guarded = this.#guarded(handler);
    this.#routes.push({ method, match: new RouteMatch(pattern), take: guarded });
    const take = this.#taking(guarded);
    if (method === 'GET') this.#app.get(pattern, take);
    else if (method === 'POST') this.#app.post(pattern, take);
    else if (method === 'PUT') this.#app.put(pattern, take);
    else if (method === 'PATCH') this.#app.patch(pattern, take);
    else this.#app.del(pattern, take);
  }

  fallback(handler: HttpHandler): void {
    this.#fallback = handler;
  }

  async listen(): Promise<{ readonly port: number; readonly http2Port: number }> {
    for (const [pattern, methods] of this.#methodsOfPattern) {
      const allow = ['allow', [...methods].join(', ')];
      const refuse = this.#guarded((exchange) => exchange.sendEmpty(405, allow));
      this.#routes.push({ method: '', match: new RouteMatch(pattern), take: refuse });
      this.#app.any(pattern, this.#taking(refuse));
    }
    const fallback = this.#guarded((exchange) => this.#fallback(exchange));
    this.#routes.push({ method: '', match: new RouteMatch('/*'), take: fallback });
    this.#app.any('/*', this.#taking(fallback));
    // The sort is stable, so that a verb of a pattern comes before its refusal.
    this.#routes.sort((a, b) => a.match.rank - b.match.rank);
    const peek = this.#peek;
    if (peek === null) {
      assert(
        this.#options.descriptors === undefined,
        'sockets are shared where they can be peeked at',
      );
      return this.#listenApart();
    }
    this.#sniffing = new SniffingListener({
      host: this.#options.host,
      port: this.#options.port,
      descriptors: this.#options.descriptors,
      sniffingMax: this.#limits.sniffingMax,
      sniffTimeoutMs: this.#limits.sniffTimeoutMs,
      peek,
      admits: () => this.#admits(),
      onHttp1: (fd) => this.#app.adoptSocket(fd),
      onUnusualHttp1: (socket) => this.#unusual.take(socket),
      onHttp2: (socket) => {
        if (this.#http2 === null) socket.destroy();
        else this.#http2.take(socket);
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

  exchangeBegan(): void {
    this.#exchangeCount += 1;
    this.#exchangeTotal += 1;
  }

  exchangeEnded(): void {
    this.#exchangeCount -= 1;
    if (this.#onIdle !== null) this.#checkIdle();
  }

  async #stop(deadlineMs: number): Promise<void> {
    this.beginDrain();
    if (deadlineMs > 0) await this.#sniffing?.finish();
    else this.#sniffing?.close();
    if (this.#listenSocket !== null) us_listen_socket_close(this.#listenSocket);
    this.#http2OfNode?.server.close();
    // Who heard only now that this is the end may have sent more meanwhile, which a closing session would refuse.
    if (this.#http2 !== null) await this.#quietWithin(Math.min(deadlineMs, FAREWELL_MS));
    this.#http2?.closeGracefully();
    this.#unusual.closeIdle();
    const untilMs = performance.now() + deadlineMs;
    await this.#quietWithin(deadlineMs);
    // What is with the kernel is lost where a socket is closed on a peer that still reads.
    while ((this.#http2?.connectionCount ?? 0) > 0 && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    }
    this.#sniffing?.close();
    if (this.inFlightCount > 0) {
      this.#incident('drain_deadline', `${this.inFlightCount} requests were cut off`);
    }
    this.#http2?.destroy();
    this.#unusual.destroy();
    this.#app.close();
  }

  /** Idle, and still so after a moment: what has arrived on open connections may not have been read yet. */
  async #quietWithin(timeMaxMs: number): Promise<void> {
    const untilMs = performance.now() + timeMaxMs;
    const leftMs = (): number => Math.max(0, untilMs - performance.now());
    const total = (): number => this.#exchangeTotal + (this.#http2?.streamTotal ?? 0);
    for (let before = -1; before !== total();) {
      before = total();
      await this.#idleWithin(leftMs());
      if (leftMs() === 0) return;
      await new Promise((resolve) => setTimeout(resolve, Math.min(QUIET_MS, leftMs())));
    }
    await this.#idleWithin(leftMs());
  }

  #idleWithin(deadlineMs: number): Promise<void> {
    if (this.inFlightCount === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, deadlineMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        // The last answers are with the kernel after this turn; closing now could overtake them.
        setImmediate(resolve);
      };
    });
  }

  #checkIdle(): void {
    if (this.#onIdle === null || this.inFlightCount > 0) return;
    const onIdle = this.#onIdle;
    this.#onIdle = null;
    onIdle();
  }

  #admits(): boolean {
    if (this.connectionCount < this.#limits.connectionsMax) return true;
    this.#incident('connection_limit', `${this.#limits.connectionsMax} connections are open`);
    return false;
  }

  /** Without the system calls: HTTP/1.1 is accepted by uWebSockets.js, HTTP/2 has its own port. */
  async #listenApart(): Promise<{ readonly port: number; readonly http2Port: number }> {
    const { host, port: wanted, http2 } = this.#options;
    const port = await new Promise<number>((resolve, reject) => {
      const listen = this.#app.listen.bind(this.#app) as unknown as ExclusiveListen;
      listen(host, wanted, LISTEN_EXCLUSIVE, (socket) => {
        if (socket === false) {
          const problem = `cannot listen on ${host}:${wanted}; is the port taken?${describePortHolder(wanted)}`;
          reject(new AppError<HttpReason>('INTERNAL', problem));
          return;
        }
        this.#listenSocket = socket;
        resolve(us_socket_local_port(socket));
      });
    });
    if (this.#http2OfNode === null) return { port, http2Port: port };
    const server = this.#http2OfNode.server as unknown as net.Server;
    const http2Wanted = http2?.fallbackPort ?? (wanted === 0 ? 0 : wanted + 1);
    await listenOn(server, { host, port: http2Wanted });
    const http2Port = (server.address() as net.AddressInfo).port;
    this.#incident('http2_port', `HTTP/2 is served on port ${http2Port}, not on ${port}`);
    return { port, http2Port };
  }

  /** Hot. Every request of uWebSockets.js comes in by one of these. */
  #taking(take: Take): (res: RawResponse, req: RawRequest) => void {
    const fields = this.headerFields;
    const { stages } = this.#options;
    return (res, req) => {
      stages?.arrived();
      const problem = fields.read(req);
      if (problem === '') take(new HttpExchange(res, req, this));
      else refuseMessage(res, problem);
    };
  }

  #guarded(handler: HttpHandler): Take {
    const { hostGuard } = this.#options;
    if (hostGuard === undefined) return handler;
    const { hosts, refuse } = hostGuard;
    return (exchange) => {
      if (hosts.accepts(exchange.header('host'), undefined)) handler(exchange);
      else refuse(exchange);
    };
  }

  /** Routes as uWebSockets.js does. What no route takes, as `*`, is the fallback's. */
  #takeUnusual(res: RawResponse, request: NodeRequest): void {
    const method = request.getCaseSensitiveMethod();
    for (const route of this.#routes) {
      if (route.method !== '' && route.method !== method) continue;
      const parameters = route.match.match(request.path);
      if (parameters === null) continue;
      route.take(new HttpExchange(res, request.withParameters(parameters), this));
      return;
    }
    this.#guarded((exchange) => this.#fallback(exchange))(new HttpExchange(res, request, this));
  }

  #incident(event: string, detail: string): void {
    this.#options.onIncident?.(event, detail);
  }
}

/** `onStream` behind the guard. */
function guardedStreams(
  onStream: Http2StreamHandler,
  hostGuard: HostGuard | undefined,
): Http2StreamHandler {
  if (hostGuard === undefined) return onStream;
  const { hosts, refuseStream } = hostGuard;
  assert(refuseStream !== undefined, 'a guard of HTTP/2 can refuse its streams');
  return (stream, headers, deadlines) => {
    if (isStreamAccepted(hosts, headers)) onStream(stream, headers, deadlines);
    else refuseStream(stream, headers);
  };
}
