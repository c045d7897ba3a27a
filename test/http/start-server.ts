import net from 'node:net';
import { createRegistry } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import { type Authorize, NOBODY } from '../../src/gateway/callers/caller.ts';
import { createCallerPort } from '../../src/gateway/connect/caller-port.ts';
import { AUTHZ_ERRORS, malformedMessage } from '../../src/gateway/connect/connect-error.ts';
import { HealthState } from '../../src/gateway/rpc/health-service.ts';
import { reflectionRoutes } from '../../src/gateway/rpc/reflection-service.ts';
import { Health } from '../../src/gen/grpc/health/v1/health_pb.ts';
import { AuthzService, type CheckRequest } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import type { BodyBudget } from '../../src/http/bodies/body-budget.ts';
import { createConnectAdapter } from '../../src/http/connect/adapter.ts';
import type { CallFailure } from '../../src/http/connect/outgoing-error.ts';
import type { HttpLimits } from '../../src/http/http-limits.ts';
import {
  createHttpServer,
  type Http1Parser,
  type HttpServer,
} from '../../src/http/listener/http-server.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { conformanceRoutes } from '../conformance-connect/conformance-service.ts';
import { file_connectrpc_conformance_v1_service } from '../conformance-connect/gen/connectrpc/conformance/v1/service_pb.ts';
import { isOfPlatform } from '../support/http1-parsers.ts';

export type TestServer = {
  readonly port: number;
  readonly http2Port: number;
  readonly baseUrl: string;
  readonly server: HttpServer;
  readonly health: HealthState;
  readonly failures: CallFailure[];
  readonly incidents: string[];
  /** Checks whose signal was aborted before they answered. */
  readonly aborted: string[];
  /** Relations of the Checks that were begun. */
  readonly begun: string[];
  readonly drain: AbortController;
};

export const READ_MAX_BYTES = 100_000;
const GOOD_TOKEN = 'Bearer good';

/** Answers by object id: a scripted service in place of the engine, behind the real transport. */
export async function startServer(
  options: {
    readonly limits?: Partial<HttpLimits>;
    readonly isPortShared?: boolean;
    readonly http1?: Http1Parser;
    readonly hasCredential?: boolean;
    /** In place of the one that knows a good credential from others. */
    readonly authorize?: Authorize;
    readonly bodyBudget?: BodyBudget;
  } = {},
): Promise<TestServer> {
  const failures: CallFailure[] = [];
  const incidents: string[] = [];
  const aborted: string[] = [];
  const begun: string[] = [];
  const drain = new AbortController();
  const health = new HealthState();
  health.setServing('', true);
  const adapter = createConnectAdapter({
    routes: (router) => {
      router.service(AuthzService, {
        check: (request, context) => {
          begun.push(request.relation);
          return check(request, context, aborted);
        },
        listObjects: (request) => ({
          objectIds: Array.from(
            { length: Number(request.relation.slice(1)) },
            (_, i) => `object-${i}`,
          ),
        }),
      });
      conformanceRoutes(router);
      health.routes(router);
      reflectionRoutes(router, [AuthzService, Health]);
    },
    bodyBudget: options.bodyBudget,
    callers: createCallerPort(
      options.authorize ??
        ((_path, header) =>
          options.hasCredential === true && header('authorization') !== GOOD_TOKEN
            ? new AppError('CREDENTIAL_INVALID', 'the service credential is missing or wrong')
            : NOBODY),
    ),
    errors: AUTHZ_ERRORS,
    malformed: malformedMessage,
    readMaxBytes: READ_MAX_BYTES,
    drainSignal: drain.signal,
    registry: createRegistry(file_connectrpc_conformance_v1_service),
    report: (failure) => failures.push(failure),
  });
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    limits: options.limits,
    http1: options.http1,
    bodyBudget: options.bodyBudget,
    http2: { onStream: adapter.handleHttp2 },
    isPortShared: options.isPortShared,
    onIncident: (event) => {
      if (options.isPortShared === false || !isOfPlatform(event)) incidents.push(event);
    },
  });
  server.route('GET', '/healthz', (exchange) => exchange.send(200, 'application/json', '{}'));
  server.fallback(adapter.handleHttp1);
  const { port, http2Port } = await server.listen();
  const baseUrl = `http://127.0.0.1:${port}`;
  return { port, http2Port, baseUrl, server, health, failures, incidents, aborted, begun, drain };
}

async function check(
  request: CheckRequest,
  context: HandlerContext,
  aborted: string[],
): Promise<{ allowed: boolean }> {
  const [verb, detail] = request.objectId.split(':');
  switch (verb) {
    case 'wait':
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Number(detail));
        context.signal.addEventListener('abort', () => {
          aborted.push(request.relation);
          clearTimeout(timer);
          resolve();
        });
      });
      return { allowed: true };
    case 'stuck':
      await new Promise((resolve) => setTimeout(resolve, Number(detail)));
      return { allowed: true };
    case 'reason':
      throw new AppError(detail as never, 'on request', { field: 'object_id' });
    case 'throw':
      throw new Error('the secret path /var/lib/secret');
    default:
      return { allowed: request.subjectUserId === 'alice' };
  }
}

/** A raw connection that gathers what it receives. */
export class RawClient {
  readonly socket: net.Socket;
  received = '';
  isClosed = false;
  readonly closed: Promise<void>;

  constructor(port: number) {
    this.socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.received += text;
    });
    this.socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      const done = (): void => {
        this.isClosed = true;
        resolve();
      };
      this.socket.once('close', done);
      this.socket.once('end', done);
    });
  }

  async until(text: string): Promise<void> {
    await waitFor(() => this.received.includes(text) || this.isClosed);
  }
}

/** Polls until `holds`; fails the test by its timeout otherwise. */
export async function waitFor(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A POST of a Check as raw HTTP/1.1 text. */
export function rawCheck(objectId: string, relation = 'viewer'): string {
  const body = JSON.stringify({
    namespace: 'doc',
    object_id: objectId,
    relation,
    subject_user_id: 'alice',
  });
  return (
    `POST /workspace.v1.AuthzService/Check HTTP/1.1\r\nhost: x\r\n` +
    `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}
