import { fieldError } from '../model/reasons.ts';
import { WILDCARD_NODE } from '../model/tuple-reader.ts';
import { utf8Text } from '../shared/text/utf8.ts';
import type { EdgeWriter, IndexParts } from './edge-writer.ts';
import { isRecord } from './entity-lookup.ts';
import { GROUP_ROWS, readAhead } from './row-read-ahead.ts';
import type { NameTable } from './tables/name-table.ts';
import { NEVER_US } from './tables/qualifier-store.ts';
import { hashBytes, loadBytes, mustFit } from './tables/text-scratch.ts';
import { ROW_BOUNDS } from './tuple-row.ts';
import type { RowBytes } from './tuple-row.ts';

// Positions of the columns' starts in the bounds of a row; the end follows.
const NAMESPACE = 0;
const OBJECT_ID = 2;
const RELATION = 4;
const SUBJECT_NAMESPACE = 6;
const SUBJECT_ID = 8;
const SUBJECT_RELATION = 10;
const EXPIRES = 12;
const CONDITION = 14;
const PARAMS = 16;

const NO_BYTES = new Uint8Array(0);
const ASTERISK = 42;
/** Bytes for a copy of a name and its length; names are at most 64 bytes, longer ones are looked up. */
const NAME_COPY = 128;
const NO_COPY = 255;

/** Numbers of a row at work. */
const FIELDS = 6;
const OBJECT_AT = 4;
const SUBJECT_AT = 5;
/** Instead of a position among the ids that are looked up. */
const NONE = 0xffff_ffff;

/**
 * Turns rows of bytes into edges, a group at a time: first the names of all its rows, then all their ids side by side (`readAhead`),
 * then one row after the other. In key order a row's object, and often its relation and its subject's kind, are those
 * of the row before: strings equal to the ones just used are not looked up again. Allocates for qualified rows only.
 */
export class RowLoader {
  readonly #writer: EdgeWriter;
  readonly #parts: IndexParts;
  // Names that the row before used; valid while nothing else changed the index, and no name was dropped.
  #revision = -1;
  readonly #copies = new Uint8Array(6 * NAME_COPY).fill(NO_COPY);
  readonly #near = new Uint32Array(PARAMS);
  // Names of each row of the current group, and the positions of its ids among those looked up; NONE if it has none.
  readonly #fields = new Uint32Array(FIELDS * GROUP_ROWS);
  readonly #hashes = new Int32Array(2 * GROUP_ROWS);
  readonly #candidates = new Uint32Array(2 * GROUP_ROWS);
  #entity = 0;

  constructor(writer: EdgeWriter, parts: IndexParts) {
    this.#writer = writer;
    this.#parts = parts;
  }

  /** Inserts every row, or replaces what its tuple carries. Errors: FIELD_INVALID, SHARD_TOO_LARGE. */
  load(input: RowBytes): void {
    const { names } = this.#parts;
    if (this.#revision !== this.#writer.revision) this.#forget();
    for (let from = 0; from < input.rows;) {
      const to = Math.min(input.rows, from + GROUP_ROWS);
      const count = this.#resolve(input, from, to);
      readAhead(this.#parts, this.#hashes, this.#candidates, count);
      const { dropped } = names;
      const first = from;
      // A row may end what another one carried, and with it a name whose id a later row of the group has: that one begins anew.
      while (from < to && names.dropped === dropped) {
        this.#insert(input, from, (from - first) * FIELDS);
        from += 1;
      }
      if (names.dropped !== dropped) this.#forget();
    }
    this.#revision = this.#writer.revision;
  }

  /** Finds the names of the rows [from, to), and hashes their ids. Returns how many ids are to be looked up. */
  #resolve(input: RowBytes, from: number, to: number): number {
    const { bytes, bounds } = input;
    const fields = this.#fields;
    const hashes = this.#hashes;
    let count = 0;
    for (let row = from, field = 0; row < to; row++, field += FIELDS) {
      const at = row * ROW_BOUNDS;
      const isWild = isPublicWildcardAt(bytes, bounds, at);
      const namespace = this.#internNear(bytes, bounds, at, NAMESPACE);
      fields[field] = namespace;
      fields[field + 1] = this.#internNear(bytes, bounds, at, RELATION);
      const isSame = row > from && fields[field - FIELDS] === namespace && isSameId(input, at);
      fields[field + OBJECT_AT] = isSame ? NONE : count;
      if (!isSame) hashes[count++] = hashColumn(bytes, bounds, at + OBJECT_ID, namespace);
      fields[field + SUBJECT_AT] = isWild ? NONE : count;
      if (isWild) continue;
      const kind = this.#internNear(bytes, bounds, at, SUBJECT_NAMESPACE);
      fields[field + 2] = kind;
      fields[field + 3] = this.#internNear(bytes, bounds, at, SUBJECT_RELATION);
      hashes[count++] = hashColumn(bytes, bounds, at + SUBJECT_ID, kind);
    }
    return count;
  }

  #insert(input: RowBytes, row: number, field: number): void {
    const fields = this.#fields;
    const writer = this.#writer;
    const at = row * ROW_BOUNDS;
    const namespace = fields[field] as number;
    const objectAt = fields[field + OBJECT_AT] as number;
    if (objectAt !== NONE)
      this.#entity = this.#entityOf(input, at + OBJECT_ID, namespace, objectAt);
    const node = writer.nodeOfEntity(this.#entity, namespace, fields[field + 1] as number);
    const subjectAt = fields[field + SUBJECT_AT] as number;
    let subject = WILDCARD_NODE;
    if (subjectAt !== NONE) {
      const kind = fields[field + 2] as number;
      const entity = this.#entityOf(input, at + SUBJECT_ID, kind, subjectAt);
      subject = writer.nodeOfEntity(entity, kind, fields[field + 3] as number);
    }
    const { bounds } = input;
    if ((bounds[at + EXPIRES] as number) < 0 && (bounds[at + CONDITION] as number) < 0) {
      writer.insertEdge(node, subject, false, 0, 0, 0, NO_BYTES);
    } else {
      insertQualified(writer, this.#parts.names, input, at, node, subject);
    }
  }

  /** The entity of an id column under a namespace, made if need be; `position` is that of its hash. */
  #entityOf(input: RowBytes, column: number, namespace: number, position: number): number {
    const { bytes } = input;
    const start = input.bounds[column] as number;
    const end = input.bounds[column + 1] as number;
    const candidate = this.#candidates[position] as number;
    const { pages } = this.#parts.dictionary.records;
    if (candidate !== 0 && isRecord(pages, candidate, namespace, bytes, start, end)) {
      return candidate;
    }
    const length = mustFit(loadBytes(bytes, start, end));
    return this.#writer.entityOfScratch(namespace, length, this.#hashes[position] as number);
  }

  /** Id of a name column: mostly the one that it had in the row before. */
  #internNear(bytes: Uint8Array, bounds: Int32Array, at: number, column: number): number {
    const start = bounds[at + column] as number;
    const end = bounds[at + column + 1] as number;
    const length = end - start;
    const copyAt = (column >>> 1) * NAME_COPY;
    const copies = this.#copies;
    if (copies[copyAt] === length && length < NAME_COPY) {
      let i = 0;
      while (i < length && copies[copyAt + 1 + i] === bytes[start + i]) i += 1;
      if (i === length) return this.#near[column] as number;
    }
    const id = this.#parts.names.internBytes(bytes, start, end);
    this.#near[column] = id;
    copies[copyAt] = length < NAME_COPY ? length : NO_COPY;
    // Relations alternate from row to row: a view for `set` would cost more than the loop.
    if (length < NAME_COPY) {
      for (let i = 0; i < length; i++) copies[copyAt + 1 + i] = bytes[start + i] as number;
    }
    return id;
  }

