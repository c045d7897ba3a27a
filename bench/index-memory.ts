/**
 * Bytes of the index a tuple, with and without the distinct strings, and by how much the heap grew: loaded as a snapshot is,
 * and written one by one. [DATA_DIR] has a tuples.jsonl, else it is the data set at its scale.
 */
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { ROW_BOUNDS } from '../src/cache/tuple-row.ts';
import type { RowBytes, TupleRow } from '../src/cache/tuple-row.ts';
import { report } from './harness/options.ts';
import { columnsOf, inKeyOrder, peerTuples, rowOf } from './harness/peer-data.ts';

const BATCH_ROWS = 2_000;

/** Rows as bytes, as a snapshot delivers them. */
function bytesOf(rows: readonly TupleRow[]): RowBytes {
  const bounds = new Int32Array(rows.length * ROW_BOUNDS).fill(-1);
  const texts: string[] = [];
  let length = 0;
  rows.forEach((row, i) => {
    columnsOf(row).forEach((text, c) => {
      bounds[i * ROW_BOUNDS + c * 2] = length;
      length += Buffer.byteLength(text);
      bounds[i * ROW_BOUNDS + c * 2 + 1] = length;
      texts.push(text);
    });
  });
  const bytes = new Uint8Array(Buffer.from(texts.join('')));
  return { bytes, bounds, rows: rows.length, expiryFormat: 'binary' };
}

/** UTF-8 bytes of the distinct ids and names that the rows make an index hold. */
function distinctStringBytes(rows: readonly TupleRow[]): number {
  const entities = new Map<string, string>();
  const names = new Set<string>();
  for (const row of rows) {
    entities.set(`${row.namespace}:${row.objectId}`, row.objectId);
    entities.set(`${row.subjectNamespace}:${row.subjectId}`, row.subjectId);
    for (const name of [row.namespace, row.relation, row.subjectNamespace, row.subjectRelation])
      names.add(name);
  }
  return [...entities.values(), ...names].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** Bytes of JavaScript's heap in use after two full collections. */
function heapBytes(): number {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error('run with --expose-gc');
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}

const written = peerTuples(process.argv[2]).map(rowOf);
if (written.length === 0) throw new Error(`${process.argv[2]} has no tuples.jsonl`);
const stored = inKeyOrder(written);
const batches: RowBytes[] = [];
for (let at = 0; at < stored.length; at += BATCH_ROWS)
  batches.push(bytesOf(stored.slice(at, at + BATCH_ROWS)));
const stringBytes = distinctStringBytes(written);
for (const order of ['loaded', 'written'] as const) {
  const before = heapBytes();
  const index = new TupleIndex();
  if (order === 'written') for (const row of written) index.insert(row);
  else for (const batch of batches) index.insertRows(batch);
  const heapGrowth = heapBytes() - before;
  report({
    order,
    tuples: index.tupleCount,
    bytesPerTuple: index.bytes / index.tupleCount,
    bytesPerTupleWithoutStrings: (index.bytes - stringBytes) / index.tupleCount,
    heapGrowthPerTuple: heapGrowth / index.tupleCount,
  });
}
// Their rows are to be alive over both measurements.
if (batches.length === 0) throw new Error('unreachable');
