import {
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  EMPTY_NAME,
  WILDCARD_NODE,
} from '../model/tuple-reader.ts';
import type { RowPacker } from './row-packer.ts';
import { NAME_OWNER } from './tables/dictionary.ts';
import { NEVER_US } from './tables/qualifier-store.ts';
import type { TupleIndex } from './tuple-index.ts';
import { ROW_BOUNDS } from './tuple-row.ts';

const ENTRIES = 256;
const entries = new Uint32Array(ENTRIES);
/** The columns of the row at work. */
let row = new Uint8Array(4096);
const bounds = new Int32Array(ROW_BOUNDS);
const ASTERISK = 42;

/**
 * Packs every tuple of an index, object by object. Returns false, and stops, once there are more than `bytesMax` bytes of
 * them. O(tuples); allocates for what tuples carry only.
 */
export function packIndex(index: TupleIndex, packer: RowPacker, bytesMax: number): boolean {
  const { dictionary } = index.parts;
  for (let at = dictionary.next(0); at !== 0; at = dictionary.next(dictionary.after(at))) {
    if (index.namespaceOf(at) === NAME_OWNER) continue;
    for (let node = index.firstNodeOf(at); node !== 0; node = index.nextNodeOf(node)) {
      packUsers(index, node, packer);
      packSets(index, node, packer);
      if (packer.size > bytesMax) return false;
    }
  }
  return true;
}

function packUsers(index: TupleIndex, node: number, packer: RowPacker): void {
  for (let cursor = 0; cursor >= 0; cursor = index.nextCursor) {
    const count = index.readUsers(node, cursor, entries, 0);
    packEntries(index, node, count, packer);
  }
}

function packSets(index: TupleIndex, node: number, packer: RowPacker): void {
  for (let cursor = 0; cursor >= 0; cursor = index.nextCursor) {
    const count = index.readSets(node, cursor, entries, 0);
    packEntries(index, node, count, packer);
  }
}

function packEntries(index: TupleIndex, node: number, count: number, packer: RowPacker): void {
  if (count === 0) return;
  const object = nodeColumns(index, node, 0, 0);
  for (let i = 0; i < count; i++) {
    const entry = entries[i] as number;
    const subject = entry & EDGE_NODE_MASK;
    const end = nodeColumns(index, subject, 6, object);
    bounds.fill(-1, 12);
    if ((entry & EDGE_QUALIFIED) !== 0) carriedColumns(index, node, subject, end);
    packer.add(row, bounds);
  }
}

/** Namespace, id and relation of a node, from bound `column` on; returns where the next column begins. */
function nodeColumns(index: TupleIndex, node: number, column: number, from: number): number {
  if (node === WILDCARD_NODE) {
    reserve(from + 1);
    row[from] = ASTERISK;
    bounds[column] = from;
    bounds.fill(from + 1, column + 1, column + 6);
    return from + 1;
  }
  const { names } = index.parts;
  const entity = index.entityOf(node);
  const namespace = index.namespaceOf(entity);
  const relation = index.relationOf(node);
  let at = from;
  at = putRecord(index, namespace === EMPTY_NAME ? 0 : names.recordOf(namespace), column, at);
  at = putRecord(index, entity, column + 2, at);
  return putRecord(index, relation === EMPTY_NAME ? 0 : names.recordOf(relation), column + 4, at);
}

/** The text of a record, or none of 0, as the column with these bounds; returns its end. */
function putRecord(index: TupleIndex, record: number, column: number, at: number): number {
  const { dictionary } = index.parts;
  let end = at;
  if (record !== 0) {
    reserve(at + dictionary.textBytes(record));
    end += dictionary.copyText(record, row, at);
  }
  bounds[column] = at;
  bounds[column + 1] = end;
  return end;
}

function carriedColumns(index: TupleIndex, node: number, subject: number, from: number): void {
  const { qualifiers, names } = index.parts;
  let at = from;
  const expiry = qualifiers.expiry(node, subject);
  if (expiry !== NEVER_US) {
    reserve(at + 8);
    new DataView(row.buffer).setBigInt64(at, expiry);
    bounds[12] = at;
    at += 8;
    bounds[13] = at;
  }
  const condition = qualifiers.condition(node, subject);
  if (condition !== EMPTY_NAME) at = putText(names.text(condition), 14, at);
  const params = qualifiers.params(node, subject);
  if (params !== '') putText(params, 16, at);
}

function putText(text: string, column: number, at: number): number {
  const bytes = Buffer.from(text, 'utf8');
  reserve(at + bytes.length);
  row.set(bytes, at);
  bounds[column] = at;
  bounds[column + 1] = at + bytes.length;
  return at + bytes.length;
}

function reserve(size: number): void {
  if (size <= row.length) return;
  const larger = new Uint8Array(size * 2);
  larger.set(row);
  row = larger;
}