  #forget(): void {
    this.#copies.fill(NO_COPY);
  }
}

/** Whether a row's object id is that of the row before. */
function isSameId({ bytes, bounds }: RowBytes, at: number): boolean {
  const start = bounds[at + OBJECT_ID] as number;
  const length = (bounds[at + OBJECT_ID + 1] as number) - start;
  const before = bounds[at + OBJECT_ID - ROW_BOUNDS] as number;
  if ((bounds[at + OBJECT_ID + 1 - ROW_BOUNDS] as number) - before !== length) return false;
  if (before === start) return true;
  for (let i = length - 1; i >= 0; i--) if (bytes[before + i] !== bytes[start + i]) return false;
  return true;
}

function hashColumn(
  bytes: Uint8Array,
  bounds: Int32Array,
  column: number,
  namespace: number,
): number {
  return hashBytes(bytes, bounds[column] as number, bounds[column + 1] as number, namespace);
}

function insertQualified(
  writer: EdgeWriter,
  names: NameTable,
  input: RowBytes,
  at: number,
  node: number,
  subject: number,
): void {
  const { bytes, bounds } = input;
  const expires = expiryOf(input, at + EXPIRES);
  const condition =
    (bounds[at + CONDITION] as number) < 0 ? 0 : internColumn(names, bytes, bounds, at + CONDITION);
  if (expires === NEVER_US && condition === 0) {
    writer.insertEdge(node, subject, false, 0, 0, 0, NO_BYTES);
    return;
  }
  const paramsStart = bounds[at + PARAMS] as number;
  const params = paramsStart < 0 ? NO_BYTES : bytes.subarray(paramsStart, bounds[at + PARAMS + 1]);
  const low = Number(BigInt.asUintN(32, expires));
  const high = Number(BigInt.asUintN(32, expires >> 32n));
  writer.insertEdge(node, subject, true, low, high, condition, params);
}

function expiryOf(input: RowBytes, at: number): bigint {
  const start = input.bounds[at] as number;
  const end = input.bounds[at + 1] as number;
  if (start < 0) return NEVER_US;
  if (input.expiryFormat === 'text') {
    const text = utf8Text(input.bytes, start, end);
    if (!/^-?\d{1,19}$/.test(text)) throw fieldError('expires_at_us', 'not an int8');
    return BigInt(text);
  }
  if (end - start !== 8) throw fieldError('expires_at_us', 'not a binary int8');
  const { buffer, byteOffset } = input.bytes;
  return new DataView(buffer, byteOffset + start, 8).getBigInt64(0);
}

function internColumn(names: NameTable, bytes: Uint8Array, bounds: Int32Array, at: number): number {
  return names.internBytes(bytes, bounds[at] as number, bounds[at + 1] as number);
}

/** Whether the subject of the row at `at` is the public wildcard: a typed one has an id, and is an entity as others are. */
export function isPublicWildcardAt(bytes: Uint8Array, bounds: Int32Array, at: number): boolean {
  const start = bounds[at + SUBJECT_NAMESPACE] as number;
  if ((bounds[at + SUBJECT_NAMESPACE + 1] as number) !== start + 1) return false;
  return bytes[start] === ASTERISK && bounds[at + SUBJECT_ID] === bounds[at + SUBJECT_ID + 1];
}
