import type { DescService } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { type DecodeLimits, isRefusedMessage } from '../decoding/decode-limits.ts';
import { BudgetService } from '../gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../gen/gatehouse/v1/model_service_pb.ts';
import { QueryService } from '../gen/gatehouse/v1/query_service_pb.ts';
import { TupleService } from '../gen/gatehouse/v1/tuple_service_pb.ts';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { AdminService } from '../gen/workspace/v1/admin_service_pb.ts';
import { AuthzService } from '../gen/workspace/v1/authz_service_pb.ts';
import { GroupService } from '../gen/workspace/v1/group_service_pb.ts';
import { SeatService } from '../gen/workspace/v1/seat_service_pb.ts';
import { WorkspaceService } from '../gen/workspace/v1/workspace_service_pb.ts';
import { BodyBudget } from '../http/bodies/body-budget.ts';
import type { ConnectAdapter, ConnectAdapterOptions } from '../http/connect/adapter-options.ts';
import { createConnectAdapter } from '../http/connect/adapter.ts';
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
import type { ShardClient } from '../protocol/shard-client.ts';
import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import type { StageTimes } from '../shared/stage-times.ts';
import type { Admission } from './callers/caller.ts';
import { guardedService, type OnRefused } from './callers/guarded-service.ts';
import { createCallerPort } from './connect/caller-port.ts';
import { AUTHZ_ERRORS, malformedMessage, sendConnectError } from './connect/connect-error.ts';
import { addFsckRoutes, type FsckParts, type FsckRuns } from './fsck-routes.ts';
import { DecisionReader } from './hot/decision-reader.ts';
import { FramedDecisions } from './hot/framed-decisions.ts';
import { HOT_METHODS } from './hot/hot-methods.ts';
import { RawDecisions } from './hot/raw-decisions.ts';
import { RawWrites, type RawWritesOptions, WRITE_PATH } from './hot/raw-writes.ts';
import type { DoorParts } from './openfga/door-call.ts';
import { isDoorPath, OpenFgaDoor } from './openfga/door.ts';
import {
  addHealthRoutes,
  addMetricsRoute,
  answerGetStream,
  sendNotFound,
} from './operational-routes.ts';
import type { Readiness } from './readiness.ts';
import type { DecisionMeter } from './reads/decision-meter.ts';
import type { QueryRecorder } from './reads/query-recorder.ts';
import type { ReadScopes } from './reads/read-scopes.ts';
import { admissionBy, type Credentials, createAuthorize } from './rpc/authorization.ts';
import { HealthState } from './rpc/health-service.ts';
import { reflectionRoutes } from './rpc/reflection-service.ts';
import type { TupleRoutes, TupleRoutesParts } from './tuples/tuple-calls.ts';
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
  /** What requests of both ports may be addressed to; undefined: any name, since callers have tokens. */
  readonly hosts: HostAllowList | undefined;
  /** Of all request bodies of the process; default one of its own. */
  readonly bodyBudget?: BodyBudget | undefined;
  readonly readiness: Readiness;
  readonly renderMetrics: () => Promise<string>;
  readonly onIncident: (event: string, detail: string) => void;
  /** An answer whose reader takes nothing for this long is given up; default a minute. */
  readonly answerStallMs?: number | undefined;
  /** Counts an answer that was given up as nobody read it, or as its reader stood still. */
  readonly onUnread?: ((bytes: number) => void) | undefined;
  readonly onStalled?: (() => void) | undefined;
  /** Absent where stages are not measured. */
  readonly stages?: StageTimes | undefined;
};

/** What answers calls, once the instance can. */
export type CallOptions = {
  readonly credentials: Credentials;
  readonly bodyBytesMax: number;
  /** What requests may hold besides, and who is notified of those that hold more, by the reason. */
  readonly decodeLimits: DecodeLimits;
  readonly onMessageRefused: (reason: string) => void;
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
  readonly authz: ServiceImpl<typeof AuthzService>;
  readonly admin: ServiceImpl<typeof AdminService>;
  readonly workspace: ServiceImpl<typeof WorkspaceService>;
  readonly group: ServiceImpl<typeof GroupService>;
  readonly seat: ServiceImpl<typeof SeatService>;
  readonly model: Partial<ServiceImpl<typeof ModelService>>;
  readonly query: Partial<ServiceImpl<typeof QueryService>>;
  readonly budget: ServiceImpl<typeof BudgetService>;
  readonly tuple: Partial<ServiceImpl<typeof TupleService>>;
  /** The same over lines of JSON. */
  readonly tupleRoutes: TupleRoutes;
  /** What writes the tuples of WriteRelationTuples. */
  readonly writes: RawWritesOptions['writes'];
  readonly shards: ShardClient;
  readonly scopes: ReadScopes;
  readonly meter: DecisionMeter;
  readonly report: ConnectAdapterOptions['report'];
  readonly fsck: FsckRuns;
  /** Absent where OpenFGA's API is not served. */
  readonly openFgaStores?: DoorParts['stores'] | undefined;
  /** Absent where no queries are recorded. */
  readonly recorder?: QueryRecorder | undefined;
  /** Tests only: false sends every request the general path. */
  readonly isHotPathEnabled?: boolean | undefined;
};

