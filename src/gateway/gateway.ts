import { BodyBudget } from '../http/bodies/body-budget.ts';
import { createHostGuard } from '../http/connect/host-guard.ts';
import type { HostGuard } from '../http/exchange/host-guard.ts';
import type { HttpExchange } from '../http/exchange/http-exchange.ts';
import { UNREAD_BYTES_MAX, UnreadAnswers } from '../http/exchange/unread-answers.ts';
import type { HostAllowList } from '../http/host-allow-list.ts';
import { HTTP_LIMITS_DEFAULT, type HttpLimits } from '../http/http-limits.ts';
import { REFUSED_STREAM } from '../http/http2/frames/protocol.ts';
import {
  createHttpServer,
  type Http1Counts,
  type Http1Parser,
  type HttpServer,
} from '../http/listener/http-server.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../http/request-id.ts';
import type { AuthzReason } from '../model/reasons.ts';
import { METRICS_CONTENT_TYPE } from '../observability/metric-store.ts';
import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import type { StageTimes } from '../shared/time/stage-times.ts';
import {
  type CallHandlers,
  type CallOptions,
  createCallHandlers,
  SERVICES,
} from './call-handlers.ts';
import { AUTHZ_ERRORS, sendConnectError } from './connect/connect-error.ts';
import { addFsckRoutes } from './fsck-routes.ts';
import { HOT_METHODS } from './hot/hot-methods.ts';
import { WRITE_PATH } from './hot/raw-writes.ts';
import { isDoorPath } from './openfga/door.ts';
import {
  addHealthRoutes,
  addMetricsRoute,
  answerGetStream,
  sendNotFound,
} from './operational-routes.ts';
import type { Readiness } from './readiness.ts';
import { HealthState } from './rpc/health-service.ts';
import { addTupleRoutes } from './tuples/tuple-routes.ts';
import { addWatchRoute } from './tuples/watch-routes.ts';

export type GatewayOptions = {
  readonly host: string;
  readonly port: number;
  readonly metricsPort: number;
  /** The reader of HTTP/1.1; see HttpServerOptions. */
  readonly http1Parser?: Http1Parser | undefined;
  /** A connection of HTTP/1.1 on which nothing is asked is closed after this long. */
  readonly httpIdleMs?: number | undefined;
  /** Sockets of a supervisor that listen already; then nothing is accepted before `accept`. */
  readonly held?: { readonly rpc: readonly number[]; readonly metrics: number } | undefined;
  /** Names that requests of both ports may be addressed to; undefined: any name, since callers have tokens. */
  readonly hosts: HostAllowList | undefined;
  /** Budget of all request bodies of the process; default one of its own. */
  readonly bodyBudget?: BodyBudget | undefined;
  readonly readiness: Readiness;
  readonly renderMetrics: () => Promise<string>;
  readonly onIncident: (event: string, detail: string) => void;
  /** An answer whose reader takes nothing for this long is given up; default a minute. */
  readonly answerStallMs?: number | undefined;
  /** Counts an answer that was dropped as nobody read it, or as its reader stalled. */
  readonly onUnread?: ((bytes: number) => void) | undefined;
  readonly onStalled?: (() => void) | undefined;
  /** Absent where stages are not measured. */
  readonly stages?: StageTimes | undefined;
};

/** Both listeners of the service. */
export interface Gateway {
  /**
   * Binds both ports: health routes answer, calls are answered that the service is starting. Sockets that are
   * held wait for `accept` instead: whoever connects meanwhile is served late, and not refused.
   */
  listen(): Promise<void>;
  /** The service is ready: from now on it accepts everywhere. */
  accept(): Promise<{ readonly port: number; readonly metricsPort: number }>;
  /** Answers calls from now on. Once. */
  serve(options: CallOptions): void;
  /** The gRPC health service follows the readiness; call it when that may have changed. */
  updateHealth(): void;
  /** Answers close their connections from now on; everything is still served. */
  beginDrain(): void;
  /** Stops accepting, lets calls in flight end within `timeoutMs`, then closes the RPC port. */
  stop(timeoutMs: number): Promise<void>;
  /** Closes the metrics port, which answers to the end. */
  stopMetrics(): Promise<void>;
  readonly inFlightCount: number;
  /** Connections of HTTP/1.1 to the RPC port. */
  readonly http1Counts: Http1Counts;
}

