import {
  type DescMessage,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { codeToString } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { Client, Metadata, type ServiceError, credentials } from '@grpc/grpc-js';
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
/** Before the methods of gatehouse.v1, which have another package than the others. */
export const QUERIES = 'QueryService/';
const TUPLES = 'TupleService/';
const MODELS = 'ModelService/';

/** What a service wants to see of its callers. */
export type Credentials = { readonly token: string; readonly adminSecret: string };

/** Calls of one instance over connections of its own. */
export class RpcClient {
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #grpc: Client;
  readonly #grpcHeaders = new Metadata();

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
    this.#grpc = new Client(new URL(baseUrl).host, credentials.createInsecure());
    this.#grpcHeaders.set('authorization', `Bearer ${token}`);
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
    this.#grpc.close();
    await this.#pool.destroy();
  }

  async #callJson(method: string, body: string, timeoutMs: number): Promise<Reply> {
    try {
      const response = await this.#pool.request({
        path: `/${isOfGatehouse(method) ? 'gatehouse' : 'workspace'}.v1.${method}`,
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
    const { input, output } = method as {
      readonly input: DescMessage;
      readonly output: DescMessage;
    };
    const request = fromJson(input, message as JsonValue);
    const { promise, resolve } = Promise.withResolvers<Reply>();
    this.#grpc.makeUnaryRequest(
      `/${AuthzService.typeName}/${name}`,
      (value: Message) => Buffer.from(toBinary(input, value)),
      (bytes) => fromBinary(output, bytes),
      request,
      this.#grpcHeaders,
      { deadline: Date.now() + timeoutMs },
      (error, answer) => {
        if (error !== null) resolve(grpcFailureOf(error));
        else if (answer === undefined) resolve({ kind: 'lost', text: 'no answer' });
        else resolve({ kind: 'ok', body: toJson(output, answer, ANSWER_JSON) as JsonBody });
      },
    );
    return await promise;
  }
}

function isOfGatehouse(method: string): boolean {
  return [QUERIES, TUPLES, MODELS].some((service) => method.startsWith(service));
}

type JsonBody = Readonly<Record<string, unknown>>;
const ANSWER_JSON = { alwaysEmitImplicit: true, useProtoFieldName: true };
const LATE_MS = 500;
/** Of errors before anything was sent. */
const UNSENT = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT']);

function failureOf(error: unknown): Reply {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return { kind: UNSENT.has(code) ? 'unsent' : 'lost', text };
}

function grpcFailureOf(error: ServiceError): Reply {
  const trailer = new Headers();
  trailer.set('grpc-status', String(error.code));
  for (const value of error.metadata.get('grpc-status-details-bin')) {
    trailer.set('grpc-status-details-bin', Buffer.from(value).toString('base64'));
  }
  const failure = findTrailerError(trailer);
  const [info] = failure?.findDetails(ErrorInfoSchema) ?? [];
  if (failure !== undefined && info !== undefined) {
    return { kind: 'error', code: codeToString(failure.code), reason: info.reason };
  }
  // Without our detail it is of the transport, or of the client's own deadline. A stream that was refused was not
  // begun (RFC 9113, 8.7).
  const isUnsent = ['ECONNREFUSED', 'REFUSED_STREAM', 'No connection established'].some((word) =>
    error.message.includes(word),
  );
  return { kind: isUnsent ? 'unsent' : 'lost', text: error.message };
}
