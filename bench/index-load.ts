// How fast a snapshot's rows become an index, without Postgres: node bench/index-load.ts DATA_DIR
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { dataDirOfArguments, readRows, report, rowBatches } from './index-data.ts';

const BATCH_ROWS = 2000;
const dir = dataDirOfArguments('bench/index-load.ts');

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
