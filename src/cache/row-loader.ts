import { WILDCARD_NODE } from '../model/tuple-reader.ts';
import { fieldError } from '../shared/app-error.ts';
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

/** What rows are loaded into: the inner methods of TupleIndex. */
export interface EdgeSink {
  entityOfScratch(namespace: number, length: number): number;
  nodeOfEntity(entity: number, namespace: number, relation: number): number;
  insertEdge(
    node: number,
    subject: number,
    qualified: boolean,
    expiresLow: number,
    expiresHigh: number,
    condition: number,
    params: Uint8Array,
  ): boolean;
}

/**
 * Inserts every row. In key order a row's object, and often its relation and its subject's kind, equal those of
 * the row before: equal bytes reuse the ids. Allocates only for qualified rows.
 */
export function loadRows(sink: EdgeSink, names: NameTable, input: RowBytes): void {
  const { bytes, bounds, rows } = input;
  let namespace = 0;
  let entity = 0;
  let relation = 0;
  let node = 0;
  let subjectNamespace = 0;
  let subjectRelation = 0;
  for (let row = 0; row < rows; row++) {
    const at = row * ROW_BOUNDS;
    const sameNamespace = row > 0 && sameAsBefore(bytes, bounds, at + NAMESPACE);
    if (!sameNamespace) namespace = internColumn(names, bytes, bounds, at + NAMESPACE);
    const sameEntity = sameNamespace && sameAsBefore(bytes, bounds, at + OBJECT_ID);
    if (!sameEntity) entity = internEntity(sink, namespace, bytes, bounds, at + OBJECT_ID);
    const sameRelation = row > 0 && sameAsBefore(bytes, bounds, at + RELATION);
    if (!sameRelation) relation = internColumn(names, bytes, bounds, at + RELATION);
    if (!sameEntity || !sameRelation) node = sink.nodeOfEntity(entity, namespace, relation);
    let subject = WILDCARD_NODE;
    if (!isWildcard(bytes, bounds, at + SUBJECT_NAMESPACE)) {
      if (row === 0 || !sameAsBefore(bytes, bounds, at + SUBJECT_NAMESPACE)) {
        subjectNamespace = internColumn(names, bytes, bounds, at + SUBJECT_NAMESPACE);
      }
      if (row === 0 || !sameAsBefore(bytes, bounds, at + SUBJECT_RELATION)) {
        subjectRelation = internColumn(names, bytes, bounds, at + SUBJECT_RELATION);
      }
      const subjectEntity = internEntity(sink, subjectNamespace, bytes, bounds, at + SUBJECT_ID);
      subject = sink.nodeOfEntity(subjectEntity, subjectNamespace, subjectRelation);
    } else if (row === 0 || !sameAsBefore(bytes, bounds, at + SUBJECT_RELATION)) {
      subjectRelation = internColumn(names, bytes, bounds, at + SUBJECT_RELATION);
    }
    const expires = bounds[at + EXPIRES] as number;
    const condition = bounds[at + CONDITION] as number;
    if (expires < 0 && condition < 0) {
      sink.insertEdge(node, subject, false, 0, 0, 0, NO_BYTES);
    } else {
      insertQualified(sink, names, input, at, node, subject);
    }
  }
}

function insertQualified(
  sink: EdgeSink,
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
    sink.insertEdge(node, subject, false, 0, 0, 0, NO_BYTES);
    return;
  }
  const paramsStart = bounds[at + PARAMS] as number;
  const params =
    paramsStart < 0 ? NO_BYTES : bytes.subarray(paramsStart, bounds[at + PARAMS + 1] as number);
  const low = Number(BigInt.asUintN(32, expires));
  const high = Number(BigInt.asUintN(32, expires >> 32n));
  sink.insertEdge(node, subject, true, low, high, condition, params);
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

function internEntity(
  sink: EdgeSink,
  namespace: number,
  bytes: Uint8Array,
  bounds: Int32Array,
  at: number,
): number {
  const length = mustFit(loadBytes(bytes, bounds[at] as number, bounds[at + 1] as number));
  return sink.entityOfScratch(namespace, length);
}

function isWildcard(bytes: Uint8Array, bounds: Int32Array, at: number): boolean {
  const start = bounds[at] as number;
  return (bounds[at + 1] as number) === start + 1 && bytes[start] === ASTERISK;
}

/** Whether a column equals that of the row before. Hot. */
function sameAsBefore(bytes: Uint8Array, bounds: Int32Array, at: number): boolean {
  const start = bounds[at] as number;
  const length = (bounds[at + 1] as number) - start;
  const before = bounds[at - ROW_BOUNDS] as number;
  if ((bounds[at - ROW_BOUNDS + 1] as number) - before !== length) return false;
  // Ids that differ mostly differ at the end.
  for (let i = length - 1; i >= 0; i--) {
    if (bytes[start + i] !== bytes[before + i]) return false;
  }
  return true;
}
