import {
  type DescField,
  type DescMessage,
  fromBinary,
  fromJsonString,
  type Message,
  ScalarType,
} from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import {
  type BatchCheckRequest,
  BatchCheckRequestSchema,
  type CheckRequest,
  CheckRequestSchema,
  type ListObjectsRequest,
  ListObjectsRequestSchema,
  type WriteRelationTuplesRequest,
  WriteRelationTuplesRequestSchema,
} from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { canonicalJson } from '../../src/model/canonical-json.ts';
import type { Method } from './random-fields.ts';

export const SCHEMAS = {
  check: CheckRequestSchema,
  batchCheck: BatchCheckRequestSchema,
  listObjects: ListObjectsRequestSchema,
  write: WriteRelationTuplesRequestSchema,
} as const;

export type Request =
  | CheckRequest
  | BatchCheckRequest
  | ListObjectsRequest
  | WriteRelationTuplesRequest;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** What the library makes of a body; null where it refuses it. */
export function libraryReading(method: Method, isJson: boolean, bytes: Uint8Array): Request | null {
  const desc: DescMessage = SCHEMAS[method];
  try {
    const message: Message = isJson
      ? fromJsonString(desc, utf8.decode(bytes))
      : fromBinary(desc, new Uint8Array(bytes));
    return message as Request;
  } catch {
    return null;
  }
}

export type Scope = { projectId: string; tenantId: string; token: string };

export function scopeOf(request: Request): Scope {
  const { projectId, tenantId } = request;
  const token = 'atLeastConsistencyToken' in request ? request.atLeastConsistencyToken : '';
  return { projectId, tenantId, token };
}

/** Namespace, object, relation and user of each question; one that lists has no object. */
export function itemsOf(request: Request): string[][] {
  if ('items' in request) {
    return request.items.map((item) => [
      item.namespace,
      item.objectId,
      item.relation,
      item.subjectUserId,
    ]);
  }
  if (!('subjectUserId' in request)) return [];
  const object = 'objectId' in request ? request.objectId : '';
  return [[request.namespace, object, request.relation, request.subjectUserId]];
}

/** The canonical text of a Check's context; null where it has none. */
export function contextOf(request: Request): string | null {
  if (!('context' in request) || request.context === undefined) return null;
  return canonicalJson(request.context);
}

/** Whether a value of JSON is an object or holds one. */
export function holdsObject(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(holdsObject);
  return typeof value === 'object' && value !== null;
}

/** Whether a request has what no scanner may take: unknown fields, or the userset of a Check. */
export function hasMore(request: Request): boolean {
  if (request.$unknown !== undefined) return true;
  if ('items' in request) return request.items.some(({ $unknown }) => $unknown !== undefined);
  return 'subjectSet' in request && request.subjectSet !== undefined;
}

/** The updates of a write as scanWrite shows them. What it never reads is named where it is there. */
export function updatesOf({ updates }: WriteRelationTuplesRequest): unknown {
  return updates.map(({ op, tuple }) => {
    if (tuple === undefined) return { op, tuple };
    const { projectId, tenantId, namespace, objectId, relation, subject } = tuple;
    const kind = subject?.kind;
    const set = kind?.case === 'set' ? kind.value : undefined;
    const value =
      set === undefined
        ? kind?.value
        : { namespace: set.namespace, objectId: set.objectId, relation: set.relation };
    const plain = {
      projectId,
      tenantId,
      namespace,
      objectId,
      relation,
      subject: subject && { kind: { case: kind?.case, value } },
    };
    const { conditionName, conditionParams, expiresAt } = tuple;
    const isPlain =
      conditionName === '' && conditionParams === undefined && expiresAt === undefined;
    return { op, tuple: isPlain ? plain : { ...plain, conditionName, conditionParams, expiresAt } };
  });
}

/**
 * Whether a message within another one runs past its own end. The library goes on where its last field ended; no encoder writes such.
 * `bytes` are a message that the library takes.
 */
export function runsOn(desc: DescMessage, bytes: Uint8Array): boolean {
  const fields = new Map(desc.fields.map((field) => [field.number, field]));
  return hasLongField(bytes, (number, reader) => {
    const field = fields.get(number);
    if (field === undefined) return undefined;
    if (field.fieldKind === 'map') return isLongEntry(field, reader.bytes());
    return readField(field.message, field.scalar, reader);
  });
}

/** Of a map with texts as keys. */
function isLongEntry({ message, scalar }: DescField, bytes: Uint8Array): boolean {
  return hasLongField(bytes, (number, reader) => {
    if (number === 1) return readField(undefined, ScalarType.STRING, reader);
    return number === 2 ? readField(message, scalar, reader) : undefined;
  });
}

/** `read` reads a field, and says whether it runs on within; undefined: it is not known. */
function hasLongField(
  bytes: Uint8Array,
  read: (number: number, reader: BinaryReader) => boolean | undefined,
): boolean {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [number, wireType] = reader.tag();
      const isLong = read(number, reader);
      if (isLong === true) return true;
      if (isLong === undefined) reader.skip(wireType, number);
    }
    return false;
  } catch {
    return true;
  }
}

/** By the type that it has, whatever the wire type. */
function readField(
  message: DescMessage | undefined,
  scalar: ScalarType | undefined,
  reader: BinaryReader,
): boolean {
  if (message !== undefined) return runsOn(message, reader.bytes());
  if (scalar === ScalarType.STRING) reader.bytes();
  else if (scalar === ScalarType.DOUBLE) reader.double();
  else reader.int64();
  return false;
}
