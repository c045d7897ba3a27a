import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { UpdateMode, WriteTuplesRequestSchema } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import { TupleUpdate_Op, type TupleUpdateSchema } from '../../gen/workspace/v1/authz_service_pb.ts';
import { ownNameOf } from '../../language/openfga/store-names.ts';
import type {
  OpenFgaStore,
  OpenFgaTupleFilter,
  OpenFgaTupleRow,
} from '../../services/openfga/openfga-stores.ts';
import { AppError } from '../../shared/app-error.ts';
import { mustAdmit } from '../callers/guarded-service.ts';
import { mustRule } from '../callers/method-rules.ts';
import { type DoorAnswer, type DoorCall, mustHandler, mustModel } from './door-call.ts';
import { DoorError, invalid } from './door-error.ts';
import {
  invalidPageToken,
  type DoorMembers,
  objectOf,
  objectsOf,
  pageSizeOf,
  textOf,
  valueOf,
} from './door-json.ts';
import { timeOf } from './store-calls.ts';
import { bareTupleOf, type DoorTupleKey, tupleKeyOf, tupleOfKey, userOf } from './tuple-keys.ts';

const READ_TUPLES = mustRule('/workspace.v1.AuthzService/ReadRelationTuples');
/** Equals their `max_tuples_per_write`. */
const UPDATES_MAX = 100;
const KEY_PARTS = 6;

/** POST /stores/:store/write. */
export async function write(call: DoorCall, store: OpenFgaStore): Promise<DoorAnswer> {
  const { body, parts } = call;
  const inserted = changesOf(body, 'writes', 'on_duplicate');
  const deleted = changesOf(body, 'deletes', 'on_missing');
  const keys = [...inserted.keys, ...deleted.keys];
  if (keys.length === 0) {
    const text = 'Invalid input. Make sure you provide at least one write, or at least one delete';
    throw new DoorError(400, 'invalid_write_input', text);
  }
  if (keys.length > UPDATES_MAX) {
    const text = `The number of write operations exceeds the allowed limit of ${UPDATES_MAX}`;
    throw new DoorError(400, 'exceeded_entity_limit', text);
  }
  const model = await mustModel(call, store, textOf(body, 'authorization_model_id'));
  refuseDuplicates(keys);
  const updates: MessageInitShape<typeof TupleUpdateSchema>[] = [
    ...inserted.keys.map((key) => ({
      op: TupleUpdate_Op.INSERT,
      tuple: tupleOfKey(key, model.names),
    })),
    ...deleted.keys.map((key) => ({ op: TupleUpdate_Op.DELETE, tuple: bareTupleOf(key) })),
  ];
  const insertMode = inserted.isIgnored ? UpdateMode.ABSENT_OR_IDENTICAL : UpdateMode.ABSENT;
  const deleteMode = deleted.isIgnored ? UpdateMode.UNSPECIFIED : UpdateMode.PRESENT;
  const modes = [...inserted.keys.map(() => insertMode), ...deleted.keys.map(() => deleteMode)];
  const { projectId } = store;
  const request = create(WriteTuplesRequestSchema, {
    projectId,
    updates,
    modes,
    modelVersion: model.version,
  });
  const handler = mustHandler(parts.tuple.writeTuples);
  try {
    await handler(request, call.contextOf('Write'));
  } catch (error) {
    throw refusedWrite(error) ?? error;
  }
  return { status: 200, body: {} };
}

/** POST /stores/:store/read. */
export async function read(call: DoorCall, store: OpenFgaStore): Promise<DoorAnswer> {
  const { body, parts, credential } = call;
  const target = { projectId: store.projectId, tenantId: '' };
  mustAdmit(credential, READ_TUPLES, target, parts.onOutOfScope);
  const size = pageSizeOf(valueOf(body, 'page_size'));
  const filter = filterOf(objectOf(body, 'tuple_key'), store.projectId);
  const scope = `tuples\n${store.id}\n${JSON.stringify(filter)}`;
  const token = textOf(body, 'continuation_token');
  const after = token === '' ? null : keyOfToken(parts.stores.cursors.decode(scope, token));
  const found = await parts.stores.tuples(filter, after, size + 1);
  const rows = found.slice(0, size);
  const last = rows.at(-1);
  const hasMore = found.length > size && last !== undefined;
  const next = hasMore ? parts.stores.cursors.encode(scope, partsOf(last)) : '';
  const nameOf = await call.names.storeNames(store, rows.flatMap(namesOf));
  const tuples = rows.map((row) => tupleJson(row, nameOf));
  return { status: 200, body: { tuples, continuation_token: next } };
}

/** The keys of one side of a write, and whether what is so already is ignored. */
function changesOf(
  body: DoorMembers,
  side: 'writes' | 'deletes',
  option: 'on_duplicate' | 'on_missing',
): { readonly keys: readonly DoorTupleKey[]; readonly isIgnored: boolean } {
  const members = objectOf(body, side);
  if (members === undefined) return { keys: [], isIgnored: false };
  const message = side === 'writes' ? 'WriteRequestWrites' : 'WriteRequestDeletes';
  const keys = objectsOf(members, 'tuple_keys');
  if (keys.length === 0) {
    throw invalid(`invalid ${message}.TupleKeys: value must contain at least 1 item(s)`);
  }
  const asked = textOf(members, option);
  if (!['', 'error', 'ignore'].includes(asked)) throw invalid(`invalid ${option} option: ${asked}`);
  const keyName = side === 'writes' ? 'TupleKey' : 'TupleKeyWithoutCondition';
  return { keys: keys.map((one) => tupleKeyOf(one, keyName)), isIgnored: asked === 'ignore' };
}

