import type { ServiceImpl, HandlerContext } from '@connectrpc/connect';
import type { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import type { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import type { TupleService } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import type { CallFailure } from '../../http/connect/outgoing-error.ts';
import type { OpenFgaStore, OpenFgaStores } from '../../services/openfga/openfga-stores.ts';
import type { AuthorizeResult, Credential } from '../callers/caller.ts';
import type { OnRefused } from '../callers/guarded-service.ts';
import { DoorError, storeNotFound } from './door-error.ts';
import type { DoorMembers } from './door-json.ts';
import type { ModelNameCache, ModelNames } from './model-names.ts';

/** Parts that the routes of OpenFGA's API need besides the server. The services are behind the scopes of callers. */
export type DoorParts = {
  readonly stores: OpenFgaStores;
  readonly query: Partial<ServiceImpl<typeof QueryService>>;
  readonly model: Partial<ServiceImpl<typeof ModelService>>;
  readonly tuple: Partial<ServiceImpl<typeof TupleService>>;
  readonly admit: (authorization: string) => AuthorizeResult | Promise<AuthorizeResult>;
  readonly onOutOfScope: OnRefused;
  readonly report: (failure: CallFailure) => void;
  readonly bodyBytesMax: number;
};

/** A call that was let in. */
export type DoorCall = {
  readonly parts: DoorParts;
  readonly names: ModelNameCache;
  readonly credential: Credential;
  readonly requestId: string;
  readonly body: DoorMembers;
  readonly query: URLSearchParams;
  /** Value of `:id` in a route's pattern; '' where it has none. */
  readonly id: string;
  /** Makes the context of a method of the services. */
  readonly contextOf: (method: string) => HandlerContext;
};

/** The answer of a call. */
export type DoorAnswer = { readonly status: number; readonly body: unknown };

/** The model that a request is asked under. */
export type AskedModel = {
  readonly id: string;
  readonly names: ModelNames;
  /** The version that the request names; 0: it names none, and the one in force answers. */
  readonly version: bigint;
};

const ULID = /^[ABCDEFGHJKMNPQRSTVWXYZ0-9]{26}$/;

/** An id of theirs in upper case. Errors: `validation_error`. */
export function ulidAt(field: string, value: string): string {
  const upper = value.toUpperCase();
  if (ULID.test(upper)) return upper;
  const text = `value does not match regex pattern ${JSON.stringify(ULID.source)}`;
  throw new DoorError(400, 'validation_error', `invalid ${field}: ${text}`);
}

/** The store of an id in a path. Errors: `store_id_not_found`. */
export async function mustStore({ parts }: DoorCall, id: string): Promise<OpenFgaStore> {
  const store = await parts.stores.store(ulidAt('StoreId', id));
  if (store === undefined) throw storeNotFound();
  return store;
}

/**
 * The model under which a request is decided: the one that it names, of any age, else the one in force. Errors:
 * `latest_authorization_model_not_found`; `authorization_model_not_found`.
 */
export async function mustModel(
  { parts, names }: DoorCall,
  store: OpenFgaStore,
  asked: string,
): Promise<AskedModel> {
  const wanted = asked === '' ? '' : ulidAt('AuthorizationModelId', asked);
  const named = wanted === '' ? undefined : await parts.stores.model(store, wanted);
  if (wanted !== '' && named === undefined) throw modelNotFound(wanted);
  const id = wanted === '' ? store.modelId : wanted;
  const found = id === '' ? undefined : await names.of(store, id);
  if (found === undefined) {
    const text = `No authorization models found for store '${store.id}'`;
    throw new DoorError(400, 'latest_authorization_model_not_found', text);
  }
  return { id, names: found, version: BigInt(named?.version ?? 0) };
}

/** `authorization_model_not_found` of an id. */
export function modelNotFound(id: string): DoorError {
  const text = `Authorization Model '${id}' not found`;
  return new DoorError(400, 'authorization_model_not_found', text);
}

/** The handler of a method, which must be there. */
export function mustHandler<T>(handler: T | undefined): T {
  if (handler === undefined) throw new Error('a method of the services is missing');
  return handler;
}
