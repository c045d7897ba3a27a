import { createContextValues, createHandlerContext } from '@connectrpc/connect';
import { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { kRequestId } from '../../http/connect/protocol/caller-port.ts';
import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '../../http/request-id.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { OpenFgaStore } from '../../services/openfga/openfga-stores.ts';
import { AppError } from '../../shared/app-error.ts';
import { type AuthorizeResult, type Credential, kCredential } from '../callers/caller.ts';
import { mustRule } from '../callers/method-rules.ts';
import { batchCheck, check, listObjects } from './check-calls.ts';
import { type DoorAnswer, type DoorCall, type DoorParts, mustStore } from './door-call.ts';
import {
  bodyOf,
  DoorError,
  doorErrorOf,
  headersOf,
  storeNotFound,
  unimplemented,
} from './door-error.ts';
import { membersOfBody } from './door-json.ts';
import {
  readAuthorizationModel,
  readAuthorizationModels,
  writeAuthorizationModel,
} from './model-calls.ts';
import { ModelNameCache } from './model-names.ts';
import { createStore, deleteStore, getStore, listStores } from './store-calls.ts';
import { read, write } from './tuple-calls.ts';

/** Prefix of the paths of the API. */
const PREFIX = '/openfga';
const JSON_TYPE = 'application/json';
/** A body is read in one go, whoever sends it: 8 MiB would hold the thread up for 80 ms, this for some 10. */
const BODY_BYTES_MAX = 1024 * 1024;
/** The rule of Check: a caller that it admits may know that the store exists. */
const CHECK = mustRule('/gatehouse.v1.QueryService/Check');

type OnStore = (call: DoorCall, store: OpenFgaStore) => Promise<DoorAnswer>;
type OnAny = (call: DoorCall, storeId: string) => Promise<DoorAnswer>;

/** Handlers of stores themselves, by method and path. */
const STORE_ROUTES: ReadonlyMap<string, OnAny> = new Map<string, OnAny>([
  ['POST /stores', createStore],
  ['GET /stores', listStores],
  ['GET /stores/:store', getStore],
  ['DELETE /stores/:store', deleteStore],
]);

/** Routes of a store. */
const ROUTES: ReadonlyMap<string, OnStore> = new Map<string, OnStore>([
  ['POST authorization-models', writeAuthorizationModel],
  ['GET authorization-models', readAuthorizationModels],
  ['GET authorization-models/:id', readAuthorizationModel],
  ['POST check', check],
  ['POST batch-check', batchCheck],
  ['POST list-objects', listObjects],
  ['POST write', write],
  ['POST read', read],
]);

/** Routes of their API that are not here. */
const MISSING: ReadonlySet<string> = new Set([
  'PATCH ',
  'POST expand',
  'GET changes',
  'POST streamed-list-objects',
  'POST list-users',
  'GET assertions/:id',
  'PUT assertions/:id',
]);

/** OpenFGA's HTTP API v1 over the services of this instance. */
export class OpenFgaDoor {
  readonly #parts: DoorParts;
  readonly #names: ModelNameCache;

  constructor(parts: DoorParts) {
    this.#parts = { ...parts, bodyBytesMax: Math.min(parts.bodyBytesMax, BODY_BYTES_MAX) };
    this.#names = new ModelNameCache(parts.stores);
  }

  /** Answers a request, whose headers and body can be had only now. Never throws. */
  handle(exchange: HttpExchange): void {
    const requestId = requestIdOf(exchange.header(REQUEST_ID_HEADER));
    const refuse = (error: unknown): void => this.#refuse(exchange, error, requestId, '');
    if (exchange.header('origin') !== '') {
      return refuse(new DoorError(403, 'forbidden', 'not for pages in a browser'));
    }
    const encoding = exchange.header('content-encoding');
    if (encoding !== '' && encoding !== 'identity') {
      return refuse(new DoorError(415, 'validation_error', `content-encoding ${encoding}`));
    }
    const request = requestOf(exchange);
    const admission = this.#parts.admit(exchange.header('authorization'));
    const begin = (admitted: AuthorizeResult, bytes: Uint8Array): void => {
      if (admitted instanceof AppError) return refuse(admitted);
      void this.#answer(exchange, request, admitted, requestId, bytes);
    };
    if (admission instanceof Promise) {
      // The body is kept while the caller is authenticated.
      this.#readBody(exchange, refuse, (bytes) => {
        admission.then((admitted) => begin(admitted, bytes), refuse);
      });
    } else if (admission instanceof AppError) {
      refuse(admission);
    } else {
      exchange.bodyOwner = admission.caller.name;
      this.#readBody(exchange, refuse, (bytes) => begin(admission, bytes));
    }
  }

  #readBody(
    exchange: HttpExchange,
    refuse: (error: unknown) => void,
    onBody: (bytes: Uint8Array) => void,
  ): void {
    exchange.readBody(
      this.#parts.bodyBytesMax,
      (bytes, _lease, refusal) => (refusal === null ? onBody(bytes) : refuse(refusal)),
      null,
    );
  }

  /** Never rejects. */
  async #answer(
    exchange: HttpExchange,
    request: DoorRequest,
    credential: Credential,
    requestId: string,
    bytes: Uint8Array,
  ): Promise<void> {
    const { name } = credential.caller;
    const contexts: ReturnType<typeof createHandlerContext>[] = [];
    const contextOf: DoorCall['contextOf'] = () => {
      const context = createHandlerContext({
        service: QueryService,
        method: QueryService.method.check,
        protocolName: 'openfga',
        requestMethod: request.method,
        url: request.url,
        requestSignal: request.signal,
        contextValues: createContextValues()
          .set(kCredential, credential)
          .set(kRequestId, requestId),
      });
      contexts.push(context);
      return context;
    };
    try {
      const body = membersOfBody(bytes);
      const { query, id } = request;
      const parts = this.#parts;
      const names = this.#names;
      const call = { parts, names, credential, requestId, body, query, id, contextOf };
      const { status, body: answer } = await this.#run(call, request);
      const headers = [REQUEST_ID_HEADER, requestId];
      if (answer === undefined) exchange.sendEmpty(status, headers);
      else exchange.send(status, JSON_TYPE, JSON.stringify(answer), headers);
    } catch (error) {
      this.#refuse(exchange, error, requestId, name);
    } finally {
      for (const context of contexts) context.abort(COMPLETE);
    }
  }

  async #run(call: DoorCall, { key, storeId, inStore }: DoorRequest): Promise<DoorAnswer> {
    const ofStores = STORE_ROUTES.get(key);
    if (ofStores !== undefined) return await ofStores(call, storeId);
    if (storeId === '' || (!ROUTES.has(inStore) && !MISSING.has(inStore))) {
      throw new DoorError(404, 'undefined_endpoint', 'Not Found');
    }
    const store = await mustStore(call, storeId);
    const { scopes } = call.credential.caller;
    try {
      const route = ROUTES.get(inStore);
      if (route === undefined) throw unimplemented(`${inStore.trim()} is not implemented`);
      return await route(call, store);
    } catch (error) {
      const isRefused = error instanceof AppError && error.reason === 'SCOPE_REFUSED';
      if (isRefused && !scopes.admitTenant(CHECK, store.projectId, '')) throw storeNotFound();
      throw error;
    }
  }

  #refuse(exchange: HttpExchange, error: unknown, requestId: string, caller: string): void {
    const shown = doorErrorOf(error);
    if (shown.status === 500) {
      const cause = shown.cause ?? shown;
      this.#parts.report({ requestId, rpc: 'openfga', caller, error: cause });
    }
    const headers = [REQUEST_ID_HEADER, requestId, ...headersOf(shown)];
    exchange.send(shown.status, JSON_TYPE, bodyOf(shown), headers);
  }
}

