// Yields microseconds a change: one insert and one delete at a time in a loaded index.
// Run: npm run bench -- index-update [--scale 10] [-- DATA_DIR [COPIES]]; DATA_DIR holds a tuples.jsonl. COPIES loads the data that often, each copy under its own ids (10 copies of 1 M tuples: 10 M).
import { TupleIndex } from '../src/cache/tuple-index.ts';
import type { TupleRow } from '../src/cache/tuple-row.ts';
import { dataDirectory } from './generated-data.ts';
import { readRows, report, rowBatches } from './index-data.ts';

const CHANGES = 400_000;
const CHUNK = 1000;
const dir = dataDirectory(process.argv[2]);
const copies = Number(process.argv[3] ?? 1);

const rows = readRows(dir, 'key');
const index = new TupleIndex();
for (let copy = 0; copy < copies; copy++) {
  for (let first = 0; first < rows.length; first += 100_000) {
    const part = rows.slice(first, first + 100_000).map((row) => copyOf(row, copy));
    for (const batch of rowBatches(part, 2000)) index.insertRows(batch);
  }
}

let state = 12_345;
function below(limit: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}

/** A row with the ids of a copy. */
function copyOf(row: TupleRow, copy: number): TupleRow {
  if (copy === 0) return row;
  return { ...row, objectId: `${row.objectId}_c${copy}`, subjectId: `${row.subjectId}_c${copy}` };
}

/** Changes of existing tuples, and new tuples between objects and subjects that exist, or new ones. */
const picked = Array.from({ length: CHANGES }, () =>
  copyOf(rows[below(rows.length)] as TupleRow, below(copies)),
);
const fresh = picked.map((row, i) => ({
  ...row,
  ...(i % 4 === 0 ? { objectId: `new${i}` } : {}),
  subjectNamespace: '',
  subjectId: i % 8 === 0 ? `newuser${i}` : `u${below(10_000)}`,
  subjectRelation: '',
}));
const everybody: TupleRow[] = Array.from({ length: CHANGES }, (_, i) => ({
  namespace: 'group',
  objectId: 'everybody',
  relation: 'member',
  subjectNamespace: '',
  subjectId: `m${i}`,
  subjectRelation: '',
}));

/**
 * Mean over all and the slowest ones; the slowest hold whatever else the machine and the collector did. The rows are
 * parsed from text just before their change, as changes are when they arrive; parsing is not counted.
 */
function measure(name: string, changed: readonly TupleRow[], op: 'insert' | 'remove'): void {
  const slowest: number[] = [];
  let slow = 0;
  let wallMs = 0;
  let cpuUs = 0;
  for (let first = 0; first < changed.length; first += CHUNK) {
    const chunk = JSON.parse(JSON.stringify(changed.slice(first, first + CHUNK))) as TupleRow[];
    const cpu = process.cpuUsage();
    const start = performance.now();
    let before = start;
    for (const row of chunk) {
      if (op === 'insert') index.insert(row);
      else index.remove(row);
      const now = performance.now();
      const tookMs = now - before;
      before = now;
      if (tookMs > 1) slow += 1;
      if (slowest.length < 5 || tookMs > (slowest.at(-1) as number)) {
        slowest.push(tookMs);
        slowest.sort((a, b) => b - a);
        slowest.length = Math.min(slowest.length, 5);
      }
    }
    wallMs += performance.now() - start;
    const used = process.cpuUsage(cpu);
    cpuUs += used.user + used.system;
  }
  report('index-update', {
    name,
    tuples: index.tupleCount,
    changes: changed.length,
    meanUs: (wallMs * 1000) / changed.length,
    meanCpuUs: cpuUs / changed.length,
    worstMs: slowest.map((ms) => Number(ms.toFixed(3))),
    overOneMs: slow,
  });
}

for (let round = 0; round < 3; round++) {
  measure('delete existing', picked, 'remove');
  measure('insert them again', picked, 'insert');
  measure('insert new', fresh, 'insert');
  measure('delete new', fresh, 'remove');
  measure('grow one group', everybody, 'insert');
  measure('shrink one group', everybody, 'remove');
}
