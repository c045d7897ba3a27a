import { toBinary, toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { RelationTupleSchema } from '../../gen/workspace/v1/authz_service_pb.ts';
import {
  type RelationTuple,
  type ShardKey,
  subjectFromColumns,
  WILDCARD_NAMESPACE,
} from '../../model/relation-tuple.ts';
import { timestampFromMicroseconds, tupleToProto } from '../../requests/tuple-to-proto.ts';
import type { ExportedPart } from '../../services/bulk/tuple-export.ts';

/*
 * Pages of stored tuples as they leave the process. The columns are UTF-8 already, so that what callers get is put together
 * of bytes; a message for each tuple costs ten times as much.
 */

/** Numbers that bound the columns of one row of a page. */
const ROW_BOUNDS = 20;
const EXPIRES = 6;
const CONDITION_NAME = 7;
const CONDITION_PARAMS = 8;
const WRITTEN_AT = 9;

/** Fields of workspace.v1.RelationTuple and Subject: number << 3 | wire type. */
const TAG_TUPLES = 0x0a;
const TAG_PROJECT = 0x0a;
const TAG_NAMESPACE = 0x12;
const TAG_OBJECT = 0x1a;
const TAG_RELATION = 0x22;
const TAG_SUBJECT = 0x2a;
const TAG_TENANT = 0x32;
const TAG_CONDITION = 0x42;
const TAG_USER = 0x0a;
const TAG_SET = 0x12;
const TAG_WILDCARD = 0x18;
const TAG_WILDCARD_OF = 0x22;
/** "*", the namespace of wildcards. */
const STAR = 0x2a;

type Page = ExportedPart['page'];

/** Rows as the field `tuples` of StreamTuplesResponse, without the first tag. undefined if none. O(bytes). */
export function tuplesToBinary(shard: ShardKey, page: Page): Uint8Array | undefined {
  if (page.rows === 0) return undefined;
  const project = Buffer.from(shard.projectId);
  const tenant = Buffer.from(shard.tenantId);
  // Each column takes its bytes, a tag and a length; a row some more around its subject.
  const perRow = project.length + tenant.length + 64;
  const writer = new Writer(page.bytes.length + page.rows * perRow);
  for (let i = 0; i < page.rows; i++) {
    const at = i * ROW_BOUNDS;
    if ((page.bounds[at + 2 * CONDITION_PARAMS] as number) >= 0 || hasExpiry(page, at)) {
      const message = toBinary(RelationTupleSchema, tupleToProto(shard, tupleOfRow(page, i)));
      writer.field(TAG_TUPLES, message, 0, message.length);
    } else writeTuple(writer, page, at, project, tenant);
  }
  return writer.bytes.subarray(1);
}

function writeTuple(writer: Writer, page: Page, at: number, project: Buffer, tenant: Buffer): void {
  const { bytes, bounds } = page;
  const size = (column: number): number =>
    (bounds[at + 2 * column + 1] as number) - (bounds[at + 2 * column] as number);
  const [namespace, id, relation] = [size(3), size(4), size(5)];
  const isUser = namespace === 0;
  const isWildcard = !isUser && bytes[bounds[at + 6] as number] === STAR;
  const set = sized(namespace) + sized(id) + sized(relation);
  // The id of a typed wildcard is the namespace of which it is every object; the public one has none.
  const isPlain = isUser || (isWildcard && id > 0);
  const subject = isPlain ? sized(id) : isWildcard ? 2 : 1 + lengthOf(set) + set;
  const condition = size(CONDITION_NAME);
  const length =
    sized(project.length) +
    sized(size(0)) +
    sized(size(1)) +
    sized(size(2)) +
    1 +
    lengthOf(subject) +
    subject +
    sized(tenant.length) +
    sized(condition);
  writer.tag(TAG_TUPLES, length);
  writer.field(TAG_PROJECT, project, 0, project.length);
  const column = (tag: number, index: number): void =>
    writer.field(
      tag,
      bytes,
      bounds[at + 2 * index] as number,
      bounds[at + 2 * index + 1] as number,
    );
  column(TAG_NAMESPACE, 0);
  column(TAG_OBJECT, 1);
  column(TAG_RELATION, 2);
  writer.tag(TAG_SUBJECT, subject);
  if (isUser) column(TAG_USER, 4);
  else if (isPlain) column(TAG_WILDCARD_OF, 4);
  else if (isWildcard) writer.tag(TAG_WILDCARD, 1);
  else {
    writer.tag(TAG_SET, set);
    column(0x0a, 3);
    column(0x12, 4);
    column(0x1a, 5);
  }
  writer.field(TAG_TENANT, tenant, 0, tenant.length);
  column(TAG_CONDITION, CONDITION_NAME);
}

/** Bytes of a field of text with its tag and length; none where it is empty. */
function sized(size: number): number {
  return size === 0 ? 0 : 1 + lengthOf(size) + size;
}

/** Bytes of a length. */
function lengthOf(size: number): number {
  if (size < 128) return 1;
  return size < 16_384 ? 2 : size < 2_097_152 ? 3 : 4;
}

/** Bytes that grow. */
class Writer {
  #bytes: Buffer;
  #size = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  /** A tag of one byte and a number behind it. */
  tag(tag: number, value: number): void {
    this.#reserve(8);
    this.#bytes[this.#size++] = tag;
    let rest = value;
    while (rest > 127) {
      this.#bytes[this.#size++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#size++] = rest;
  }

  /** A field of bytes; nothing if they are empty. */
  field(tag: number, source: Uint8Array, start: number, end: number): void {
    const size = end - start;
    if (size <= 0) return;
    this.#reserve(size + 8);
    this.tag(tag, size);
    const to = this.#bytes;
    let at = this.#size;
    // Names are short: a call to copy costs more than the loop.
    if (size <= 32) for (let i = start; i < end; i++) to[at++] = source[i] as number;
    else to.set(source.subarray(start, end), at);
    this.#size += size;
  }

  #reserve(size: number): void {
    if (this.#size + size <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(this.#bytes.length * 2 + size);
    grown.set(this.bytes);
    this.#bytes = grown;
  }
}

/** Row i of a page as the domain has it. */
export function tupleOfRow(page: Page, i: number): RelationTuple {
  const { bytes, bounds } = page;
  const at = i * ROW_BOUNDS;
  const text = (column: number): string =>
    bytes.toString('utf8', bounds[at + 2 * column], bounds[at + 2 * column + 1]);
  const isSet = (column: number): boolean => (bounds[at + 2 * column] as number) >= 0;
  return {
    namespace: text(0),
    objectId: text(1),
    relation: text(2),
    subject: subjectFromColumns(text(3), text(4), text(5)),
    ...(hasExpiry(page, at) ? { expiresAtUs: expiryOf(page, at) } : {}),
    ...(isSet(CONDITION_NAME) ? { conditionName: text(CONDITION_NAME) } : {}),
    ...(isSet(CONDITION_PARAMS) ? { conditionParams: text(CONDITION_PARAMS) } : {}),
  };
}

/**
 * Rows as lines of JSON, `{"tuple":{…}}`, each a RelationTuple without its project, and without its tenant unless `hasTenant`: so that
 * they can be imported elsewhere. With `hasWrittenAt` also when each was written, where that is known. O(bytes).
 */
export function tuplesToLines(
  shard: ShardKey,
  page: Page,
  { hasTenant, hasWrittenAt }: { readonly hasTenant: boolean; readonly hasWrittenAt: boolean },
): string {
  const tenant = hasTenant ? `,"tenant_id":${JSON.stringify(shard.tenantId)}` : '';
  let lines = '';
  for (let i = 0; i < page.rows; i++) {
    const writtenAt = hasWrittenAt ? writtenAtJson(page, i) : '';
    lines += `{"tuple":${tupleToJson(page, i)}${tenant}}${writtenAt}}\n`;
  }
  return lines;
}

/** '' where it is not known. */
function writtenAtJson(page: Page, i: number): string {
  const microseconds = writtenAtOf(page, i);
  if (microseconds === undefined) return '';
  const text = toJson(TimestampSchema, timestampFromMicroseconds(microseconds));
  return `,"written_at":${JSON.stringify(text)}`;
}

/** When row i of a page was written, in microseconds since the epoch; undefined: it is not known. */
export function writtenAtOf({ bytes, bounds }: Page, i: number): bigint | undefined {
  const start = bounds[i * ROW_BOUNDS + 2 * WRITTEN_AT] as number;
  return start < 0 ? undefined : bytes.readBigInt64BE(start);
}

/** The open object: its last brace is the caller's to add. */
function tupleToJson(page: Page, i: number): string {
  const { bytes, bounds } = page;
  const at = i * ROW_BOUNDS;
  const raw = (column: number): string =>
    bytes.toString('utf8', bounds[at + 2 * column], bounds[at + 2 * column + 1]);
  const text = (column: number): string => JSON.stringify(raw(column));
  const namespace = raw(3);
  // Names hold nothing that JSON escapes.
  let json = `{"namespace":"${raw(0)}","object_id":${text(1)},"relation":"${raw(2)}","subject":`;
  if (namespace === '') json += `{"user_id":${text(4)}}`;
  else if (namespace === WILDCARD_NAMESPACE) {
    json += raw(4) === '' ? '{"wildcard":true}' : `{"wildcard_of":"${raw(4)}"}`;
  } else {
    json += `{"set":{"namespace":"${namespace}","object_id":${text(4)},"relation":"${raw(5)}"}}`;
  }
  if (hasExpiry(page, at)) {
    const expiry = toJson(TimestampSchema, timestampFromMicroseconds(expiryOf(page, at)));
    json += `,"expires_at":${JSON.stringify(expiry)}`;
  }
  if ((bounds[at + 2 * CONDITION_NAME] as number) >= 0) {
    json += `,"condition_name":${text(CONDITION_NAME)}`;
  }
  // Stored as JSON text.
  if ((bounds[at + 2 * CONDITION_PARAMS] as number) >= 0) {
    json += `,"condition_params":${raw(CONDITION_PARAMS)}`;
  }
  return json;
}

function hasExpiry(page: Page, at: number): boolean {
  return (page.bounds[at + 2 * EXPIRES] as number) >= 0;
}

function expiryOf(page: Page, at: number): bigint {
  return page.bytes.readBigInt64BE(page.bounds[at + 2 * EXPIRES]);
}
