// Yields bytes of the index a tuple, all but the bytes of distinct strings; and the growth of the JS heap.
// Run: npm run bench -- index-memory [--scale 10] [-- DATA_DIR]; DATA_DIR holds a tuples.jsonl.
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { dataDirectory } from './generated-data.ts';
import { distinctStringBytes, heapBytes, readRows, report, rowBatches } from './index-data.ts';

const dir = dataDirectory(process.argv[2]);

for (const order of ['key', 'file'] as const) {
  const rows = readRows(dir, order);
  const stringBytes = distinctStringBytes(rows);
  const heapBefore = heapBytes();
  const index = new TupleIndex();
  if (order === 'file') for (const row of rows) index.insert(row);
  else for (const batch of rowBatches(rows, 2000)) index.insertRows(batch);
  const heapAfter = heapBytes();
  report('index-memory', {
    order,
    tuples: index.tupleCount,
    bytes: index.bytes,
    stringBytes,
    bytesPerTuple: (index.bytes - stringBytes) / index.tupleCount,
    heapGrowthBytes: heapAfter - heapBefore,
    parts: index.partBytes(),
  });
  if (rows.length === 0) throw new Error('unreachable: keeps the rows alive over the measurement');
}
