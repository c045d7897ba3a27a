import { type DescMessage, fromJson, type JsonValue, toJson } from '@bufbuild/protobuf';
import { type Client, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { codeToString } from '@connectrpc/connect/protocol-connect';
import { Pool } from 'undici';
import { ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import { AuthzService } from '../../src/gen/workspace/v1/authz_service_pb.ts';

/** What came of a call. */
export type Reply =
  | { readonly kind: 'ok'; readonly body: Readonly<Record<string, unknown>> }
  /** The service refused it: its Connect code, and its own reason for it. */
  | { readonly kind: 'error'; readonly code: string; readonly reason: string }
  /** It never left. */
  | { readonly kind: 'unsent'; readonly text: string }
  /** No answer came: whether it was carried out is not known. */
  | { readonly kind: 'lost'; readonly text: string };

/** Ways to the same methods: they take different paths in the service. */
export type Way =
  /** JSON over HTTP/1.1 in the plainest form, which decisions answer from raw bytes. */
  | 'json'
  /** The same with a form that is unusual but allowed, which takes the general path. */
  | 'odd-json'
  | 'grpc';

const CONNECTIONS = 64;
const AUTHZ = 'AuthzService/';

/** What a service wants to see of its callers. */
export type Credentials = { readonly token: string; readonly adminSecret: string };

/** Calls of one instance over connections of its own. */
export class RpcClient {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #grpc: Client<typeof AuthzService>;

  constructor(baseUrl: string, { token, adminSecret }: Credentials) {
    this.#headers = {
      'content-type': 'application/json',
      'x-admin-secret': adminSecret,
      authorization: `Bearer ${token}`,
    };
    this.#pool = new Pool(baseUrl, {
      connections: CONNECTIONS,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.#grpc = createClient(
      AuthzService,
      createGrpcTransport({
        baseUrl,
        interceptors: [
          (next) => (request) => {
            request.header.set('authorization', `Bearer ${token}`);
            return next(request);
          },
        ],
      }),
    );
  }

  /** Calls `method` (as `AuthzService/Check`) with a message in snake_case. Never throws. */
  async call(
    method: string,
    message: Readonly<Record<string, unknown>>,
    options: { readonly timeoutMs: number; readonly way?: Way | undefined },
  ): Promise<Reply> {
    const { timeoutMs, way = 'json' } = options;
    if (way === 'grpc' && method.startsWith(AUTHZ)) {
      return await this.#callGrpc(method.slice(AUTHZ.length), message, timeoutMs);
    }
    // A key with an escape is not plain, so that the scan of raw bodies leaves it alone.
    const body = JSON.stringify(message);
    const odd = way === 'odd-json' ? body.replace('"tenant_id"', '"tenant\\u005fid"') : body;
    return await this.#callJson(method, odd, timeoutMs);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #callJson(method: string, body: string, timeoutMs: number): Promise<Reply> {
    try {
      const response = await this.#pool.request({
        path: `/workspace.v1.${method}`,
        method: 'POST',
        headers: { ...this.#headers, 'connect-timeout-ms': String(timeoutMs) },
        body,
        // The service's own deadline comes first, unless the service stands still.
        signal: AbortSignal.timeout(timeoutMs + LATE_MS),
      });
      const text = await response.body.text();
      const parsed = JSON.parse(text) as Readonly<Record<string, unknown>>;
      if (response.statusCode === 200) return { kind: 'ok', body: parsed };
      const { code = 'unknown', details = [] } = parsed as {
        readonly code?: string;
        readonly details?: readonly { readonly debug?: { readonly reason?: string } }[];
      };
      return { kind: 'error', code, reason: details[0]?.debug?.reason ?? '' };
    } catch (error) {
      return failureOf(error);
    }
  }

  async #callGrpc(
    name: string,
    message: Readonly<Record<string, unknown>>,
    timeoutMs: number,
  ): Promise<Reply> {
    const method = AuthzService.methods.find((one) => one.name === name);
    if (method === undefined) throw new Error(`there is no method ${name}`);
    const request = fromJson(method.input as DescMessage, message as JsonValue);
    const call = this.#grpc[method.localName as 'check'] as (
      input: unknown,
      options: { timeoutMs: number },
    ) => Promise<unknown>;
    try {
      const answer = await call(request, { timeoutMs });
      const body = toJson(method.output as DescMessage, answer as typeof request, {
        alwaysEmitImplicit: true,
        useProtoFieldName: true,
      });
      return { kind: 'ok', body: body as Readonly<Record<string, unknown>> };
    } catch (error) {
      return grpcFailureOf(error);
    }
  }
}

const LATE_MS = 500;
/** Of errors before anything was sent. */
const UNSENT = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT']);

function failureOf(error: unknown): Reply {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return { kind: UNSENT.has(code) ? 'unsent' : 'lost', text };
}

function grpcFailureOf(error: unknown): Reply {
  const failure = ConnectError.from(error);
  const [info] = failure.findDetails(ErrorInfoSchema);
  if (info !== undefined) {
    return { kind: 'error', code: codeToString(failure.code), reason: info.reason };
  }
  // Without our detail it is of the transport, or of the client's own deadline.
  const cause = failure.cause instanceof Error ? failure.cause : failure;
  const refused =
    cause.message.includes('ECONNREFUSED') || failure.message.includes('ECONNREFUSED');
  return { kind: refused ? 'unsent' : 'lost', text: failure.message };
}