/** Whoever asks as the metrics port closes gets an answer. */
const METRICS_STOP_MS = 250;
/** The event of an answer whose reader stalled. */
const ANSWER_STALLED = 'answer_stalled';
/** The listeners with every route; nothing is bound before `listen`. */
export function createGateway(options: GatewayOptions): Gateway {
  return new ListenerPair(options);
}

class ListenerPair implements Gateway {
  readonly #options: GatewayOptions;
  readonly #server: HttpServer;
  readonly #metricsServer: HttpServer;
  readonly #bodyBudget: BodyBudget;
  readonly #unread: UnreadAnswers;
  readonly #health = new HealthState();
  readonly #draining = new AbortController();
  #calls: CallHandlers | null = null;
  #ports: { readonly port: number; readonly metricsPort: number } | null = null;

  constructor(options: GatewayOptions) {
    this.#options = options;
    for (const service of SERVICES) this.#health.setServing(service.typeName, false);
    const { host, port, held } = options;
    const bodyBudget = options.bodyBudget ?? new BodyBudget();
    this.#bodyBudget = bodyBudget;
    const onIncident = (event: string, detail: string): void => {
      if (event === ANSWER_STALLED) options.onStalled?.();
      options.onIncident(event, detail);
    };
    const answerStallMs = options.answerStallMs ?? HTTP_LIMITS_DEFAULT.answerStallMs;
    this.#unread = new UnreadAnswers({
      bytesMax: UNREAD_BYTES_MAX,
      stallMs: answerStallMs,
      onDropped: (bytes, isStalled) => {
        if (!isStalled) options.onUnread?.(bytes);
        const event = isStalled ? ANSWER_STALLED : 'answer_unread';
        onIncident(event, `an answer of ${bytes} bytes was not read`);
      },
    });
    this.#server = createHttpServer({
      bodyBudget,
      host,
      port,
      descriptors: held?.rpc,
      http1: options.http1Parser,
      limits: { ...limitsOf(options), answerStallMs },
      unread: this.#unread,
      http2: {
        onStream: (stream, headers, deadlines) => {
          const calls = this.#calls;
          const isGet = headers[':method'] === 'GET';
          if (isGet && calls?.adapter.paths.includes(headers[':path'] ?? '') !== true) {
            answerGetStream(stream, headers, options.readiness);
          } // Nothing was done: the client may try again.
          else if (calls === null) stream.close(REFUSED_STREAM);
          else if (calls.framedDecisions !== null && headers[':method'] === 'POST') {
            calls.framedDecisions.handleStream(stream, headers, deadlines);
          } else calls.adapter.handleHttp2(stream, headers, deadlines);
        },
      },
      hostGuard: hostGuardOf(options),
      onIncident,
      stages: options.stages?.calls.http1,
    });
    for (const hot of HOT_METHODS) {
      this.#server.route('POST', hot.path, (exchange) => {
        const rawDecisions = this.#calls?.rawDecisions ?? null;
        if (rawDecisions === null) this.#handle(exchange);
        else rawDecisions.handle(exchange, hot);
      });
    }
    this.#server.route('POST', WRITE_PATH, (exchange) => {
      const rawWrites = this.#calls?.rawWrites ?? null;
      if (rawWrites === null) this.#handle(exchange);
      else rawWrites.handle(exchange);
    });
    addHealthRoutes(this.#server, options.readiness);
    addTupleRoutes(this.#server, () => this.#calls?.tuples ?? null, this.#draining.signal);
    addWatchRoute(this.#server, () => this.#calls?.tuples ?? null, this.#draining.signal);
    this.#server.fallback((exchange) => {
      const openFga = this.#calls?.openFga ?? null;
      if (openFga !== null && isDoorPath(exchange.path())) openFga.handle(exchange);
      else this.#handle(exchange);
    });
    this.#metricsServer = createMetricsServer(options);
    addFsckRoutes(this.#metricsServer, () => this.#calls?.fsck ?? null);
  }

  async listen(): Promise<void> {
    if (this.#options.held === undefined) await this.#bind();
  }

  async accept(): Promise<{ readonly port: number; readonly metricsPort: number }> {
    return this.#ports ?? (await this.#bind());
  }

  async #bind(): Promise<{ readonly port: number; readonly metricsPort: number }> {
    const { port } = await this.#server.listen();
    const { port: metricsPort } = await this.#metricsServer.listen();
    this.#ports = { port, metricsPort };
    return this.#ports;
  }

  serve(options: CallOptions): void {
    assert(this.#calls === null, 'a gateway is given its calls once');
    this.#calls = createCallHandlers(options, {
      health: this.#health,
      bodyBudget: this.#bodyBudget,
      unread: this.#unread,
      drainSignal: this.#draining.signal,
      onIncident: this.#options.onIncident,
      stages: this.#options.stages,
    });
  }

  updateHealth(): void {
    this.#health.setAllServing(this.#options.readiness.isReady);
  }

  beginDrain(): void {
    this.updateHealth();
    this.#server.beginDrain();
    // The next life of this instance answers there from now on.
    if (this.#options.held !== undefined) this.stopMetrics().catch(() => undefined);
  }

  async stop(timeoutMs: number): Promise<void> {
    this.#draining.abort(new AppError<AuthzReason>('SHUTTING_DOWN', 'the service is stopping'));
    await this.#server.stop(timeoutMs);
  }

  stopMetrics(): Promise<void> {
    return this.#metricsServer.stop(METRICS_STOP_MS);
  }

  get http1Counts(): Http1Counts {
    return this.#server.http1Counts;
  }

  get inFlightCount(): number {
    return this.#server.inFlightCount;
  }

  #handle(exchange: HttpExchange): void {
    const adapter = this.#calls?.adapter ?? null;
    if (exchange.method() === 'GET' && adapter?.paths.includes(exchange.path()) !== true) {
      sendNotFound(exchange);
    } else if (adapter === null) {
      const requestId = requestIdOf(exchange.header(REQUEST_ID_HEADER));
      const starting = new AppError<AuthzReason>('STORE_UNAVAILABLE', 'the service is starting');
      sendConnectError(exchange, starting, requestId);
    } else {
      adapter.handleHttp1(exchange);
    }
  }
}

function createMetricsServer(options: GatewayOptions): HttpServer {
  const { host, metricsPort: port, held, onIncident } = options;
  const descriptors = held === undefined ? undefined : [held.metrics];
  const hostGuard = hostGuardOf(options);
  const limits = limitsOf(options);
  const parts = { host, port, descriptors, limits, onIncident, hostGuard };
  const server = createHttpServer({ ...parts, http1: options.http1Parser });
  addHealthRoutes(server, options.readiness);
  addMetricsRoute(server, { contentType: METRICS_CONTENT_TYPE, render: options.renderMetrics });
  server.fallback(sendNotFound);
  return server;
}

function limitsOf({ httpIdleMs }: GatewayOptions): Partial<HttpLimits> {
  return httpIdleMs === undefined ? {} : { http1IdleMs: httpIdleMs };
}

function hostGuardOf({ hosts, onIncident }: GatewayOptions): HostGuard | undefined {
  if (hosts === undefined) return undefined;
  return createHostGuard(hosts, 'GATEWAY_ALLOWED_HOSTS', AUTHZ_ERRORS, onIncident);
}
