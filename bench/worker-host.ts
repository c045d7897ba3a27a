import { RAW_FIELDS, rawOpcode } from '../src/protocol/messages.ts';
import type { AnswerBatch, RequestBatch } from '../src/protocol/messages.ts';
import type { RawMethod } from '../src/protocol/shard-client.ts';
// Yields items a second that a worker answers, without its thread.
// Run: npm run bench -- worker-host [--scale 10]
// A BatchCheck of 100 as JSON and binary (scan, intern, evaluate, encode) and single checks, uniform mix.
import { systemClock } from '../src/shared/clock.ts';
import { JsonScanner } from '../src/workers/raw/json-scanner.ts';
import { createRawFields } from '../src/workers/raw/raw-fields.ts';
import { PackingShardIndex } from '../src/workers/shard/packing-index.ts';
import { ShardHost } from '../src/workers/shard/shard-host.ts';
import { WORKER_DEFAULTS } from '../src/workers/shard/worker-settings.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import type { Question } from '../test/support/dataset/questions.ts';
import { World } from '../test/support/dataset/world.ts';
import { BENCH_SEED, BENCH_SHARD, memorySourceOf } from './worker-data.ts';

const scale = Number(process.env['BENCH_SCALE'] ?? '1');
const world = new World(scale, BENCH_SEED);
const questions = mixedQuestions(world, 50_000, 'uniform');
const bytes = 4 * 1024 * 1024 * 1024;
const host = new ShardHost({
  settings: { ...WORKER_DEFAULTS, sliceMs: 1e9, poolMax: 2, indexBytesMax: bytes, pollMs: 1e9 },
  clock: systemClock,
  source: memorySourceOf(world),
  createIndex: (shared, user) => new PackingShardIndex(shared, user),
  post: () => undefined,
  underEvaluation: new Float64Array(1),
});

const itemOf = (question: Question): object => ({
  namespace: 'doc',
  object_id: question.objectId,
  relation: 'viewer',
  subject_user_id: question.userId,
});

function batchOf(method: RawMethod, bodies: readonly Uint8Array[]): RequestBatch {
  const raw = new Float64Array(bodies.length * RAW_FIELDS);
  let end = 0;
  bodies.forEach((body, i) => {
    const opcode = rawOpcode(method, 'json');
    raw.set([i + 1, opcode, 0, 1, Infinity, end, end + body.length, 0], i * RAW_FIELDS);
    end += body.length;
  });
  const expected = { expectedProjectId: '', expectedTenantId: '' };
  const position = { settingsVersion: 1, epoch: 1, forkId: '', isHeldOnly: false };
  return {
    scopes: [{ ...BENCH_SHARD, modelVersion: 1, readBudget: 10_000, ...position, ...expected }],
    tokens: [''],
    raw,
    bodies: Buffer.concat(bodies),
    requests: [],
    cancelled: [],
    control: [],
  };
}

function time(name: string, items: number, work: () => void): void {
  const rates: number[] = [];
  const cpuRates: number[] = [];
  for (let round = 0; round < 6; round++) {
    const start = performance.now();
    const cpuStart = process.cpuUsage();
    work();
    const cpu = process.cpuUsage(cpuStart);
    rates.push(Math.round((items / (performance.now() - start)) * 1000));
    // The second figure holds on a machine that is shared.
    cpuRates.push(Math.round((items / (cpu.user + cpu.system)) * 1e6));
  }
  const [itemsPerSecond, itemsPerCpuSecond] = [rates.slice(1), cpuRates.slice(1)];
  console.log(JSON.stringify({ bench: name, scale, itemsPerSecond, itemsPerCpuSecond }));
}

const control = {
  kind: 'setModel',
  ackId: 0,
  projectId: BENCH_SHARD.projectId,
  modelVersion: 1,
  modelJson: DATASET_MODEL_JSON,
} as const;
const single = questions.map((question) => Buffer.from(JSON.stringify(itemOf(question))));
host.handle({ ...batchOf('check', single.slice(0, 1)), control: [control] });
while (host.actor(BENCH_SHARD)?.state !== 'ready') {
  await new Promise((resolve) => setTimeout(resolve, 10));
}

const hundreds = Array.from({ length: questions.length / 100 }, (_, i) => {
  const items = questions.slice(i * 100, i * 100 + 100).map(itemOf);
  return Buffer.from(JSON.stringify({ items }));
});
const messages = hundreds.map((body) => batchOf('batchCheck', [body]));
let wrong = 0;
messages.forEach((message, m) => {
  const answer = JSON.parse(Buffer.from(host.handle(message).bodies).toString()) as {
    results: { allowed: boolean }[];
  };
  answer.results.forEach((result, i) => {
    if (result.allowed !== questions[m * 100 + i]?.allow) wrong += 1;
  });
});
console.log(JSON.stringify({ tuples: world.tuples.length, questions: questions.length, wrong }));

const scanner = new JsonScanner(createRawFields(), 10_000);
time('scan of 100 in JSON', questions.length, () => {
  for (const body of hundreds)
    if (!scanner.batchCheck(body, 0, body.length)) throw new Error('scan');
});
let last: AnswerBatch | null = null;
time('BatchCheck of 100, JSON', questions.length, () => {
  for (const message of messages) last = host.handle(message);
});
const checks = Array.from({ length: 500 }, (_, i) =>
  batchOf('check', single.slice(i * 100, i * 100 + 100)),
);
time('Check, JSON, 100 a message', questions.length, () => {
  for (const message of checks) last = host.handle(message);
});
if (last === null) throw new Error('nothing was answered');
host.stop();
