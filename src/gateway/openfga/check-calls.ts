import { create, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import {
  BatchCheckRequestSchema,
  CheckRequestSchema,
  type QueryScopeSchema,
  StreamObjectsRequestSchema,
  UsersetMode,
} from '../../gen/gatehouse/v1/query_service_pb.ts';
import type { RelationTupleSchema } from '../../gen/workspace/v1/authz_service_pb.ts';
import { ownNameOf } from '../../language/openfga/store-names.ts';
import type { OpenFgaStore } from '../../services/openfga/openfga-stores.ts';
import {
  type AskedModel,
  type DoorAnswer,
  type DoorCall,
  mustHandler,
  mustModel,
} from './door-call.ts';
import { DoorError, doorErrorOf, invalid, unimplemented } from './door-error.ts';
import { type DoorMembers, objectOf, objectsOf, textOf } from './door-json.ts';
import type { ModelNames } from './model-names.ts';
import {
  objectOfKey,
  objectProblem,
  type StoreReference,
  subjectOf,
  type DoorTupleKey,
  tupleKeyOf,
  tupleOfKey,
  userOf,
  userProblem,
} from './tuple-keys.ts';

type Tuple = MessageInitShape<typeof RelationTupleSchema>;
type AskedQuery = NonNullable<MessageInitShape<typeof CheckRequestSchema>['question']>;
type CheckOutcome = { readonly allowed: boolean; readonly undecided: boolean };

/** One check of a batch: what is asked, or what is wrong with it. */
type DoorItem = {
  readonly id: string;
  readonly query: AskedQuery | DoorError;
  readonly context: JsonObject | undefined;
  readonly contextual: readonly Tuple[];
};

const CORRELATION_ID = /^[\w\d-]{1,36}$/;
const UNDECIDED =
  'failed to evaluate the relationship: a condition lacks an input or failed, or a bound was reached';

/** POST /stores/:store/check. */
export async function check(call: DoorCall, store: OpenFgaStore): Promise<DoorAnswer> {
  const { body } = call;
  const asked = requiredKey(body, 'CheckRequest');
  const model = await mustModel(call, store, textOf(body, 'authorization_model_id'));
  const query = queryOf(asked, model.names);
  const contextual = contextualOf(body, model.names);
  const result = await ask(call, store, model, query, objectOf(body, 'context'), contextual);
  if (isUndecided(result)) throw invalid(UNDECIDED);
  return { status: 200, body: { allowed: result.allowed, resolution: '' } };
}

/** POST /stores/:store/batch-check. */
export async function batchCheck(call: DoorCall, store: OpenFgaStore): Promise<DoorAnswer> {
  const { body } = call;
  const checks = objectsOf(body, 'checks');
  if (checks.length === 0) {
    throw invalid('invalid BatchCheckRequest.Checks: value must contain at least 1 item(s)');
  }
  const ids = checks.map(correlationIdOf);
  const twice = ids.find((id, at) => ids.indexOf(id) !== at);
  if (twice !== undefined) throw invalid(`received duplicate correlation id: ${twice}`);
  const model = await mustModel(call, store, textOf(body, 'authorization_model_id'));
  const items = checks.map((one, at) => itemOf(one, ids[at] ?? '', model));
  const result = new Map<string, object>();
  const plain = items.filter(({ contextual }) => contextual.length === 0);
  await answerPlain(call, store, model, plain, result);
  for (const item of items) {
    if (item.contextual.length > 0) result.set(item.id, await answerOne(call, store, model, item));
  }
  // In their order.
  const ordered = ids.map((id) => [id, result.get(id)] as const);
  return { status: 200, body: { result: Object.fromEntries(ordered) } };
}

/** POST /stores/:store/list-objects: all of them. */
export async function listObjects(call: DoorCall, store: OpenFgaStore): Promise<DoorAnswer> {
  const { body, parts } = call;
  const type = textOf(body, 'type');
  const relation = textOf(body, 'relation');
  const model = await mustModel(call, store, textOf(body, 'authorization_model_id'));
  const relations = model.names.types.get(type);
  if (relations === undefined) {
    throw new DoorError(400, 'type_not_found', `type '${type}' not found`);
  }
  if (!relations.has(relation)) {
    const text = `relation '${type}#${relation}' not found`;
    throw new DoorError(400, 'relation_not_found', text);
  }
  const user = textOf(body, 'user');
  const problem = userProblem(user, model.names);
  const subject = userOf(user);
  if (problem !== undefined || subject === undefined) {
    throw invalid(`invalid 'user' value: ${problem ?? ''}`);
  }
  const contextual = contextualOf(body, model.names);
  const request = create(StreamObjectsRequestSchema, {
    scope: scopeOf(store, model, objectOf(body, 'context'), contextual),
    namespace: ownNameOf(type),
    relation: ownNameOf(relation),
    subject: askedSubject(subject),
  });
  const stream = mustHandler(parts.query.streamObjects);
  const objects: string[] = [];
  for await (const part of stream(request, call.contextOf('ListObjects'))) {
    for (const id of part.objectIds ?? []) objects.push(`${type}:${id}`);
  }
  return { status: 200, body: { objects } };
}

function requiredKey(body: DoorMembers, message: string): DoorTupleKey {
  const members = objectOf(body, 'tuple_key');
  if (members === undefined) {
    const text = `invalid ${message}.TupleKey: value is required`;
    throw new DoorError(400, 'tuple_key_value_not_specified', text);
  }
  return tupleKeyOf(members, `${message}TupleKey`);
}

function correlationIdOf(members: DoorMembers): string {
  const id = textOf(members, 'correlation_id');
  if (CORRELATION_ID.test(id)) return id;
  const text = `value does not match regex pattern ${JSON.stringify(CORRELATION_ID.source)}`;
  throw invalid(`invalid BatchCheckItem.CorrelationId: ${text}`);
}

/** Reads an item of a batch. An error of its fields fails the batch; one that the model finds fails the check alone. */
function itemOf(members: DoorMembers, id: string, { names }: AskedModel): DoorItem {
  const key = requiredKey(members, 'BatchCheckItem');
  const context = objectOf(members, 'context');
  try {
    const query = queryOf(key, names);
    return { id, query, context, contextual: contextualOf(members, names) };
  } catch (error) {
    if (!(error instanceof DoorError)) throw error;
    return { id, query: error, context, contextual: [] };
  }
}

/** Answers all checks without contextual tuples, in one request. */
async function answerPlain(
  call: DoorCall,
  store: OpenFgaStore,
  model: AskedModel,
  items: readonly DoorItem[],
  result: Map<string, object>,
): Promise<void> {
  const valid: { readonly id: string; readonly query: AskedQuery; context?: JsonObject }[] = [];
  for (const { id, query, context } of items) {
    if (query instanceof DoorError) result.set(id, errorJson(query));
    else valid.push({ id, query, ...(context === undefined ? {} : { context }) });
  }
  if (valid.length === 0) return;
  const request = create(BatchCheckRequestSchema, {
    scope: scopeOf(store, model, {}, []),
    items: valid.map(({ query, context = {} }) => ({ question: query, context })),
  });
  const batch = mustHandler(call.parts.query.batchCheck);
  const { results = [] } = await batch(request, call.contextOf('BatchCheck'));
  valid.forEach(({ id }, at) => {
    const {
      allowed = false,
      undecided = false,
      error = '',
    } = results[at] ?? { error: 'no result' };
    const failed = error === '' ? undefined : { internal_error: 'internal_error', message: error };
    result.set(id, failed === undefined ? resultJson({ allowed, undecided }) : { error: failed });
  });
}

async function answerOne(
  call: DoorCall,
  store: OpenFgaStore,
  model: AskedModel,
  item: DoorItem,
): Promise<object> {
  const { query, context, contextual } = item;
  if (query instanceof DoorError) return errorJson(query);
  try {
    return resultJson(await ask(call, store, model, query, context, contextual));
  } catch (error) {
    const shown = doorErrorOf(error);
    // A bad request concerns this check alone; any other error fails the call.
    if (shown.status !== 400) throw error;
    return errorJson(shown);
  }
}

async function ask(
  call: DoorCall,
  store: OpenFgaStore,
  model: AskedModel,
  query: AskedQuery,
  context: JsonObject | undefined,
  contextual: readonly Tuple[],
): Promise<CheckOutcome> {
  const request = create(CheckRequestSchema, {
    scope: scopeOf(store, model, context, contextual),
    question: query,
  });
  const handler = mustHandler(call.parts.query.check);
  const { allowed = false, undecided = false } = await handler(request, call.contextOf('Check'));
  return { allowed, undecided };
}

function isUndecided({ allowed, undecided }: CheckOutcome): boolean {
  return !allowed && undecided;
}

function resultJson(result: CheckOutcome): object {
  if (isUndecided(result)) return errorJson(invalid(UNDECIDED));
  return { allowed: result.allowed };
}

function errorJson({ code, message }: DoorError): object {
  return { error: { input_error: code, message } };
}

/** Conditions are always given a context, an empty one at least: without any they only deny. */
function scopeOf(
  { projectId }: OpenFgaStore,
  { version }: AskedModel,
  context: JsonObject | undefined,
  contextualTuples: readonly Tuple[],
): MessageInitShape<typeof QueryScopeSchema> {
  const usersetMode = UsersetMode.EXACT;
  return {
    projectId,
    context: context ?? {},
    contextualTuples: [...contextualTuples],
    usersetMode,
    modelVersion: version,
  };
}

/** The query of a key. Errors: `validation_error`; `unimplemented` for a typed wildcard. */
function queryOf(key: DoorTupleKey, names: ModelNames): AskedQuery {
  const problem = objectProblem(key, names) ?? userProblem(key.user, names);
  const user = userOf(key.user);
  if (problem !== undefined || user === undefined) {
    throw invalid(`invalid relation: ${problem ?? ''}`);
  }
  const { type, id } = objectOfKey(key);
  const relation = ownNameOf(key.relation);
  return { namespace: ownNameOf(type), objectId: id, relation, subject: askedSubject(user) };
}

function askedSubject(user: StoreReference): ReturnType<typeof subjectOf> {
  if (user.id === '*') {
    throw unimplemented(`'${user.type}:*' is nobody who could be asked about here`);
  }
  return subjectOf(user);
}

function contextualOf(body: DoorMembers, names: ModelNames): readonly Tuple[] {
  const keys = objectsOf(objectOf(body, 'contextual_tuples') ?? {}, 'tuple_keys');
  return keys.map((one) => tupleOfKey(tupleKeyOf(one, 'TupleKey'), names));
}
