// Yields tuples a second: how fast a snapshot's rows become an index, without Postgres.
// Run: npm run bench -- index-load [--scale 10] [-- DATA_DIR]; DATA_DIR holds a tuples.jsonl.
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { dataDirectory } from './generated-data.ts';
import { readRows, report, rowBatches } from './index-data.ts';

const BATCH_ROWS = 2000;
const dir = dataDirectory(process.argv[2]);

for (const order of ['key', 'file'] as const) {
  const batches = rowBatches(readRows(dir, order), BATCH_ROWS);
  const tuplesPerSecond: number[] = [];
  let worstBatchMs = 0;
  for (let round = 0; round < 5; round++) {
    const index = new TupleIndex();
    worstBatchMs = 0;
    const start = performance.now();
    for (const batch of batches) {
      const batchStart = performance.now();
      index.insertRows(batch);
      worstBatchMs = Math.max(worstBatchMs, performance.now() - batchStart);
    }
    tuplesPerSecond.push(Math.round((index.tupleCount / (performance.now() - start)) * 1000));
  }
  report('index-load', { order, batchRows: BATCH_ROWS, tuplesPerSecond, worstBatchMs });
}
