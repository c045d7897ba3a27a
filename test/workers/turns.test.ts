import { expect, test } from 'vitest';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import type {
  AnswerBatch,
  RequestBatch,
  ScopeEntry,
  WorkerRequest,
} from '../../src/protocol/messages.ts';
import { ShardHost } from '../../src/workers/host/shard-host.ts';
import { WORKER_DEFAULTS } from '../../src/workers/host/worker-settings.ts';
import { PackingShardIndex } from '../../src/workers/indexes/packing-index.ts';
import { EPOCH, MemoryShardSource } from './memory-shard-source.ts';
import { MODEL_VERSION, viewer } from './pool-fixture.ts';

const ROWS = 5_000;
const A = { projectId: 'p', tenantId: 'a' };
const B = { projectId: 'p', tenantId: 'b' };
const CHECK_ID = 1_000;

const scopeOf = (shard: ShardKey): ScopeEntry => ({
  ...shard,
  modelVersion: MODEL_VERSION,
  readBudget: 1_000_000,
  settingsVersion: 1,
  epoch: EPOCH,
  forkId: '',
  isHeldOnly: false,
  expectedProjectId: '',
  expectedTenantId: '',
});

const batchOf = (shard: ShardKey, requests: readonly WorkerRequest[]): RequestBatch => ({
  scopes: [scopeOf(shard)],
  tokens: [''],
  raw: new Float64Array(0),
  bodies: new Uint8Array(0),
  requests,
  cancelled: [],
  control: [],
});

const common = (requestId: number) => ({
  requestId,
  scope: 0,
  minRevision: 0,
  deadlineMs: Infinity,
});

const listOf = (requestId: number): WorkerRequest => ({
  ...common(requestId),
  query: {
    kind: 'streamObjects',
    args: {
      contextual: [],
      context: '',
      namespace: 'doc',
      relation: 'viewer',
      subject: { kind: 'user', userId: 'u' },
    },
  },
});

const checkOf = (requestId: number): WorkerRequest => {
  const subject = { kind: 'user', userId: 'u' } as const;
  const query = { namespace: 'doc', objectId: 'd7', relation: 'viewer', subject };
  const args = { query, contextual: [], context: '' };
  return { ...common(requestId), query: { kind: 'check', args } };
};

/** A host with two loaded shards, and every answer in the order in which it left. */
async function start() {
  const source = new MemoryShardSource();
  source.rowsPerSlice = 1e9;
  const changes = Array.from({ length: ROWS }, (_, i) => viewer('insert', `d${i}`, 'u'));
  for (const shard of [A, B]) source.commit(shard, changes);
  const left: number[] = [];
  const record = (answers: AnswerBatch): AnswerBatch => {
    for (const response of answers.responses) {
      if (response.error !== undefined || !response.isPart) left.push(response.requestId);
    }
    return answers;
  };
  // Every look at the clock takes a quarter of a slice: slices are counted, not timed.
  let nowMs = performance.now();
  const host = new ShardHost({
    settings: { ...WORKER_DEFAULTS, poolMax: 3, indexBytesMax: 1e9, pollMs: 1e9 },
    clock: { nowMs: () => 0, monotonicMs: () => (nowMs += WORKER_DEFAULTS.sliceMs / 4) },
    source,
    createIndex: (shared, user) => new PackingShardIndex(shared, user),
    post: (answers) => void record(answers),
    underEvaluation: new Float64Array(1),
  });
  const ask = (shard: ShardKey, requests: readonly WorkerRequest[]): void =>
    void record(host.handle(batchOf(shard, requests)));
  const model = {
    kind: 'setModel',
    ackId: 0,
    projectId: 'p',
    modelVersion: MODEL_VERSION,
    modelJson: '',
  } as const;
  host.handle({ ...batchOf(A, [checkOf(1)]), control: [model] });
  ask(B, [checkOf(2)]);
  await expect.poll(() => left.toSorted((a, b) => a - b)).toEqual([1, 2]);
  left.length = 0;
  return { host, left, ask };
}

const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a check is answered in the reply to its own message while lists of its shard run', async () => {
  const { host, left, ask } = await start();
  ask(
    A,
    Array.from({ length: 10 }, (_, i) => listOf(i + 1)),
  );
  for (let i = 0; i < 20; i++) {
    await turnOfLoop();
    const before = left.length;
    ask(A, [checkOf(CHECK_ID + i)]);
    ask(B, [checkOf(CHECK_ID + 100 + i)]);
    expect(left.slice(before)).toContain(CHECK_ID + i);
    expect(left.slice(before)).toContain(CHECK_ID + 100 + i);
  }
  expect(left.filter((id) => id < CHECK_ID).length).toBeLessThan(10);
  await expect.poll(() => left.filter((id) => id < CHECK_ID).length).toBe(10);
  host.stop();
});

test('long lists of two shards take turns, however many one of them has', async () => {
  const { host, left, ask } = await start();
  ask(
    A,
    Array.from({ length: 8 }, (_, i) => listOf(i + 1)),
  );
  ask(B, [listOf(99)]);
  await expect.poll(() => left.filter((id) => id === 99).length).toBe(1);
  // Slice about with A, the one list of B ends before two of A's eight could. What A ended since does not count.
  const before = left.slice(0, left.lastIndexOf(99));
  expect(before.filter((id) => id !== 99).length).toBeLessThanOrEqual(1);
  host.stop();
});

test('messages that follow each other without a turn of the loop do not starve a list', async () => {
  const { host, left, ask } = await start();
  ask(A, [listOf(1)]);
  let messages = 0;
  while (!left.includes(1) && messages < 100_000) {
    ask(A, [checkOf(CHECK_ID)]);
    messages += 1;
  }
  expect(left).toContain(1);
  host.stop();
});
