import { type TextProblem, tupleFromText } from '../assertions/tuple-text.ts';
import { canonicalJson } from '../model/canonical-json.ts';
import {
  checkConditionName,
  checkJson,
  checkNamespace,
  checkObjectId,
  checkRelation,
  checkUserId,
  requiredError,
} from '../model/names.ts';
import { fieldError } from '../model/reasons.ts';
import type { RelationTuple, Subject, TupleKey, TuplePayload } from '../model/relation-tuple.ts';
import type { JsonObject, JsonValue } from '../shared/json.ts';
import { utf8Length } from '../shared/text/utf8.ts';
import { isTimestamp } from '../shared/time/instant.ts';
import { checkInteger, refuseUnknown } from './checked-options.ts';
import type {
  EngineQuery,
  ListOptions,
  EngineQueryOptions,
  EngineSubject,
  SubjectsQuery,
  EngineTuple,
  Wildcard,
} from './types.ts';

/** Maximum size of a condition's parameters in bytes of canonical JSON. Same as in the service. */
const PARAMS_BYTES_MAX = 65_536;
const TUPLE_MEMBERS = [
  'namespace',
  'objectId',
  'relation',
  'subject',
  'condition',
  'conditionParams',
  'expiresAt',
];
const QUERY_MEMBERS = ['namespace', 'objectId', 'relation', 'subject'];
const SUBJECTS_QUERY_MEMBERS = [
  'namespace',
  'objectId',
  'relation',
  'subjectNamespace',
  'subjectRelation',
];
const QUERY_OPTIONS = ['context', 'contextualTuples', 'exact'];
const NO_OPTIONS: CheckedOptions = { contextJson: '', contextual: [], isExact: false };

/** Checked options of a query. */
export type CheckedOptions = {
  readonly contextJson: string;
  readonly contextual: readonly RelationTuple[];
  readonly isExact: boolean;
};

/** Checks the form of each tuple in a list. Errors: FIELD_*, naming the tuple. */
export function tuplesOf(
  field: string,
  tuples: readonly (EngineTuple | string)[],
): RelationTuple[] {
  if (!Array.isArray(tuples)) throw fieldError(field, 'must be an array');
  // Array.from visits holes, which map skips.
  return Array.from(tuples as readonly (EngineTuple | string)[], (tuple, i) =>
    tupleOf(`${field}[${i}]`, tuple),
  );
}

/** Checks a query. Errors: FIELD_*. */
export function queryOf(query: EngineQuery | string): TupleKey {
  if (typeof query === 'string') {
    const key = fromText('query', query, tupleFromText);
    return { ...key, subject: askedSubject('query', key.subject) };
  }
  refuseUnknown('query', query, QUERY_MEMBERS);
  const { namespace, objectId } = objectOf('query', query);
  const relation = text('query.relation', query.relation, checkRelation);
  const subject = subjectOf('query.subject', query.subject);
  return { namespace, objectId, relation, subject: askedSubject('query.subject', subject) };
}

/** Checks the object of a query, without a relation. Errors: FIELD_*. */
export function objectOf(
  field: string,
  object: { readonly namespace: string; readonly objectId: string },
): { readonly namespace: string; readonly objectId: string } {
  checkObject(field, object);
  return {
    namespace: text(`${field}.namespace`, object.namespace, checkNamespace),
    objectId: text(`${field}.objectId`, object.objectId, checkObjectId),
  };
}

/** Checks the object whose relations are listed; `subjectOfQuery` checks the subject. Errors: FIELD_*. */
export function relationsQueryOf(query: {
  readonly namespace: string;
  readonly objectId: string;
}): {
  readonly namespace: string;
  readonly objectId: string;
} {
  refuseUnknown('query', query, ['namespace', 'objectId', 'subject']);
  return objectOf('query', query);
}

/** Checks the subject, relation and namespace whose objects are listed. Errors: FIELD_*. */
export function objectsQueryOf(query: {
  readonly namespace: string;
  readonly relation: string;
  readonly subject: EngineSubject;
}): { readonly namespace: string; readonly relation: string; readonly subject: Subject } {
  refuseUnknown('query', query, ['namespace', 'relation', 'subject']);
  const namespace = text('query.namespace', query.namespace, checkNamespace);
  const relation = text('query.relation', query.relation, checkRelation);
  return { namespace, relation, subject: subjectOfQuery(query.subject) };
}

/**
 * Checks the relation whose subjects are listed. '' means users as a namespace, and the objects themselves as a
 * relation. Errors: FIELD_*.
 */
export function subjectsQueryOf(query: SubjectsQuery) {
  refuseUnknown('query', query, SUBJECTS_QUERY_MEMBERS);
  const { subjectNamespace: namespace, subjectRelation: relation } = query;
  if (relation !== undefined && namespace === undefined)
    throw requiredError('query.subjectNamespace');
  return {
    ...objectOf('query', query),
    relation: text('query.relation', query.relation, checkRelation),
    subjectNamespace:
      namespace === undefined ? '' : text('query.subjectNamespace', namespace, checkNamespace),
    subjectRelation:
      relation === undefined ? '' : text('query.subjectRelation', relation, checkRelation),
  };
}

/** Checks the subject of a query. Errors: FIELD_*. */
export function subjectOfQuery(subject: EngineSubject): Subject {
  return askedSubject('query.subject', subjectOf('query.subject', subject));
}

