import type { DescService } from '@bufbuild/protobuf';
import {
  type CallOptions,
  type Client,
  createClient,
  type Interceptor,
  type Transport,
} from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';
import { errorFrom } from './errors.ts';
import type { ShardName } from './session.ts';

/** A credential: a caller's token, or what fetches one that changes. */
export type Credential = string | (() => string | Promise<string>);

export type TransportOptions = {
  /** Where the service listens, such as `http://localhost:8080`. */
  readonly baseUrl: string;
  readonly token?: Credential;
  /** For AdminService, ModelService and BudgetService: the operator's secret. */
  readonly adminSecret?: Credential;
  /** Takes the place of `globalThis.fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Makes a transport of its own, with these interceptors: see `http2Transport` of `@gatehouse/client/node`. */
  readonly transport?: (options: {
    readonly baseUrl: string;
    readonly interceptors: Interceptor[];
  }) => Transport;
};

/** Connect over `fetch`, or the transport that the options make, with what every call carries. */
export function transportOf(options: TransportOptions, shard: ShardName): Transport {
  const { baseUrl, fetch } = options;
  const interceptors = [headersOf(options, shard)];
  if (options.transport !== undefined) return options.transport({ baseUrl, interceptors });
  return createConnectTransport({
    baseUrl,
    interceptors,
    ...(fetch === undefined ? {} : { fetch }),
  });
}

type Addressed = {
  readonly projectId?: string;
  readonly tenantId?: string;
  readonly scope?: { readonly projectId?: string; readonly tenantId?: string };
};

/** The credential, and the shard, by which a balancer brings a tenant's calls to one instance. */
function headersOf(options: TransportOptions, shard: ShardName): Interceptor {
  const { token, adminSecret } = options;
  return (next) => async (request) => {
    const message = request.stream ? {} : (request.message as Addressed);
    const place = message.scope ?? message;
    const project = place.projectId || shard.project;
    const tenant = place.tenantId || shard.tenant;
    if (!request.header.has(SHARD_HEADER)) request.header.set(SHARD_HEADER, `${project}/${tenant}`);
    if (token !== undefined) {
      request.header.set('authorization', `Bearer ${await valueOf(token)}`);
    }
    if (adminSecret !== undefined) {
      request.header.set('x-admin-secret', await valueOf(adminSecret));
    }
    return next(request);
  };
}

const SHARD_HEADER = 'x-gatehouse-shard';

/** A credential as it is now. */
export async function valueOf(credential: Credential): Promise<string> {
  return typeof credential === 'string' ? credential : credential();
}

/** The header that names a shard, for calls whose first message comes later. */
export function shardHeader({ project, tenant }: ShardName): Record<string, string> {
  return { [SHARD_HEADER]: `${project}/${tenant}` };
}

/** A generated client of a service whose calls fail with GatehouseError. */
export function serviceClient<Service extends DescService>(
  service: Service,
  transport: Transport,
): Client<Service> {
  const client = createClient(service, transport) as Record<string, AnyMethod>;
  const named = service.methods.map(({ localName, methodKind }) => {
    const call = client[localName] as AnyMethod;
    const isStream = methodKind === 'server_streaming' || methodKind === 'bidi_streaming';
    return [localName, isStream ? streamed(call) : unary(call)];
  });
  return Object.fromEntries(named) as Client<Service>;
}

type AnyMethod = (request: unknown, options?: CallOptions) => unknown;

function unary(call: AnyMethod): AnyMethod {
  return async (request, options) => {
    try {
      return await call(request, options);
    } catch (thrown) {
      throw errorFrom(thrown);
    }
  };
}

function streamed(call: AnyMethod): AnyMethod {
  return async function* (request, options) {
    try {
      yield* call(request, options) as AsyncIterable<unknown>;
    } catch (thrown) {
      throw errorFrom(thrown);
    }
  };
}
