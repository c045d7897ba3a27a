import type { RawAnswer, RawMethod, ReadScope } from '../src/protocol/shard-client.ts';
import { WORKER_DEFAULTS } from '../src/workers/shard/worker-settings.ts';
// Yields requests a second through the pool and one thread, dataset in memory, uniform mix.
// Run: npm run bench -- worker-pool [--scale 10]
// Closed loop of 64 callers; ratios on two cores shared by both threads.
import { createPiscinaTransport } from '../src/workers/slot/piscina-transport.ts';
import { createWorkerPool } from '../src/workers/slot/worker-pool.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { World } from '../test/support/dataset/world.ts';
import { BENCH_SEED, BENCH_SHARD } from './worker-data.ts';

const scale = Number(process.env['BENCH_SCALE'] ?? '1');
const questions = mixedQuestions(new World(scale, BENCH_SEED), 50_000, 'uniform');
const pool = createWorkerPool({
  workerCount: 1,
  createTransport: createPiscinaTransport({
    filename: new URL('./worker-memory-entry.ts', import.meta.url).href,
    settings: (slot) => ({
      ...WORKER_DEFAULTS,
      slot,
      database: { connectionString: '' },
      poolMax: 2,
      indexBytesMax: 4 * 1024 * 1024 * 1024,
      pollMs: 1e9,
    }),
  }),
  queueDepthMax: 100_000,
  shardQueueDepthMax: 100_000,
  queueBytesMax: 1e9,
  onFatal: (cause) => console.error(cause),
  onStats: () => undefined,
  onEvent: () => undefined,
});
await pool.start();
await pool.setModel(BENCH_SHARD.projectId, 1, DATASET_MODEL_JSON);
const scope: ReadScope = {
  ...BENCH_SHARD,
  modelVersion: 1,
  readBudget: 10_000,
  settingsVersion: 1,
  epoch: 1,
  minRevision: 1,
  forkId: '',
  isHeldOnly: false,
  deadlineMs: Infinity,
};
const expected = { projectId: '', tenantId: '', token: '' };
const itemOf = (i: number): object => ({
  namespace: 'doc',
  object_id: questions[i % questions.length]?.objectId,
  relation: 'viewer',
  subject_user_id: questions[i % questions.length]?.userId,
});
const checks = questions.map((_, i) => Buffer.from(JSON.stringify(itemOf(i))));
const batches = Array.from({ length: 500 }, (_batch, b) =>
  Buffer.from(
    JSON.stringify({ items: Array.from({ length: 100 }, (_, i) => itemOf(b * 100 + i)) }),
  ),
);

async function closedLoop(
  method: RawMethod,
  bodies: readonly Uint8Array[],
  callers: number,
  total: number,
): Promise<number> {
  let next = 0;
  let answered = 0;
  const start = performance.now();
  await new Promise<void>((resolve, reject) => {
    const ask = (): void => {
      if (next >= total) return;
      const body = bodies[next % bodies.length];
      next += 1;
      if (body !== undefined) pool.raw(method, 'json', body, scope, expected, onAnswer);
    };
    const onAnswer = (answer: RawAnswer): void => {
      if (answer.kind === 'error') reject(new Error(answer.kind));
      answered += 1;
      if (answered === total) resolve();
      ask();
    };
    for (let i = 0; i < callers; i++) ask();
  });
  return total / ((performance.now() - start) / 1000);
}

await closedLoop('check', checks, 64, 50_000);
for (const callers of [1, 64, 512]) {
  const rate = Math.round(
    await closedLoop('check', checks, callers, callers === 1 ? 5_000 : 100_000),
  );
  console.log(JSON.stringify({ bench: 'pool: Check', scale, callers, perSecond: rate }));
}
for (const callers of [1, 8, 32]) {
  const rate = Math.round(100 * (await closedLoop('batchCheck', batches, callers, 1_000)));
  console.log(
    JSON.stringify({ bench: 'pool: BatchCheck of 100', scale, callers, itemsPerSecond: rate }),
  );
}
await pool.stop();
