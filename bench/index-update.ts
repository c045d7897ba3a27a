// Yields microseconds a change: one insert and one delete at a time in a loaded index.
// Run: npm run bench -- index-update [--scale 10] [-- DATA_DIR [COPIES]]; DATA_DIR holds a tuples.jsonl. COPIES loads the data that often, each copy under its own ids (10 copies of 1 M tuples: 10 M).
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';
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
/** Gets the same changes in the same order, so that what the index itself does long, it does long in both. */
const twin = new TupleIndex();
for (let copy = 0; copy < copies; copy++) {
  for (let first = 0; first < rows.length; first += 100_000) {
    const part = rows.slice(first, first + 100_000).map((row) => copyOf(row, copy));
    for (const batch of rowBatches(part, 2000)) {
      index.insertRows(batch);
      twin.insertRows(batch);
    }
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

const SLOWEST = 5;
/** Changes that took longer are looked at for pauses. */
const LOOK_MS = 0.2;

/** Keeps the largest few of many numbers, largest first. */
class Largest {
  readonly values: number[] = [];

  add(value: number): void {
    const { values } = this;
    if (values.length === SLOWEST && value <= (values.at(-1) as number)) return;
    values.push(value);
    values.sort((a, b) => b - a);
    values.length = Math.min(values.length, SLOWEST);
  }
}

type Pause = { readonly startTime: number; readonly duration: number };

/** Of the collector, as far as they were told: after a turn of the loop. */
const pauses: Pause[] = [];
new PerformanceObserver((list) => pauses.push(...list.getEntries())).observe({
  entryTypes: ['gc'],
});

/** Milliseconds of the collector between two times. */
function collectedMs(from: number, to: number): number {
  return pauses.reduce((sum, { startTime, duration }) => {
    const overlap = Math.min(to, startTime + duration) - Math.max(from, startTime);
    return sum + Math.max(0, overlap);
  }, 0);
}

/** Makes the changes; milliseconds of each into `times`. Returns when it began. */
function change(
  to: TupleIndex,
  rowsOf: readonly TupleRow[],
  isInsert: boolean,
  times: Float64Array,
): number {
  const start = performance.now();
  let before = start;
  for (let i = 0; i < rowsOf.length; i++) {
    const row = rowsOf[i] as TupleRow;
    if (isInsert) to.insert(row);
    else to.remove(row);
    const now = performance.now();
    times[i] = now - before;
    before = now;
  }
  return start;
}

/** Takes what the collector did out of the times; those of nearly all changes are too short to hold any. */
function withoutPauses(times: Float64Array, start: number, count: number): void {
  let at = start;
  for (let i = 0; i < count; i++) {
    const tookMs = times[i] as number;
    if (tookMs > LOOK_MS) times[i] = tookMs - collectedMs(at, at + tookMs);
    at += tookMs;
  }
}

/**
 * Mean over all and the slowest ones; the slowest hold whatever else the machine and the collector did, but for the own
 * ones: without the collector, and of the quicker of two equal indexes, since the same change is not disturbed twice.
 * The rows are parsed from text just before their change, as changes are when they arrive; parsing is not counted.
 */
async function measure(
  name: string,
  changed: readonly TupleRow[],
  op: 'insert' | 'remove',
): Promise<void> {
  const slowest = new Largest();
  const slowestOwn = new Largest();
  const [times, twinTimes] = [new Float64Array(CHUNK), new Float64Array(CHUNK)];
  let slow = 0;
  let wallMs = 0;
  let cpuUs = 0;
  for (let first = 0; first < changed.length; first += CHUNK) {
    const chunk = JSON.parse(JSON.stringify(changed.slice(first, first + CHUNK))) as TupleRow[];
    const cpu = process.cpuUsage();
    const start = change(index, chunk, op === 'insert', times);
    wallMs += performance.now() - start;
    const used = process.cpuUsage(cpu);
    cpuUs += used.user + used.system;
    const twinStart = change(twin, chunk, op === 'insert', twinTimes);
    for (let i = 0; i < chunk.length; i++) {
      const tookMs = times[i] as number;
      if (tookMs > 1) slow += 1;
      slowest.add(tookMs);
    }
    // A pause is told some turns of the loop later.
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    withoutPauses(times, start, chunk.length);
    withoutPauses(twinTimes, twinStart, chunk.length);
    pauses.length = 0;
    for (let i = 0; i < chunk.length; i++) {
      slowestOwn.add(Math.min(times[i] as number, twinTimes[i] as number));
    }
  }
  const rounded = ({ values }: Largest): number[] => values.map((ms) => Number(ms.toFixed(3)));
  report('index-update', {
    name,
    tuples: index.tupleCount,
    changes: changed.length,
    meanUs: (wallMs * 1000) / changed.length,
    meanCpuUs: cpuUs / changed.length,
    worstMs: rounded(slowest),
    worstOwnMs: rounded(slowestOwn),
    overOneMs: slow,
  });
}

for (let round = 0; round < 3; round++) {
  await measure('delete existing', picked, 'remove');
  await measure('insert them again', picked, 'insert');
  await measure('insert new', fresh, 'insert');
  await measure('delete new', fresh, 'remove');
  await measure('grow one group', everybody, 'insert');
  await measure('shrink one group', everybody, 'remove');
}
