/**
 * Yields what a single Check of a busy shard costs that is answered on the gateway's thread, over what it costs by way of a
 * worker: CPU of all threads, without HTTP, for 1 and 24 Checks in a turn of the loop, in turns; before that, how long the
 * calls take that are answered there while the caches fill. Dataset in memory, uniform mix.
 * Run: npm run bench -- near-pool [--scale 10]. One JSON line for each number of Checks.
 */
import type { RawAnswer, ReadScope } from '../src/protocol/shard-client.ts';
import { systemClock } from '../src/shared/clock.ts';
import { WORKER_DEFAULTS } from '../src/workers/shard/worker-settings.ts';
import { LocalReplicaTransport } from '../src/workers/slot/local-replica-transport.ts';
import { createPiscinaTransport } from '../src/workers/slot/piscina-transport.ts';
import { createWorkerPool, type WorkerPool } from '../src/workers/slot/worker-pool.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { World } from '../test/support/dataset/world.ts';
import { BENCH_SEED, BENCH_SHARD, memorySourceOf } from './worker-data.ts';

const scale = Number(process.env['BENCH_SCALE'] ?? '1');
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 9);
const CHECKS = Number(process.env['BENCH_CHECKS'] ?? 24_000);
const GIB = 1024 * 1024 * 1024;
const world = new World(scale, BENCH_SEED);
const questions = mixedQuestions(world, 50_000, 'uniform');
const bodies = questions.map(({ objectId, userId }) =>
  Buffer.from(
    JSON.stringify({
      namespace: 'doc',
      object_id: objectId,
      relation: 'viewer',
      subject_user_id: userId,
    }),
  ),
);
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

async function startPool(isLocalReplica: boolean): Promise<WorkerPool> {
  const settings = { ...WORKER_DEFAULTS, poolMax: 2, indexBytesMax: 4 * GIB, pollMs: 1e9 };
  const pool = createWorkerPool({
    workerCount: 1,
    createTransport: createPiscinaTransport({
      filename: new URL('./worker-memory-entry.ts', import.meta.url).href,
      settings: (slot) => ({ ...settings, slot, database: { connectionString: '' } }),
    }),
    ...(isLocalReplica
      ? {
          createLocalReplicas: (onTooMuch) =>
            new LocalReplicaTransport({
              settings,
              clock: systemClock,
              source: memorySourceOf(world),
              onTooMuch,
            }),
        }
      : {}),
    replication: {
      workersMax: 1,
      indexBytesMax: 4 * GIB,
      localReplicas: isLocalReplica
        ? { indexBytesMax: 4 * GIB, checksPerSecondMin: 250 }
        : undefined,
    },
    queueDepthMax: 100_000,
    shardQueueDepthMax: 100_000,
    queueBytesMax: 1e9,
    onFatal: (cause) => console.error(cause),
    onStats: () => undefined,
    onEvent: () => undefined,
  });
  await pool.start();
  await pool.setModel(BENCH_SHARD.projectId, 1, DATASET_MODEL_JSON);
  return pool;
}

let next = 0;
/** Microseconds of each call that was answered within it. */
const heldUs: number[] = [];
let isTimed = true;
/** Asks `checks`, so many in a turn of the loop, and resolves with the CPU of all threads, us a Check. */
async function ask(pool: WorkerPool, checks: number, inTurn: number): Promise<number> {
  const before = process.cpuUsage();
  for (let asked = 0; asked < checks; asked += inTurn) {
    let left = inTurn;
    await new Promise<void>((resolve, reject) => {
      const onAnswer = (answer: RawAnswer): void => {
        if (answer.kind !== 'allowed' && answer.kind !== 'denied') reject(new Error(answer.kind));
        left -= 1;
        if (left === 0) setImmediate(resolve);
      };
      for (let i = 0; i < inTurn; i++) {
        const body = bodies[next++ % bodies.length] as Buffer; // below length
        const sinceMs = isTimed ? performance.now() : 0;
        const running = pool.raw('check', 'json', body, scope, expected, onAnswer);
        if (isTimed && running === null) heldUs.push((performance.now() - sinceMs) * 1_000);
      }
    });
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / checks;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const round = (value: number): number => Math.round(value * 100) / 100;

const [localReplicas, worker] = [await startPool(true), await startPool(false)];
while (localReplicas.localReplicas.answered < 200_000) await ask(localReplicas, 2_400, 24);
isTimed = false;
const held = heldUs.toSorted((a, b) => a - b);
const share = (part: number): number => round(held[Math.floor(part * (held.length - 1))] ?? 0);
const longest = {
  p50: share(0.5),
  p99: share(0.99),
  p999: share(0.999),
  p9999: share(0.9999),
  max: share(1),
};
console.log(JSON.stringify({ bench: 'local-replica-pool', scale, heldUs: longest }));
await ask(worker, 50_000, 24);
for (const inTurn of [24, 1]) {
  const pairs: { localReplicas: number; worker: number }[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    const count = inTurn === 1 ? CHECKS / 8 : CHECKS;
    pairs.push({
      localReplicas: await ask(localReplicas, count, inTurn),
      worker: await ask(worker, count, inTurn),
    });
  }
  const result = {
    bench: 'local-replica-pool',
    scale,
    inTurn,
    localReplicaUs: round(median(pairs.map((pair) => pair.localReplicas))),
    workerUs: round(median(pairs.map((pair) => pair.worker))),
    ratio: round(median(pairs.map((pair) => pair.localReplicas / pair.worker))),
    left: localReplicas.localReplicas.left,
  };
  console.log(JSON.stringify(result));
}
await localReplicas.stop();
await worker.stop();