/** Both listeners of the service. */
export interface Gateway {
  /**
   * Binds both ports: health routes answer, calls are notified that the service is starting. Sockets that are
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
/** The event of an answer whose reader stood still. */
const ANSWER_STALLED = 'answer_stalled';
/** Answers shorter than this are not compressed. */
const COMPRESS_MIN_BYTES = 1_024;
/** All that are served, besides health and reflection. */
export const SERVICES = [
  WorkspaceService,
  GroupService,
  AuthzService,
  AdminService,
  SeatService,
  ModelService,
  QueryService,
  TupleService,
  BudgetService,
] as const;

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
  #adapter: ConnectAdapter | null = null;
  #ports: { readonly port: number; readonly metricsPort: number } | null = null;
  #rawDecisions: RawDecisions | null = null;
  #framedDecisions: FramedDecisions | null = null;
  #rawWrites: RawWrites | null = null;
  #tuples: TupleRoutesParts | null = null;
  #fsck: FsckParts | null = null;
  #openFga: OpenFgaDoor | null = null;

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
          const isGet = headers[':method'] === 'GET';
          if (isGet && this.#adapter?.paths.includes(headers[':path'] ?? '') !== true) {
            answerGetStream(stream, headers, options.readiness);
          } // Nothing was done: the client may try again.
          else if (this.#adapter === null) stream.close(REFUSED_STREAM);
          else if (this.#framedDecisions !== null && headers[':method'] === 'POST') {
            this.#framedDecisions.handleStream(stream, headers, deadlines);
          } else this.#adapter.handleHttp2(stream, headers, deadlines);
        },
      },
      hostGuard: hostGuardOf(options),
      onIncident,
      stages: options.stages?.calls.http1,
    });
    for (const hot of HOT_METHODS) {
      this.#server.route('POST', hot.path, (exchange) => {
        if (this.#rawDecisions === null) this.#handle(exchange);
        else this.#rawDecisions.handle(exchange, hot);
      });
    }
    this.#server.route('POST', WRITE_PATH, (exchange) => {
      if (this.#rawWrites === null) this.#handle(exchange);
      else this.#rawWrites.handle(exchange);
    });
    addHealthRoutes(this.#server, options.readiness);
    addTupleRoutes(this.#server, () => this.#tuples, this.#draining.signal);
    addWatchRoute(this.#server, () => this.#tuples, this.#draining.signal);
    this.#server.fallback((exchange) => {
      if (this.#openFga !== null && isDoorPath(exchange.path())) this.#openFga.handle(exchange);
      else this.#handle(exchange);
    });
    this.#metricsServer = createMetricsServer(options);
    addFsckRoutes(this.#metricsServer, () => this.#fsck);
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
    assert(this.#adapter === null, 'a gateway is given its calls once');
    const { callers } = options.credentials;
    const { onIncident } = this.#options;
    const bodyBudget = this.#bodyBudget;
    const onOutOfScope: OnRefused = ({ service, method }, caller) =>
      onIncident('scope_refused', `${caller}: ${service}/${method}`);
    const guarded = <Service extends DescService>(
      service: Service,
      implementation: Partial<ServiceImpl<Service>>,
    ): Partial<ServiceImpl<Service>> => guardedService(service, implementation, onOutOfScope);
    const adapter = createConnectAdapter({
      routes: (router) => {
        router.service(AuthzService, guarded(AuthzService, options.authz));
        router.service(AdminService, guarded(AdminService, options.admin));
        router.service(WorkspaceService, guarded(WorkspaceService, options.workspace));
        router.service(GroupService, guarded(GroupService, options.group));
        router.service(SeatService, guarded(SeatService, options.seat));
        router.service(ModelService, guarded(ModelService, options.model));
        router.service(QueryService, guarded(QueryService, options.query));
        router.service(TupleService, guarded(TupleService, options.tuple));
        router.service(BudgetService, guarded(BudgetService, options.budget));
        this.#health.routes(router);
        reflectionRoutes(router, [...SERVICES, Health]);
      },
      callers: createCallerPort(createAuthorize(options.credentials), onOutOfScope),
      errors: AUTHZ_ERRORS,
      malformed: malformedMessage,
      bodyBudget,
      decodeLimits: options.decodeLimits,
      onMessageRefused: options.onMessageRefused,
      readMaxBytes: options.bodyBytesMax,
      compressMinBytes: COMPRESS_MIN_BYTES,
      unread: this.#unread,
      drainSignal: this.#draining.signal,
      report: options.report,
      onFailure: (rpc, failure, shown) => options.meter.failedOutside(rpc, failure, shown),
    });
    this.#adapter = adapter;
    const admit = (authorization: string): Admission | Promise<Admission> =>
      admissionBy(callers, authorization);
    this.#tuples = { ...options.tupleRoutes, admit, onOutOfScope, report: options.report };
    this.#fsck = { admit, onOutOfScope, runs: options.fsck };
    if (options.openFgaStores !== undefined) {
      this.#openFga = new OpenFgaDoor({
        stores: options.openFgaStores,
        query: guarded(QueryService, options.query),
        model: guarded(ModelService, options.model),
        tuple: guarded(TupleService, options.tuple),
        admit,
        onOutOfScope,
        report: options.report,
        bodyBytesMax: options.bodyBytesMax,
      });
    }
    if (options.isHotPathEnabled === false) return;
    const compressMinBytes = COMPRESS_MIN_BYTES;
    const reader = new DecisionReader(options.decodeLimits);
    const onRefused = (reason: string): void => {
      if (isRefusedMessage(reason)) options.onMessageRefused(reason);
    };
    const shared = { callers, general: adapter, compressMinBytes, bodyBudget, reader, onRefused };
    const parts = { ...options, ...shared };
    const { stages } = this.#options;
    const carriers = stages?.calls;
    const unread = this.#unread;
    this.#framedDecisions = new FramedDecisions({ ...parts, unread, stages: carriers?.http2 });
    this.#rawDecisions = new RawDecisions({ ...parts, stages: carriers?.http1 });
    this.#rawWrites = new RawWrites({ ...options, callers, general: adapter });
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
    const adapter = this.#adapter;
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
