import { canonicalJson } from '../../model/canonical-json.ts';
import {
  checkConditionName,
  checkNamespace,
  checkObjectId,
  checkRelation,
  checkUserId,
  SEAT_NAMESPACE,
} from '../../model/names.ts';
import type { JsonValue } from '../../shared/json.ts';
import { parseTimestamp } from '../../shared/time/instant.ts';
import { shapeError } from './json-shape.ts';
import type { PeerReference, PeerTuple } from './peer-model.ts';
import type { PeerNames } from './peer-names.ts';

/** Names here for the tuples of a peer. */
export type TupleNaming = {
  /** Names from the import of the peer's model; absent: names stay as they are. */
  readonly names?: Pick<PeerNames, 'namespaces' | 'relations' | 'conditions'> | undefined;
  /** The peer's type whose objects are users; undefined for no type. */
  readonly userType: string | undefined;
};

const USER = 'user';
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;

/**
 * Writes a tuple of a peer as a line of JSON that `POST /v1/tuples:import` takes, without the
 * newline. O(tuple).
 * Errors: FIELD_INVALID and FIELD_REQUIRED, naming the peer's field.
 */
export function tupleLine(tuple: PeerTuple, naming: TupleNaming): string {
  const { object, relation, condition, context, expiresAt } = tuple;
  checkObjectId('object', object.id);
  const params = paramsOf(context);
  if (condition === undefined && params !== undefined) {
    throw shapeError('condition', 'has a context and no name');
  }
  if (expiresAt !== undefined && parseTimestamp(expiresAt) === undefined) {
    throw shapeError('expiration', `${JSON.stringify(expiresAt)} is no instant of RFC 3339`);
  }
  return JSON.stringify({
    namespace: namespaceOf(object.type, 'object', naming),
    object_id: object.id,
    relation: relationOf(relation, 'relation', naming),
    subject: subjectOf(tuple.subject, naming),
    ...(condition === undefined ? {} : { condition_name: conditionOf(condition, naming) }),
    ...(params === undefined ? {} : { condition_params: params }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
  });
}

function subjectOf(subject: PeerReference, naming: TupleNaming): object {
  const { type, id, relation } = subject;
  const isUser = type === naming.userType && relation === '';
  if (id === '*') {
    if (isUser) return { wildcard: true };
    if (relation !== '')
      throw shapeError('user', `${type}:*#${relation} is a userset of a wildcard`);
    return { wildcard_of: namespaceOf(type, 'user', naming) };
  }
  if (isUser) {
    checkUserId('user', id);
    return { user_id: id };
  }
  checkObjectId('user', id);
  const namespace = namespaceOf(type, 'user', naming);
  const own = relation === '' ? '' : relationOf(relation, 'user', naming);
  return { set: { namespace, object_id: id, relation: own } };
}

function namespaceOf(type: string, field: string, { names, userType }: TupleNaming): string {
  if (names !== undefined) {
    const name = names.namespaces.get(type);
    if (name === undefined) throw shapeError(field, `the model has no type ${shown(type)}`);
    return name;
  }
  if (type === SEAT_NAMESPACE || (type === USER && userType === USER)) {
    throw shapeError(field, `the type ${type} is called otherwise here: --model says how`);
  }
  checkPlain(type, `${field}: the type`);
  checkNamespace(field, type);
  return type;
}

function relationOf(relation: string, field: string, { names }: TupleNaming): string {
  if (names !== undefined) {
    const name = names.relations.get(relation);
    if (name === undefined) throw shapeError(field, `the model has no relation ${shown(relation)}`);
    return name;
  }
  checkPlain(relation, `${field}: the relation`);
  checkRelation(field, relation);
  return relation;
}

function conditionOf(condition: string, { names }: TupleNaming): string {
  const name = names === undefined ? condition : names.conditions.get(condition);
  if (name === undefined) {
    throw shapeError('condition', `the model has no condition ${shown(condition)}`);
  }
  checkConditionName('condition', name);
  return name;
}

/**
 * Refuses a name that the import of the model would have changed. It needs the model, because two
 * names may become one.
 */
function checkPlain(name: string, what: string): void {
  if (NAME.test(name)) return;
  throw shapeError(what, `${shown(name)} is no name here: --model says what the import called it`);
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}

function paramsOf(context: unknown): JsonValue | undefined {
  if (context === undefined || context === null) return undefined;
  if (typeof context !== 'object' || Array.isArray(context)) {
    throw shapeError('condition.context', 'must be an object');
  }
  if (Object.keys(context).length === 0) return undefined;
  try {
    return JSON.parse(canonicalJson(context as JsonValue)) as JsonValue;
  } catch (error) {
    if (error instanceof RangeError) throw shapeError('condition.context', error.message);
    throw error;
  }
}
