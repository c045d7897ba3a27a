import type { ServiceImpl } from '@connectrpc/connect';
import { Health } from '../gen/grpc/health/v1/health_pb.ts';
import { AdminService } from '../gen/workspace/v1/admin_service_pb.ts';
import { AuthzService } from '../gen/workspace/v1/authz_service_pb.ts';
import { GroupService } from '../gen/workspace/v1/group_service_pb.ts';
import { SeatService } from '../gen/workspace/v1/seat_service_pb.ts';
import { WorkspaceService } from '../gen/workspace/v1/workspace_service_pb.ts';
import { createHttpServer, type HttpServer } from '../http/http-server.ts';
import { METRICS_CONTENT_TYPE } from '../observability/metric-store.ts';
import type { ShardClient } from '../protocol/shard-client.ts';
import { AppError } from '../shared/app-error.ts';
import { createAuthenticator } from './authentication.ts';
import { createAuthorize } from './authorization.ts';
import { createConnectAdapter, type ConnectAdapterOptions } from './connect-adapter.ts';
import type { DecisionMeter } from './decision-meter.ts';
import { HealthState } from './health-service.ts';
import { HOT_METHODS, HotPath } from './hot-path.ts';
import { addHealthRoutes, addMetricsRoute, sendNotFound } from './operational-routes.ts';
import type { ReadScopes } from './read-scopes.ts';
import type { Readiness } from './readiness.ts';
import { reflectionRoutes } from './reflection-service.ts';

export type GatewayOptions = {
  readonly host: string;
  readonly port: number;
  readonly metricsPort: number;
  readonly tokens: readonly string[];
  /** '' disables AdminService. */
  readonly adminSecret: string;
  readonly bodyBytesMax: number;
  /** Deadline of a call whose caller states none, and the longest that one may state. */
  readonly timeoutMsMax: number;
  readonly authz: ServiceImpl<typeof AuthzService>;
  readonly admin: ServiceImpl<typeof AdminService>;
  readonly shards: ShardClient;
  readonly scopes: ReadScopes;
  readonly meter: DecisionMeter;
  readonly readiness: Readiness;
  readonly renderMetrics: () => string;
  readonly report: ConnectAdapterOptions['report'];
  readonly onIncident: (event: string, detail: string) => void;
  /** Tests only: false sends every request the general path. */
  readonly isHotPathEnabled?: boolean | undefined;
};

/** Both listeners of the service. */
export interface Gateway {
  /** Errors: rejects with the system's error (port taken, no right to it). */
  listen(): Promise<{ readonly port: number; readonly metricsPort: number }>;
  /** The gRPC health service follows the readiness; call it when that changes. */
  setServing(isServing: boolean): void;
  /** Answers close their connections from now on; everything is still served. */
  beginDrain(): void;
  /** Stops accepting, lets calls in flight end within `timeoutMs`, then closes the RPC port. */
  stop(timeoutMs: number): Promise<void>;
  /** Closes the metrics port, which answers to the end. */
  stopMetrics(): Promise<void>;
  readonly inFlightCount: number;
}

/** Answers shorter than this are not compressed. */
const COMPRESS_MIN_BYTES = 1_024;
const SERVICES = [WorkspaceService, GroupService, AuthzService, AdminService, SeatService] as const;

/** Builds the listeners with every route; nothing is bound before `listen`. */
export function createGateway(options: GatewayOptions): Gateway {
  const authenticator = createAuthenticator(options.tokens);
  const health = new HealthState();
  for (const service of SERVICES) health.setServing(service.typeName, false);
  const draining = new AbortController();
  const adapter = createConnectAdapter({
    routes: (router) => {
      router.service(AuthzService, options.authz);
      router.service(AdminService, options.admin);
      // Part of the contract, built later: until then each method says so.
      for (const service of [WorkspaceService, GroupService, SeatService]) {
        router.service(service, {});
      }
      health.routes(router);
      reflectionRoutes(router, [...SERVICES, Health]);
    },
    authorize: createAuthorize(authenticator, options.adminSecret),
    readMaxBytes: options.bodyBytesMax,
    compressMinBytes: COMPRESS_MIN_BYTES,
    drainSignal: draining.signal,
    report: options.report,
  });
  const server = createHttpServer({
    host: options.host,
    port: options.port,
    http2: { onStream: adapter.handleHttp2 },
    onIncident: options.onIncident,
  });
  if (options.isHotPathEnabled !== false) {
    const hotPath = new HotPath({
      ...options,
      authenticator,
      general: adapter,
      compressMinBytes: COMPRESS_MIN_BYTES,
    });
    for (const hot of HOT_METHODS) {
      server.route('POST', hot.path, (exchange) => hotPath.handle(exchange, hot));
    }
  }
  addHealthRoutes(server, options.readiness);
  server.fallback((exchange) => {
    const isCall = exchange.method() !== 'GET' || adapter.paths.includes(exchange.path());
    if (isCall) adapter.handleHttp1(exchange);
    else sendNotFound(exchange);
  });
  const metricsServer = createMetricsServer(options);
  return {
    async listen() {
      const { port } = await server.listen();
      const { port: metricsPort } = await metricsServer.listen();
      return { port, metricsPort };
    },
    setServing: (isServing) => health.setAllServing(isServing),
    beginDrain() {
      health.setAllServing(false);
      server.beginDrain();
    },
    async stop(timeoutMs) {
      draining.abort(new AppError('SHUTTING_DOWN', 'the service is stopping'));
      await server.stop(timeoutMs);
    },
    stopMetrics: () => metricsServer.stop(0),
    get inFlightCount() {
      return server.inFlightCount;
    },
  };
}

function createMetricsServer(options: GatewayOptions): HttpServer {
  const server = createHttpServer({
    host: options.host,
    port: options.metricsPort,
    onIncident: options.onIncident,
  });
  addHealthRoutes(server, options.readiness);
  addMetricsRoute(server, { contentType: METRICS_CONTENT_TYPE, render: options.renderMetrics });
  server.fallback(sendNotFound);
  return server;
}