function refuseDuplicates(keys: readonly DoorTupleKey[]): void {
  const seen = new Set<string>();
  for (const { user, relation, object } of keys) {
    const text = `user: '${user}', relation: '${relation}', object: '${object}'`;
    if (seen.has(text)) {
      const code = 'cannot_allow_duplicate_tuples_in_one_request';
      throw new DoorError(400, code, `duplicate tuple in write: ${text}`);
    }
    seen.add(text);
  }
}

/** The error of a write that adds a tuple which exists or deletes one which does not; undefined for other errors. */
function refusedWrite(error: unknown): DoorError | undefined {
  if (!(error instanceof AppError)) return undefined;
  const code = 'write_failed_due_to_invalid_input';
  switch (error.reason) {
    case 'TUPLE_EXISTS':
      return new DoorError(400, code, 'cannot write a tuple which already exists', error);
    case 'TUPLE_MISSING':
      return new DoorError(400, code, 'cannot delete a tuple which does not exist', error);
    case 'TUPLE_DIFFERS': {
      const text = 'a tuple of this key is stored under another condition';
      return new DoorError(409, code, text, error);
    }
    default:
      return undefined;
  }
}

function filterOf(key: DoorMembers | undefined, projectId: string): OpenFgaTupleFilter {
  const user = key === undefined ? '' : textOf(key, 'user');
  const relation = key === undefined ? '' : textOf(key, 'relation');
  const object = key === undefined ? '' : textOf(key, 'object');
  if (user === '' && relation === '' && object === '') {
    return { projectId, namespace: null, objectId: null, relation: null, subject: null };
  }
  const [, type = '', id = ''] = /^([^:#\s]+):([^:#\s]*)$/.exec(object) ?? [];
  if (type === '' || (id === '' && user === '')) {
    const text =
      'the object type field is required and both the object id and user cannot be empty';
    throw invalid(`the 'tuple_key' field was provided but ${text}`);
  }
  const found = user === '' ? undefined : userOf(user);
  if (user !== '' && found === undefined) throw invalid("invalid 'user' field format");
  return {
    projectId,
    namespace: ownNameOf(type),
    objectId: id === '' ? null : storable('object', id),
    relation: relation === '' ? null : ownNameOf(relation),
    subject: found === undefined ? null : storedSubject(found),
  };
}

function storedSubject(user: {
  readonly type: string;
  readonly id: string;
  readonly relation: string;
}): readonly [string, string, string] {
  const namespace = ownNameOf(user.type);
  if (user.id === '*') return ['*', namespace, ''];
  const relation = user.relation === '' ? '' : ownNameOf(user.relation);
  return [namespace, storable('user', user.id), relation];
}

/** PostgreSQL takes no NUL. */
function storable(field: string, text: string): string {
  if (text.includes('\u0000')) throw invalid(`invalid '${field}' field format`);
  return text;
}

function keyOfToken(fields: readonly unknown[] | undefined): readonly string[] {
  const isKey = fields?.length === KEY_PARTS && fields.every((one) => typeof one === 'string');
  if (fields === undefined || !isKey) throw invalidPageToken();
  return fields;
}

function partsOf(row: OpenFgaTupleRow): readonly string[] {
  const subject = [row.subject_namespace, row.subject_id, row.subject_relation];
  return [row.namespace, row.object_id, row.relation, ...subject];
}

/** Names of the row that a store calls otherwise. */
function namesOf(row: OpenFgaTupleRow): readonly string[] {
  const { namespace, relation, subject_relation: subjectRelation } = row;
  const subjectType = row.subject_namespace === '*' ? row.subject_id : row.subject_namespace;
  return [namespace, relation, subjectType, subjectRelation, row.condition_name ?? ''];
}

function tupleJson(row: OpenFgaTupleRow, storeNameOf: (own: string) => string | undefined): object {
  const nameOf = (own: string): string => storeNameOf(own) ?? own;
  const isWildcard = row.subject_namespace === '*';
  const type = nameOf(isWildcard ? row.subject_id : row.subject_namespace);
  const suffix = row.subject_relation === '' ? '' : `#${nameOf(row.subject_relation)}`;
  const name = row.condition_name ?? '';
  const context = JSON.parse(row.condition_params ?? '{}') as object;
  const key = {
    user: isWildcard ? `${type}:*` : `${type}:${row.subject_id}${suffix}`,
    relation: nameOf(row.relation),
    object: `${nameOf(row.namespace)}:${row.object_id}`,
    ...(name === '' ? {} : { condition: { name: nameOf(name), context } }),
  };
  return { key, timestamp: timeOf(Number(row.written_at_us ?? 0)) };
}