/** Why the signal of a call is aborted when it has ended; a constant, since a stack costs more. */
const COMPLETE = new AppError<AuthzReason>('CANCELLED', 'the call is complete');

/** Whether a path is one of this API; slashes may be doubled. */
export function isDoorPath(path: string): boolean {
  return /^\/+openfga(?:\/|$)/.test(path);
}

type DoorRequest = {
  readonly method: string;
  readonly url: string;
  readonly query: URLSearchParams;
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal;
  /** A key of STORE_ROUTES. */
  readonly key: string;
  readonly storeId: string;
  /** A key of ROUTES or MISSING. */
  readonly inStore: string;
  readonly id: string;
};

function requestOf(exchange: HttpExchange): DoorRequest {
  const method = exchange.method().toUpperCase();
  const path = exchange.path().replaceAll(/\/+/g, '/').slice(PREFIX.length);
  const [, root = '', storeId = '', call = '', id = '', ...more] = path
    .replace(/\/$/, '')
    .split('/');
  const isKnown = root === 'stores' && more.length === 0;
  const gone = new AbortController();
  exchange.onAborted(() =>
    gone.abort(new AppError<AuthzReason>('CANCELLED', 'the caller has gone')),
  );
  const ofStores = storeId === '' ? '/stores' : '/stores/:store';
  return {
    method,
    url: `http://gatehouse${path}`,
    query: new URLSearchParams(exchange.query()),
    signal: gone.signal,
    key: isKnown && call === '' ? `${method} ${ofStores}` : '',
    storeId: isKnown ? storeId : '',
    inStore: `${method} ${call}${id === '' ? '' : '/:id'}`,
    id,
  };
}
