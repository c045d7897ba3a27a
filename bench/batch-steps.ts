/**
 * Yields nanoseconds of CPU an item of a BatchCheck of 100 costs in a worker: scanning the JSON, the same with names and
 * ids turned into numbers, and all with checks and the encoded answer; every answer compared with the expected one first.
 * Beside it, as the machine's yardstick, what a read costs in 64 MB of memory: each waiting for the one before, and apart.
 * Run: npm run bench -- batch-steps [--scale 10] [-- DATA_DIR [ROUNDS]]; DATA_DIR holds tuples.jsonl and mixu.jsonl.
 * Prints one JSON line a step: least and median of the rounds.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { parseModel } from '../src/model/namespace-model.ts';
import { systemClock } from '../src/shared/clock.ts';
import { AnswerWriter } from '../src/workers/jobs/answer-writer.ts';
import {
  BatchEvaluation,
  CHUNK_ITEMS,
  createItemChunk,
} from '../src/workers/jobs/batch-evaluation.ts';
import { DecisionStats } from '../src/workers/jobs/decision-stats.ts';
import { JobContext } from '../src/workers/jobs/job-context.ts';
import { RawItems } from '../src/workers/jobs/raw-items.ts';
import { jsonOfBatch } from '../src/workers/raw/answer-encoder.ts';
import type { ShardIndex } from '../src/workers/shard/ports.ts';
import { dataDirectory } from './generated-data.ts';
import { readRows, report, rowBatches } from './index-data.ts';

const SIZE = 100;
/** As in a worker. */
const CACHE_BYTES = 32 * 1024 * 1024;
const READ_BUDGET = 10_000;
const directory = dataDirectory(process.argv[2]);
const rounds = Number(process.argv[3] ?? 15);

type Question = {
  readonly namespace: string;
  readonly object_id: string;
  readonly relation: string;
  readonly subject: string;
  readonly allow: boolean;
};

const index = new TupleIndex();
for (const batch of rowBatches(readRows(directory, 'key'), 2000)) index.insertRows(batch);
const model = parseModel(readFileSync(new URL('peers-model.json', import.meta.url), 'utf8'));
const contextOf = (readAheadBytesMin?: number): JobContext =>
  new JobContext({
    writer: new AnswerWriter(),
    stats: new DecisionStats(),
    clock: systemClock,
    batchBudgetFactor: SIZE,
    batchItemsMax: SIZE,
    evaluator: { depthMax: 256, membershipBytesMax: CACHE_BYTES, readAheadBytesMin },
  });
const context = contextOf();
/** Loaded already: only its reader is asked for. */
const shard: ShardIndex = {
  reader: index,
  bytes: 0,
  tupleCount: index.tupleCount,
  insertRow: () => undefined,
  apply: () => undefined,
  startAudit: () => {
    throw new Error('nothing is stored to compare it with');
  },
  endAudit: () => undefined,
};
const bound = context.boundOf(shard, model);
/** The same, whose checks read nothing ahead. */
const plainBound = contextOf(Number.POSITIVE_INFINITY).boundOf(shard, model);
const chunk = createItemChunk();

const questions = readFileSync(join(directory, 'mixu.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Question);
const bodies: Uint8Array[] = [];
for (let first = 0; first + SIZE <= questions.length; first += SIZE) {
  const items = questions.slice(first, first + SIZE).map((question) => ({
    namespace: question.namespace,
    object_id: question.object_id,
    relation: question.relation,
    subject_user_id: question.subject.slice('user:'.length),
  }));
  bodies.push(Buffer.from(JSON.stringify({ items })));
}

function scan(body: Uint8Array): RawItems {
  if (!context.json.batchCheck(body, 0, body.length)) throw new Error('a body was not scanned');
  const { fields } = context;
  return new RawItems(index, { bytes: body }, fields.items, fields.itemCount);
}

function load(body: Uint8Array): void {
  const items = scan(body);
  for (let first = 0; first < SIZE; first += CHUNK_ITEMS) {
    items.load(first, Math.min(CHUNK_ITEMS, SIZE - first), chunk);
  }
}

function all(body: Uint8Array, by = bound): Uint8Array {
  const evaluation = new BatchEvaluation(scan(body), context, by, {
    readBudget: READ_BUDGET,
    totalBudget: READ_BUDGET * SIZE,
    nowMs: Date.now(),
  });
  if (evaluation.run(Number.POSITIVE_INFINITY) !== 'done') throw new Error('a batch was cut');
  jsonOfBatch(evaluation.outcomes, evaluation.errors);
  return evaluation.outcomes;
}

for (const [b, body] of bodies.entries()) {
  for (const [i, outcome] of all(body).entries()) {
    if ((outcome === 1) !== questions[b * SIZE + i]?.allow) throw new Error('a wrong answer');
  }
}

/** CPU nanoseconds of `work`, for each of `count`. */
function costOf(count: number, work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return ((user + system) * 1000) / count;
}

const LINES = 1024 * 1024;
const LINE_WORDS = 16;
const memory = new Uint32Array(LINES * LINE_WORDS);
/** A path through all lines that no prefetcher foresees: an odd step and an offset modulo 2^20 have full period. */
for (let i = 0, line = 0; i < LINES; i++) {
  const next = (Math.imul(line, 1_664_525) + 1_013_904_223) & (LINES - 1);
  memory[line * LINE_WORDS] = next * LINE_WORDS;
  line = next;
}
const apart = Uint32Array.from(
  { length: LINES },
  () => Math.floor(Math.random() * LINES) * LINE_WORDS,
);
/** Where the loops leave what they read, so that they are not left out. */
const sink = new Uint32Array(1);

function readInTurn(): void {
  let at = 0;
  for (let i = 0; i < LINES; i++) at = memory[at] as number;
  sink[0] = at;
}

function readApart(): void {
  let sum = 0;
  for (let i = 0; i < LINES; i++) sum = (sum + (memory[apart[i] as number] as number)) | 0;
  sink[0] = sum;
}

const steps: Readonly<Record<string, () => number>> = {
  scan: () => costOf(bodies.length * SIZE, () => bodies.forEach((body) => scan(body))),
  'scan and ids': () => costOf(bodies.length * SIZE, () => bodies.forEach(load)),
  all: () => costOf(bodies.length * SIZE, () => bodies.forEach((body) => all(body))),
  'all, nothing read ahead': () =>
    costOf(bodies.length * SIZE, () => bodies.forEach((body) => all(body, plainBound))),
  'read after read': () => costOf(LINES, readInTurn),
  'reads apart': () => costOf(LINES, readApart),
};
const costs = new Map(Object.keys(steps).map((name) => [name, [] as number[]]));
for (let round = 0; round < rounds; round++) {
  for (const [name, step] of Object.entries(steps)) costs.get(name)?.push(step());
}
for (const [name, values] of costs) {
  values.sort((a, b) => a - b);
  const [least, median] = [values[0] ?? 0, values[values.length >> 1] ?? 0];
  report('batch-steps', { name, tuples: index.tupleCount, leastNs: least, medianNs: median });
}
