import { fieldError } from '../model/field-error.ts';
import { WILDCARD_NODE } from '../model/tuple-reader.ts';
import type { Dictionary } from './dictionary.ts';
import type { EdgeWriter } from './edge-writer.ts';
import type { NameTable } from './name-table.ts';
import { NEVER_US } from './qualifier-store.ts';
import { loadBytes, mustFit } from './text-scratch.ts';
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
/** Room for a copy of a name and its length; names are at most 64 bytes, longer ones are looked up. */
const NAME_COPY = 128;
const NO_COPY = 255;

/**
 * Turns rows of bytes into edges. In key order a row's object, and often its relation and its subject's kind, are those
 * of the row before: strings equal to the ones just used are not looked up again. Allocates for qualified rows only.
 */
export class RowLoader {
  readonly #writer: EdgeWriter;
  readonly #dictionary: Dictionary;
  readonly #names: NameTable;
  // What the row before used; valid while nothing else changed the index.
  #revision = -1;
  readonly #copies = new Uint8Array(6 * NAME_COPY).fill(NO_COPY);
  #namespace = 0;
  #entity = 0;
  #relation = 0;
  #node = 0;
  #subjectNamespace = 0;
  #subjectRelation = 0;

  constructor(writer: EdgeWriter, dictionary: Dictionary, names: NameTable) {
    this.#writer = writer;
    this.#dictionary = dictionary;
    this.#names = names;
  }

  /** Inserts every row, or replaces what its tuple carries. Errors: FIELD_INVALID, SHARD_TOO_LARGE. */
  load(input: RowBytes): void {
    const { bytes, bounds, rows } = input;
    if (this.#revision !== this.#writer.revision) this.#forget();
    for (let at = 0; at < rows * ROW_BOUNDS; at += ROW_BOUNDS) {
      const node = this.#nodeOf(bytes, bounds, at);
      const subject = this.#subjectOf(bytes, bounds, at);
      if ((bounds[at + EXPIRES] as number) < 0 && (bounds[at + CONDITION] as number) < 0) {
        this.#writer.insertEdge(node, subject, false, 0, 0, 0, NO_BYTES);
      } else {
        insertQualified(this.#writer, this.#names, input, at, node, subject);
      }
    }
    this.#revision = this.#writer.revision;
  }

  #nodeOf(bytes: Uint8Array, bounds: Int32Array, at: number): number {
    const namespace = this.#internNear(bytes, bounds, at, NAMESPACE, this.#namespace);
    const relation = this.#internNear(bytes, bounds, at, RELATION, this.#relation);
    const start = bounds[at + OBJECT_ID] as number;
    const length = mustFit(loadBytes(bytes, start, bounds[at + OBJECT_ID + 1] as number));
    const same = this.#entity !== 0 && this.#dictionary.matches(this.#entity, namespace, length);
    if (same && relation === this.#relation) return this.#node;
    if (!same) this.#entity = this.#writer.entityOfScratch(namespace, length);
    this.#namespace = namespace;
    this.#relation = relation;
    this.#node = this.#writer.nodeOfEntity(this.#entity, namespace, relation);
    return this.#node;
  }

  #subjectOf(bytes: Uint8Array, bounds: Int32Array, at: number): number {
    if (isWildcard(bytes, bounds, at + SUBJECT_NAMESPACE)) return WILDCARD_NODE;
    const near = this.#subjectNamespace;
    const namespace = this.#internNear(bytes, bounds, at, SUBJECT_NAMESPACE, near);
    const relation = this.#internNear(bytes, bounds, at, SUBJECT_RELATION, this.#subjectRelation);
    this.#subjectNamespace = namespace;
    this.#subjectRelation = relation;
    const start = bounds[at + SUBJECT_ID] as number;
    const length = mustFit(loadBytes(bytes, start, bounds[at + SUBJECT_ID + 1] as number));
    const entity = this.#writer.entityOfScratch(namespace, length);
    return this.#writer.nodeOfEntity(entity, namespace, relation);
  }

  /** Id of a name column; `near` is the id that the column had in the row before. */
  #internNear(
    bytes: Uint8Array,
    bounds: Int32Array,
    at: number,
    column: number,
    near: number,
  ): number {
    const start = bounds[at + column] as number;
    const end = bounds[at + column + 1] as number;
    const length = end - start;
    const copyAt = (column >>> 1) * NAME_COPY;
    const copies = this.#copies;
    if (copies[copyAt] === length && length < NAME_COPY) {
      let i = 0;
      while (i < length && copies[copyAt + 1 + i] === bytes[start + i]) i += 1;
      if (i === length) return near;
    }
    const id = this.#names.internBytes(bytes, start, end);
    copies[copyAt] = length < NAME_COPY ? length : NO_COPY;
    // Relations alternate from row to row: a view for `set` would cost more than the loop.
    if (length < NAME_COPY) {
      for (let i = 0; i < length; i++) copies[copyAt + 1 + i] = bytes[start + i] as number;
    }
    return id;
  }

  #forget(): void {
    this.#copies.fill(NO_COPY);
    this.#namespace = 0;
    this.#entity = 0;
    this.#relation = 0;
    this.#node = 0;
    this.#subjectNamespace = 0;
    this.#subjectRelation = 0;
  }
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
    const text = Buffer.from(input.bytes.subarray(start, end)).toString('latin1');
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

function isWildcard(bytes: Uint8Array, bounds: Int32Array, at: number): boolean {
  const start = bounds[at] as number;
  return (bounds[at + 1] as number) === start + 1 && bytes[start] === ASTERISK;
}