/** Checks the options of a query; `others` are additional members that its kind has. Errors: FIELD_*. */
export function queryOptionsOf(
  options: EngineQueryOptions | undefined,
  others: readonly string[] = [],
): CheckedOptions {
  if (options === undefined) return NO_OPTIONS;
  refuseUnknown('options', options, [...QUERY_OPTIONS, ...others]);
  const { context, contextualTuples = [], exact = false } = options;
  if (typeof exact !== 'boolean') throw fieldError('options.exact', 'must be a boolean');
  return {
    contextJson: context === undefined ? '' : canonicalJson(plain('options.context', context)),
    contextual: tuplesOf('options.contextualTuples', contextualTuples),
    isExact: exact,
  };
}

/** Checks the requested part of a list. Errors: FIELD_*. */
export function pageOf({ after = '', limit }: ListOptions): {
  readonly after: string;
  readonly idsMax: number;
} {
  if (after !== '') text('options.after', after, checkObjectId);
  if (limit !== undefined) checkInteger('options.limit', limit, 1, Number.MAX_SAFE_INTEGER);
  return { after, idsMax: limit ?? Infinity };
}

function tupleOf(field: string, tuple: EngineTuple | string): RelationTuple {
  if (typeof tuple === 'string') return fromText(field, tuple, tupleFromText);
  refuseUnknown(field, tuple, TUPLE_MEMBERS);
  return {
    ...objectOf(field, tuple),
    relation: text(`${field}.relation`, tuple.relation, checkRelation),
    subject: subjectOf(`${field}.subject`, tuple.subject),
    ...payloadOf(field, tuple),
  };
}

function payloadOf(
  field: string,
  { condition, conditionParams, expiresAt }: EngineTuple,
): TuplePayload {
  if (condition !== undefined) {
    text(`${field}.condition`, condition, checkConditionName);
    if (condition === '') throw requiredError(`${field}.condition`);
  } else if (conditionParams !== undefined) {
    throw fieldError(`${field}.conditionParams`, 'needs a condition');
  }
  return {
    expiresAtUs: expiresAt === undefined ? undefined : instant(`${field}.expiresAt`, expiresAt),
    conditionName: condition,
    conditionParams:
      conditionParams === undefined
        ? undefined
        : paramsOf(`${field}.conditionParams`, conditionParams),
  };
}

function paramsOf(field: string, params: JsonObject): string {
  const json = canonicalJson(plain(field, params));
  if (utf8Length(json) <= PARAMS_BYTES_MAX) return json;
  throw fieldError(field, `must have at most ${PARAMS_BYTES_MAX} bytes as JSON`);
}

function instant(field: string, date: Date): bigint {
  // Accepts a Date of any realm: test runners give their tests a Date class of their own.
  const ms = typeof date?.getTime === 'function' ? date.getTime() : Number.NaN;
  if (!Number.isNaN(ms) && isTimestamp(BigInt(Math.floor(ms / 1000)), 0)) {
    return BigInt(Math.floor(ms)) * 1000n;
  }
  throw fieldError(field, 'must be a Date between the years 0001 and 9999');
}

function subjectOf(field: string, subject: EngineSubject | Wildcard): Subject {
  if (subject === undefined) throw requiredError(field);
  if (typeof subject === 'string') {
    checkUserId(field, subject);
    return { kind: 'user', userId: subject };
  }
  if (typeof subject !== 'object' || subject === null) {
    throw fieldError(field, 'must be a user id, an object, a userset or a wildcard');
  }
  if ('everyone' in subject) {
    refuseUnknown(field, subject, ['everyone']);
    const { everyone }: { readonly everyone: unknown } = subject;
    if (everyone !== true) throw fieldError(`${field}.everyone`, 'must be true');
    return { kind: 'wildcard' };
  }
  if ('wildcardOf' in subject) {
    refuseUnknown(field, subject, ['wildcardOf']);
    const namespace = text(`${field}.wildcardOf`, subject.wildcardOf, checkNamespace);
    return { kind: 'wildcardOf', namespace };
  }
  refuseUnknown(field, subject, ['namespace', 'objectId', 'relation']);
  const { relation } = subject;
  return {
    kind: 'set',
    ...objectOf(field, subject),
    relation: relation === undefined ? '' : text(`${field}.relation`, relation, checkRelation),
  };
}

function checkObject(field: string, value: object): void {
  if (typeof value !== 'object' || value === null) throw fieldError(field, 'must be an object');
}

function askedSubject(field: string, subject: Subject): Subject {
  if (subject.kind === 'user' || subject.kind === 'set') return subject;
  throw fieldError(field, 'must be a user, an object or a userset, and no wildcard');
}

function text(field: string, value: string, check: (field: string, value: string) => void): string {
  if (value === undefined) throw requiredError(field);
  if (typeof value !== 'string') throw fieldError(field, 'must be a string');
  check(field, value);
  return value;
}

function fromText<T extends object>(
  field: string,
  value: string,
  read: (value: string) => T | TextProblem,
): T {
  const key = read(value);
  if ('problem' in key) throw fieldError(field, `${JSON.stringify(value)} ${key.problem}`);
  return key;
}

/** Checks that a value is plain JSON. JSON.stringify would silently omit or convert anything else. */
function plain(field: string, value: JsonObject): JsonObject {
  if (!isPlainObject(value)) throw fieldError(field, 'must be a plain object');
  checkJson(field, value);
  refuseForeign(field, value);
  return value;
}

function refuseForeign(field: string, value: JsonValue): void {
  if (value === null || ['boolean', 'number', 'string'].includes(typeof value)) return;
  if (Array.isArray(value)) {
    for (const [i, entry] of value.entries()) refuseForeign(`${field}[${i}]`, entry as JsonValue);
  } else if (isPlainObject(value)) {
    for (const [name, entry] of Object.entries(value)) refuseForeign(`${field}.${name}`, entry);
  } else {
    throw fieldError(field, 'is no JSON value');
  }
}

function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object of another realm, such as a frame or a vm, has another Object.prototype, which has no prototype itself.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
