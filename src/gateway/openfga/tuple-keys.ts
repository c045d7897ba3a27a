import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import type {
  RelationTupleSchema,
  SubjectSchema,
} from '../../gen/workspace/v1/authz_service_pb.ts';
import { ownNameOf } from '../../language/openfga/store-names.ts';
import { invalid } from './door-error.ts';
import { type DoorMembers, objectOf, textOf } from './door-json.ts';
import type { ModelNames } from './model-names.ts';

/** An object or user as OpenFGA writes it: `relation` is '' for the object itself, `id` '*' for the typed wildcard. */
export type StoreReference = {
  readonly type: string;
  readonly id: string;
  readonly relation: string;
};

/** A tuple key as it came. */
export type DoorTupleKey = {
  readonly user: string;
  readonly relation: string;
  readonly object: string;
  readonly condition: { readonly name: string; readonly context: JsonObject } | undefined;
};

const OBJECT = /^([^:#\s]+):([^:#\s]+)$/;
const USERSET = /^([^:#\s]+):([^:#\s]+)#([^:#@\s]+)$/;
const USER_FIELD = /^[^\s]{2,512}$/;
const RELATION_FIELD = /^[^:#@\s]{1,50}$/;
const OBJECT_FIELD = /^[^\s]{2,256}$/;

/** Reads a tuple key, field by field. Errors: `validation_error`, naming each field whose value may not be. */
export function tupleKeyOf(members: DoorMembers, message: string): DoorTupleKey {
  const key = {
    user: textOf(members, 'user'),
    relation: textOf(members, 'relation'),
    object: textOf(members, 'object'),
  };
  const problems: string[] = [];
  const check = (field: string, value: string, pattern: RegExp): void => {
    if (pattern.test(value)) return;
    const text = `value does not match regex pattern ${JSON.stringify(pattern.source)}`;
    problems.push(`invalid ${message}.${field}: ${text}`);
  };
  check('User', key.user, USER_FIELD);
  check('Relation', key.relation, RELATION_FIELD);
  check('Object', key.object, OBJECT_FIELD);
  if (problems.length > 0) throw invalid(problems.join('; '));
  const condition = objectOf(members, 'condition');
  if (condition === undefined) return { ...key, condition: undefined };
  const context = objectOf(condition, 'context') ?? {};
  return { ...key, condition: { name: textOf(condition, 'name'), context } };
}

/** The object that a key names, of a type of the model with the key's relation. Errors: as a message. */
export function objectProblem(key: DoorTupleKey, names: ModelNames): string | undefined {
  const [, type = '', id = ''] = OBJECT.exec(key.object) ?? [];
  if (type === '') return "invalid 'object' field format";
  const relations = names.types.get(type);
  if (relations === undefined) return `type '${type}' not found`;
  if (!relations.has(key.relation)) return `relation '${type}#${key.relation}' not found`;
  if (id === '*') return "the 'object' field cannot reference a typed wildcard";
  return undefined;
}

/** The problem of a user by the names of the model, or undefined. */
export function userProblem(user: string, names: ModelNames): string | undefined {
  const found = userOf(user);
  if (found === undefined) return "invalid 'user' field format";
  const relations = names.types.get(found.type);
  if (relations === undefined) return `type '${found.type}' not found`;
  if (found.relation !== '' && !relations.has(found.relation)) {
    return `relation '${found.type}#${found.relation}' not found`;
  }
  return undefined;
}

/** `type:id`, `type:*` or `type:id#relation`; undefined if it is neither. */
export function userOf(user: string): StoreReference | undefined {
  const [, type = '', id = '', relation = ''] = OBJECT.exec(user) ?? USERSET.exec(user) ?? [];
  if (type === '' || (id === '*' && relation !== '')) return undefined;
  return { type, id, relation };
}

/** The object of a key whose object was found right. */
export function objectOfKey({ object }: Pick<DoorTupleKey, 'object'>): {
  readonly type: string;
  readonly id: string;
} {
  const at = object.indexOf(':');
  return { type: object.slice(0, at), id: object.slice(at + 1) };
}

/** The subject that a user is here: always an object, a userset or a typed wildcard. */
export function subjectOf({
  type,
  id,
  relation,
}: StoreReference): MessageInitShape<typeof SubjectSchema> {
  const namespace = ownNameOf(type);
  if (id === '*') return { kind: { case: 'wildcardOf', value: namespace } };
  const own = relation === '' ? '' : ownNameOf(relation);
  return { kind: { case: 'set', value: { namespace, objectId: id, relation: own } } };
}

/** The tuple of a key, by the names of the model. Errors: `validation_error` with the reason. */
export function tupleOfKey(
  key: DoorTupleKey,
  names: ModelNames,
): MessageInitShape<typeof RelationTupleSchema> {
  const { condition } = key;
  const problem = objectProblem(key, names) ?? userProblem(key.user, names);
  if (problem !== undefined) throw invalidTuple(key, problem);
  if (condition !== undefined && condition.name !== '' && !names.conditions.has(condition.name)) {
    throw invalidTuple(key, 'undefined condition');
  }
  if (condition?.name === '' && Object.keys(condition.context).length > 0) {
    throw invalidTuple(key, 'a context without a condition');
  }
  const tuple = bareTupleOf(key);
  if (condition === undefined || condition.name === '') return tuple;
  const conditionName = ownNameOf(condition.name);
  return { ...tuple, conditionName, conditionParams: condition.context };
}

/** The tuple of a key without condition, unchecked by any model. Errors: `validation_error`. */
export function bareTupleOf(key: DoorTupleKey): MessageInitShape<typeof RelationTupleSchema> {
  const user = userOf(key.user);
  if (user === undefined) throw invalidTuple(key, "invalid 'user' field format");
  if (!OBJECT.test(key.object)) throw invalidTuple(key, "invalid 'object' field format");
  const { type, id } = objectOfKey(key);
  const relation = ownNameOf(key.relation);
  return { namespace: ownNameOf(type), objectId: id, relation, subject: subjectOf(user) };
}

function invalidTuple(key: DoorTupleKey, reason: string): Error {
  return invalid(`Invalid tuple '${key.object}#${key.relation}@${key.user}'. Reason: ${reason}`);
}
