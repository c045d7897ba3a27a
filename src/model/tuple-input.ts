import { AppError } from '../shared/app-error.ts';
import type { JsonObject } from '../shared/json.ts';
import { DECODE_TURNS, runInSlices } from '../shared/slice-queue.ts';
import { isTimestamp } from '../shared/time/instant.ts';
import { canonicalJson } from './canonical-json.ts';
import {
  SEAT_NAMESPACE,
  checkConditionName,
  checkJson,
  checkNamespace,
  checkObjectId,
  checkRelation,
  checkUserId,
  isName,
  isShortId,
  requiredError,
} from './names.ts';
import type { RawSubject, RawTimestamp, RawTuple, RawUpdate } from './raw-tuple.ts';
import { type AuthzReason, fieldError } from './reasons.ts';
import {
  type RelationTuple,
  type ShardKey,
  type Subject,
  type TupleChange,
  type TupleKey,
  type TuplePayload,
  tupleIdentity,
} from './relation-tuple.ts';

const OP_INSERT = 1;
const OP_DELETE = 2;
/** Maximum size of a condition's parameters in bytes of canonical JSON. */
export const CONDITION_PARAMS_BYTES_MAX = 65_536;

/**
 * Checks the updates of a WriteRelationTuples. `shard` is what the project and tenant of the request resolve to.
 * Errors: FIELD_*, NAMESPACE_RESERVED, BATCH_TOO_LARGE; messages name the field, for example
 * `updates[3].tuple.object_id`.
 */
export function checkUpdates(
  updates: readonly RawUpdate[],
  shard: ShardKey,
  updatesMax: number,
): TupleChange[] {
  const steps = checkSteps(updates, shard, updatesMax);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Number of updates above which a request is checked in slices: a millisecond's work and more. */
export const LARGE_UPDATES = 1_000;
/** Number of updates checked in one step. */
const STEP_UPDATES = 128;

/** Same as `checkUpdates`, but other requests get turns on the thread while a large one is checked. */
export async function checkUpdatesInSlices(
  updates: readonly RawUpdate[],
  shard: ShardKey,
  updatesMax: number,
): Promise<TupleChange[]> {
  if (updates.length <= LARGE_UPDATES) return checkUpdates(updates, shard, updatesMax);
  return await runInSlices(checkSteps(updates, shard, updatesMax), DECODE_TURNS);
}

function* checkSteps(
  updates: readonly RawUpdate[],
  shard: ShardKey,
  updatesMax: number,
): Generator<void, TupleChange[]> {
  if (updates.length === 0) throw requiredError('updates');
  if (updates.length > updatesMax) {
    throw new AppError<AuthzReason>(
      'BATCH_TOO_LARGE',
      `updates: at most ${updatesMax} in one request`,
      {
        field: 'updates',
        limit: String(updatesMax),
      },
    );
  }
  const changes: TupleChange[] = [];
  for (const [i, update] of updates.entries()) {
    changes.push(plainUpdate(update, shard) ?? checkUpdate(`updates[${i}]`, update, shard));
    if (changes.length % STEP_UPDATES === 0) yield;
  }
  const first = changes.length === 1 ? null : yield* repeatedIn(changes.map(({ tuple }) => tuple));
  if (first === null) return changes;
  throw fieldError(`updates[${first.again}].tuple`, `is the same tuple as updates[${first.index}]`);
}

/**
 * Checks tuples of a request that are not written, by the rules of written ones, in steps that the caller runs to the
 * end. Each identity may occur once. Errors: as `checkUpdates`; messages name the field, for example
 * `contextual_tuples[3].object_id`.
 */
export function* checkContextualTuples(
  field: string,
  tuples: readonly RawTuple[],
  shard: ShardKey,
  tuplesMax: number,
): Generator<void, RelationTuple[]> {
  if (tuples.length > tuplesMax) {
    throw new AppError<AuthzReason>(
      'BATCH_TOO_LARGE',
      `${field}: at most ${tuplesMax} in one request`,
      { field, limit: String(tuplesMax) },
    );
  }
  const checked: RelationTuple[] = [];
  for (const [i, tuple] of tuples.entries()) {
    checked.push(checkTuple(`${field}[${i}]`, tuple, shard));
    // Parameters may have thousands of members: a millisecond's work.
    if (tuple.conditionParams !== undefined) yield;
  }
  const first = yield* repeatedIn(checked);
  if (first === null) return checked;
  throw fieldError(`${field}[${first.again}]`, `is the same tuple as ${field}[${first.index}]`);
}

/** Index of the first tuple that occurs again, and of its repetition; null if all are different. */
function* repeatedIn(
  tuples: readonly TupleKey[],
): Generator<void, { index: number; again: number } | null> {
  const positions = new Map<string, number>();
  for (const [again, tuple] of tuples.entries()) {
    const identity = tupleIdentity(tuple);
    const index = positions.get(identity);
    if (index !== undefined) return { index, again };
    positions.set(identity, again);
    if (positions.size % STEP_UPDATES === 0) yield;
  }
  return null;
}

/**
 * Fast path of `checkUpdate` for ordinary valid updates; undefined for all others. Hot: field names, which only errors
 * need, are most of the cost of the checks.
 */
function plainUpdate({ op, tuple }: RawUpdate, shard: ShardKey): TupleChange | undefined {
  if ((op !== OP_INSERT && op !== OP_DELETE) || tuple === undefined) return undefined;
  const { projectId, tenantId, namespace, objectId, relation } = tuple;
  const isPlain =
    (projectId === '' || projectId === shard.projectId) &&
    (tenantId === '' || tenantId === shard.tenantId) &&
    isName(namespace) &&
    namespace !== SEAT_NAMESPACE &&
    isShortId(objectId) &&
    isName(relation) &&
    tuple.expiresAt === undefined &&
    (tuple.conditionName === undefined || tuple.conditionName === '') &&
    tuple.conditionParams === undefined;
  const subject = isPlain ? plainSubject(tuple.subject?.kind) : undefined;
  if (subject === undefined) return undefined;
  const key = { namespace, objectId, relation, subject };
  return { op: op === OP_INSERT ? 'insert' : 'delete', tuple: key };
}

function plainSubject(kind: RawSubject | undefined): Subject | undefined {
  if (kind?.case === 'userId') {
    return isShortId(kind.value) ? { kind: 'user', userId: kind.value } : undefined;
  }
  if (kind?.case !== 'set') return undefined;
  const { namespace, objectId, relation } = kind.value;
  const isPlain = isName(namespace) && isShortId(objectId) && (relation === '' || isName(relation));
  return isPlain ? { kind: 'set', namespace, objectId, relation } : undefined;
}

function checkUpdate(field: string, update: RawUpdate, shard: ShardKey): TupleChange {
  if (update.op !== OP_INSERT && update.op !== OP_DELETE) {
    throw fieldError(`${field}.op`, 'must be OP_INSERT or OP_DELETE');
  }
  if (update.tuple === undefined) throw requiredError(`${field}.tuple`);
  // The payload of a delete must be valid, too, although only its identity counts.
  const tuple = checkTuple(`${field}.tuple`, update.tuple, shard);
  if (update.op === OP_INSERT) return { op: 'insert', tuple };
  const { namespace, objectId, relation, subject } = tuple;
  return { op: 'delete', tuple: { namespace, objectId, relation, subject } };
}

/** Checks a tuple that may be written to `shard`. Errors: those of `checkUpdates`; messages begin with `at`. */
export function checkTuple(at: string, tuple: RawTuple, shard: ShardKey): RelationTuple {
  checkScope(at, tuple, shard);
  checkNamespace(`${at}.namespace`, tuple.namespace);
  if (tuple.namespace === SEAT_NAMESPACE) {
    throw new AppError<AuthzReason>(
      'NAMESPACE_RESERVED',
      `${at}.namespace: tuples of the seat namespace are written by AssignSeat and RevokeSeat only`,
      { field: `${at}.namespace` },
    );
  }
  checkObjectId(`${at}.object_id`, tuple.objectId);
  checkRelation(`${at}.relation`, tuple.relation);
  return {
    namespace: tuple.namespace,
    objectId: tuple.objectId,
    relation: tuple.relation,
    subject: checkSubject(`${at}.subject`, tuple.subject?.kind),
    ...checkPayload(at, tuple),
  };
}

function checkScope(at: string, tuple: RawTuple, shard: ShardKey): void {
  if (tuple.projectId !== '' && tuple.projectId !== shard.projectId) {
    throw fieldError(`${at}.project_id`, "must be empty or equal the request's");
  }
  if (tuple.tenantId !== '' && tuple.tenantId !== shard.tenantId) {
    throw fieldError(`${at}.tenant_id`, "must be empty or equal the request's");
  }
}

/** Checks a subject of a tuple; messages begin with `field`. Errors: FIELD_*. */
export function checkSubject(field: string, kind: RawSubject | undefined): Subject {
  switch (kind?.case) {
    case 'userId':
      checkUserId(`${field}.user_id`, kind.value);
      return { kind: 'user', userId: kind.value };
    case 'set': {
      const { namespace, objectId, relation } = kind.value;
      checkNamespace(`${field}.set.namespace`, namespace);
      checkObjectId(`${field}.set.object_id`, objectId);
      if (relation !== '') checkRelation(`${field}.set.relation`, relation);
      return { kind: 'set', namespace, objectId, relation };
    }
    case 'wildcard':
      if (!kind.value) throw fieldError(`${field}.wildcard`, 'must be true where it is set');
      return { kind: 'wildcard' };
    case 'wildcardOf':
      checkNamespace(`${field}.wildcard_of`, kind.value);
      return { kind: 'wildcardOf', namespace: kind.value };
    default:
      throw requiredError(field);
  }
}

function checkPayload(at: string, tuple: RawTuple): TuplePayload {
  const expiresAtUs =
    tuple.expiresAt === undefined ? undefined : microseconds(`${at}.expires_at`, tuple.expiresAt);
  const conditionName = tuple.conditionName === '' ? undefined : tuple.conditionName;
  if (conditionName !== undefined) checkConditionName(`${at}.condition_name`, conditionName);
  const conditionParams =
    tuple.conditionParams === undefined
      ? undefined
      : checkParameters(`${at}.condition_params`, tuple.conditionParams);
  if (conditionParams !== undefined && conditionName === undefined) {
    throw fieldError(`${at}.condition_params`, 'needs a condition_name');
  }
  return { expiresAtUs, conditionName, conditionParams };
}

function checkParameters(field: string, parameters: JsonObject): string {
  checkJson(field, parameters);
  const text = canonicalJson(parameters);
  if (Buffer.byteLength(text) > CONDITION_PARAMS_BYTES_MAX) {
    throw fieldError(field, `must have at most ${CONDITION_PARAMS_BYTES_MAX} bytes as JSON`);
  }
  return text;
}

/**
 * Converts a timestamp to microseconds since the epoch. Finer fractions are cut off, so that nothing lives longer than
 * requested. Errors: FIELD_INVALID.
 */
export function microseconds(field: string, { seconds, nanos }: RawTimestamp): bigint {
  if (!isTimestamp(seconds, nanos))
    throw fieldError(field, 'must lie between the years 0001 and 9999');
  return seconds * 1_000_000n + BigInt(Math.floor(nanos / 1000));
}
