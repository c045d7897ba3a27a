import { describe, expect, onTestFinished, test } from 'vitest';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import type {
  AnswerBatch,
  ControlMessage,
  RequestBatch,
  ScopeEntry,
  WorkerReport,
  WorkerRequest,
  WorkerStats,
} from '../../src/protocol/messages.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { ShardHost } from '../../src/workers/host/shard-host.ts';
import { WORKER_DEFAULTS } from '../../src/workers/host/worker-settings.ts';
import { PackingShardIndex } from '../../src/workers/indexes/packing-index.ts';
import { EPOCH, MemoryShardSource } from './memory-shard-source.ts';
import { MODEL_VERSION, viewer } from './pool-fixture.ts';

const A: ShardKey = { projectId: 'p', tenantId: 'a' };
const B: ShardKey = { projectId: 'p', tenantId: 'b' };

const scopeOf = (shard: ShardKey, modelVersion: number): ScopeEntry => ({
  ...shard,
  modelVersion,
  readBudget: 1_000_000,
  settingsVersion: 1,
  epoch: EPOCH,
  forkId: '',
  isHeldOnly: false,
  expectedProjectId: '',
  expectedTenantId: '',
});

type Ask = {
  id?: number;
  shard?: ShardKey;
  modelVersion?: number;
  minRevision?: number;
  object?: string;
};

/** A host over a store in memory, what it answered, and a clock that a test may stop. */
function start(options: { indexBytesMax?: number; loadTimeoutMs?: number } = {}) {
  const source = new MemoryShardSource();
  source.rowsPerSlice = 1e9;
  const answers = new Map<number, unknown>();
  const acks: AnswerBatch['acks'][number][] = [];
  const wanted: string[] = [];
  const reports: WorkerReport[] = [];
  const stats: WorkerStats[] = [];
  const time: { nowMs: number | undefined } = { nowMs: undefined };
  const take = (batch: AnswerBatch): void => {
    for (const { requestId, ...rest } of batch.responses) answers.set(requestId, rest);
    acks.push(...batch.acks);
    wanted.push(...batch.modelsWanted.map((each) => `${each.projectId}:${each.modelVersion}`));
    reports.push(...batch.reports);
    if (batch.stats !== null) stats.push(batch.stats);
  };
  let posts = 0;
  const host = new ShardHost({
    settings: {
      ...WORKER_DEFAULTS,
      poolMax: 3,
      indexBytesMax: options.indexBytesMax ?? 1e9,
      loadTimeoutMs: options.loadTimeoutMs ?? 10_000,
      pollMs: 3_600_000,
    },
    clock: { nowMs: () => 0, monotonicMs: () => time.nowMs ?? performance.now() },
    source,
    createIndex: (shared, user) => new PackingShardIndex(shared, user),
    post: (batch) => {
      posts += 1;
      take(batch);
    },
    underEvaluation: new Float64Array(1),
  });
  onTestFinished(() => host.stop());
  const send = (part: Partial<RequestBatch>): void =>
    take(
      host.handle({
        scopes: [],
        tokens: [''],
        raw: new Float64Array(0),
        bodies: new Uint8Array(0),
        requests: [],
        cancelled: [],
        control: [],
        ...part,
      }),
    );
  const control = (...messages: ControlMessage[]): void => send({ control: messages });
  const setModel = (modelVersion = MODEL_VERSION, modelJson = '', ackId = 0): void =>
    control({ kind: 'setModel', ackId, projectId: 'p', modelVersion, modelJson });
  let ids = 0;
  const requestOf = (ask: Ask, scope: number): WorkerRequest => ({
    requestId: ask.id ?? ++ids,
    scope,
    minRevision: ask.minRevision ?? 0,
    deadlineMs: Infinity,
    query: {
      kind: 'check',
      args: {
        contextual: [],
        context: '',
        query: {
          namespace: 'doc',
          objectId: ask.object ?? 'd1',
          relation: 'viewer',
          subject: { kind: 'user', userId: 'u' },
        },
      },
    },
  });
  const check = (...asks: Ask[]): void =>
    send({
      scopes: asks.map((ask) => scopeOf(ask.shard ?? A, ask.modelVersion ?? MODEL_VERSION)),
      requests: asks.map((ask, at) => requestOf(ask, at)),
    });
  const answered = (id: number) => expect.poll(() => answers.get(id), { interval: 2 });
  const reason = (id: number): unknown =>
    (answers.get(id) as { error?: { reason?: string } })?.error?.reason;
  return {
    host,
    source,
    answers,
    acks,
    wanted,
    reports,
    stats,
    time,
    send,
    control,
    setModel,
    check,
    answered,
    reason,
    requestOf,
    posts: () => posts,
  };
}

describe('models', () => {
  test('a request whose model is not known asks for it, once, and is answered when it comes', async () => {
    const { source, check, wanted, setModel, answered, answers, host } = start();
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    check({ id: 1 });
    check({ id: 2 }, { id: 3, modelVersion: 9 });
    expect([wanted, answers.size]).toEqual([[`p:${MODEL_VERSION}`, 'p:9'], 0]);
    setModel();
    await answered(1).toBeDefined();
    await answered(2).toEqual(answers.get(1));
    expect(answers.has(3)).toBe(false);
    expect(host.actor(A)?.isLoaded).toBe(true);
    check({ id: 4, modelVersion: 9 });
    expect(wanted).toHaveLength(2);
    setModel(9);
    await answered(3).toEqual(answers.get(1));
    await answered(4).toEqual(answers.get(1));
  });

  test('a model that nobody knows fails who waits for it, and is asked for anew', () => {
    const { check, control, reason, wanted } = start();
    check({ id: 1 }, { id: 2 }, { id: 3, modelVersion: 9 });
    control({ kind: 'modelUnknown', projectId: 'p', modelVersion: MODEL_VERSION });
    expect([reason(1), reason(2), reason(3)]).toEqual([
      'SHARD_UNAVAILABLE',
      'SHARD_UNAVAILABLE',
      undefined,
    ]);
    check({ id: 4 });
    expect(wanted).toEqual([`p:${MODEL_VERSION}`, 'p:9', `p:${MODEL_VERSION}`]);
  });

  test('a model is acknowledged if that is asked for; a bad one fails who waits for it', () => {
    const { setModel, acks, check, reason } = start();
    setModel(1, '', 5);
    setModel(2, '', 0);
    expect(acks).toEqual([{ ackId: 5 }]);
    check({ id: 1, modelVersion: 3 });
    setModel(3, '{"namespaces": 7}', 6);
    expect(acks[1]).toMatchObject({ ackId: 6, error: { reason: expect.any(String) as unknown } });
    expect(reason(1)).toBe('INTERNAL');
    setModel(4, '{"namespaces": 7}', 0);
    expect(acks).toHaveLength(2);
  });

  test('who waits too long for a model is told so; who is gone is forgotten', async () => {
    const { host, check, reason, send, time, answers, setModel } = start({ loadTimeoutMs: 1_000 });
    time.nowMs = 5_000;
    check({ id: 1 }, { id: 2 });
    send({ cancelled: [2] });
    time.nowMs = 5_500;
    check({ id: 3 });
    host.start();
    await expect.poll(() => answers.size).toBe(0);
    time.nowMs = 6_000;
    await expect.poll(() => reason(1)).toBe('SHARD_UNAVAILABLE');
    expect([answers.has(2), answers.has(3)]).toEqual([false, false]);
    time.nowMs = 6_400;
    setModel();
    await expect.poll(() => answers.has(3)).toBe(true);
    expect([reason(3), answers.has(2)]).toEqual([undefined, false]);
  });
});

describe('requests', () => {
  test('of one message go to the shards that they name', async () => {
    const { source, check, setModel, answered, answers } = start();
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    source.commit(B, [viewer('insert', 'd2', 'u')]);
    setModel();
    check(
      { id: 1 },
      { id: 2, shard: B },
      { id: 3, object: 'd2' },
      { id: 4, shard: B, object: 'd2' },
    );
    for (const id of [1, 2, 3, 4]) await answered(id).toBeDefined();
    expect([answers.get(1), answers.get(2)]).not.toEqual([answers.get(2), answers.get(1)]);
    expect([answers.get(1), answers.get(2)]).toEqual([answers.get(4), answers.get(3)]);
    check({ id: 5 }, { id: 6, shard: B });
    for (const id of [5, 6]) await answered(id).toBeDefined();
    expect([answers.get(5), answers.get(6)]).toEqual([answers.get(1), answers.get(2)]);
  });

  test('one whose scope the message does not have is an error of its own', () => {
    const { send, requestOf, reason, setModel } = start();
    setModel();
    send({ scopes: [], requests: [requestOf({ id: 9 }, 0)] });
    expect(reason(9)).toBe('INTERNAL');
  });

  test('with the same scope object are those of one shard, whatever came before', async () => {
    const { source, send, setModel, requestOf, answered, answers } = start();
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    setModel();
    const scopes = [scopeOf(A, MODEL_VERSION), scopeOf(B, MODEL_VERSION)];
    const requests = [0, 0, 1, 1, 0].map((scope, at) => requestOf({ id: at + 1 }, scope));
    send({ scopes, requests });
    for (const id of [1, 2, 3, 4, 5]) await answered(id).toBeDefined();
    expect(answers.get(2)).toEqual(answers.get(1));
    expect(answers.get(5)).toEqual(answers.get(1));
    expect(answers.get(4)).toEqual(answers.get(3));
    expect(answers.get(3)).not.toEqual(answers.get(1));
    // The scope of an older message is not that of this one, though it is the same object.
    send({ scopes, requests: [requestOf({ id: 6 }, 0)] });
    expect(answers.get(6)).toEqual(answers.get(1));
  });

  test('that are cancelled are not answered, the next of their shard are', async () => {
    const { source, check, setModel, send, answered, answers } = start();
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    setModel();
    check({ id: 1 });
    send({ cancelled: [1] });
    check({ id: 2 });
    await answered(2).toBeDefined();
    expect(answers.has(1)).toBe(false);
  });
});

describe('shards', () => {
  test('a change or a hint for one goes to it, and loads none', async () => {
    const { source, check, setModel, answered, control, host } = start();
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    setModel();
    check({ id: 1 });
    await answered(1).toBeDefined();
    const change = source.commit(A, [viewer('insert', 'd2', 'u')]);
    control({ kind: 'committed', change });
    expect(host.actor(A)?.watermark).toBe(2);
    control({ kind: 'committed', change: source.commit(B, [viewer('insert', 'd2', 'u')]) });
    control({ kind: 'hint', shard: B, revision: 1 });
    expect(host.actor(B)).toBeUndefined();
    source.commit(A, [viewer('insert', 'd3', 'u')]);
    control({ kind: 'hint', shard: A, revision: 3 });
    await expect.poll(() => host.actor(A)?.watermark).toBe(3);
    // A hint for all asks the store for the heads.
    source.commit(A, [viewer('insert', 'd4', 'u')]);
    control({ kind: 'hint', shard: null, revision: 0 });
    await expect.poll(() => host.actor(A)?.watermark).toBe(4);
    // With what its shards share.
    expect(host.indexBytes).toBeGreaterThan(host.actor(A)?.indexBytes ?? Infinity);
  });

  test('the poll finds what no hint told of, and asks for nothing where all is the same', async () => {
    const { source, check, setModel, answered, host } = start();
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    setModel();
    check({ id: 1 });
    await answered(1).toBeDefined();
    const { pages } = source;
    await host.poll();
    expect([source.pages, host.actor(A)?.state]).toEqual([pages, 'ready']);
    for (const difference of [{ forkId: '55' }, { epoch: 2 }, { revision: 0, forkId: '0' }]) {
      const { loads } = source;
      source.diverge(A, difference);
      await host.poll();
      await expect.poll(() => source.loads, { interval: 2 }).toBe(loads + 1);
      await expect.poll(() => host.actor(A)?.state, { interval: 2 }).toBe('ready');
      expect(host.actor(A)?.position).toMatchObject(difference);
    }
  });

  test('polls do not overlap; that the store is away is told once, until it is back', async () => {
    const { source, check, setModel, answered, host, reports, send } = start();
    setModel();
    check({ id: 1 });
    await answered(1).toBeDefined();
    let asked = 0;
    const held = Promise.withResolvers<void>();
    source.fault = () => {
      asked += 1;
      return held.promise;
    };
    const polls = [host.poll(), host.poll()];
    expect(asked).toBe(1);
    held.reject(new Error('away'));
    await Promise.all(polls);
    await expect.poll(() => reports.map(({ event }) => event)).toEqual(['poll_failed']);
    expect(reports[0]).toMatchObject({
      shardHash: '',
      error: expect.stringContaining('away') as unknown,
    });
    source.fault = () => Promise.reject(new Error('still away'));
    await host.poll();
    send({});
    expect(reports).toHaveLength(1);
    source.fault = () => Promise.resolve();
    await host.poll();
    source.fault = () => Promise.reject(new Error('again'));
    await host.poll();
    await expect.poll(() => reports.length).toBe(2);
    host.stop();
    source.fault = () => Promise.resolve();
    await host.poll();
    source.fault = () => Promise.reject(new Error('at the end'));
    await host.poll();
    send({});
    expect(reports).toHaveLength(2);
  });

  test('one that cannot be loaded is forgotten, and what went wrong is told without its name', async () => {
    const { source, check, setModel, answered, host, reports, reason } = start();
    setModel();
    source.fault = () =>
      Promise.reject(new AppError('INTERNAL', 'no snapshot', {}, new Error('of this')));
    check({ id: 1 });
    await answered(1).toBeDefined();
    expect([reason(1), host.actor(A)]).toEqual(['SHARD_UNAVAILABLE', undefined]);
    expect(reports).toEqual([
      {
        event: 'shard_load_failed',
        shardHash: expect.stringMatching(/^[0-9a-f]{8}$/) as unknown,
        error: 'no snapshot (of this)',
      },
    ]);
  });

  test('idle ones go when their memory is needed, and come back', async () => {
    const { source, check, setModel, answered, host, stats } = start({ indexBytesMax: 300_000 });
    const many = Array.from({ length: 1_500 }, (_, i) => viewer('insert', `d${i}`, `u${i}`));
    const shards = ['a', 'b', 'c', 'd'].map((tenantId) => ({ projectId: 'p', tenantId }));
    for (const shard of shards) source.commit(shard, many);
    setModel();
    for (const [at, shard] of shards.entries()) {
      check({ id: at + 1, shard });
      await answered(at + 1).toBeDefined();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(host.indexBytes).toBeLessThanOrEqual(300_000);
    expect(shards.map((shard) => host.actor(shard)?.isLoaded === true)).toContain(false);
    expect(host.actor(shards[3] as ShardKey)?.isLoaded).toBe(true);
    check({ id: 9, shard: shards[0] as ShardKey });
    await answered(9).toBeDefined();
    host.start();
    await expect.poll(() => stats.length).toBeGreaterThan(0);
    const first = stats[0] as WorkerStats;
    expect(first.shardLoads).toBe(source.loads);
    expect(first.shardEvictions).toBeGreaterThan(0);
    expect(first.shardsLoaded).toBe(source.loads - first.shardEvictions);
    expect(first.tuples).toBe(first.shardsLoaded * 1_500);
    expect(first.indexBytes).toBe(host.indexBytes);
    await expect.poll(() => stats.length).toBeGreaterThan(1);
    expect(stats[1]).toMatchObject({ shardLoads: 0, shardEvictions: 0, catchUps: 0 });
  });

  test('figures tell of what waits, of lags, of faults and of catch-ups', async () => {
    const { source, check, setModel, answered, host, stats, control } = start();
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    setModel();
    check({ id: 1 });
    await answered(1).toBeDefined();
    source.fault = (what) =>
      what === 'load' ? Promise.reject(new Error('no')) : new Promise(() => undefined);
    check({ id: 2, shard: B });
    await answered(2).toBeDefined();
    check({ id: 3, minRevision: 5 }, { id: 4, minRevision: 5 });
    control({ kind: 'hint', shard: A, revision: 5 });
    host.start();
    await expect.poll(() => stats.length).toBeGreaterThan(0);
    expect(stats[0]).toMatchObject({
      shardsLoaded: 1,
      tuples: 1,
      watermarkLagMax: 4,
      queueDepth: 2,
      shardLoads: 1,
      shardLoadFailures: 1,
      shardEvictions: 0,
      catchUps: 1,
    });
    await expect.poll(() => stats.length).toBeGreaterThan(1);
    expect(stats[1]).toMatchObject({ shardLoadFailures: 0, catchUps: 0, queueDepth: 2 });
  });

  test('who waits too long for a seq is told so by the sweep', async () => {
    const { source, check, setModel, answered, host, time, reason, answers } = start({
      loadTimeoutMs: 1_000,
    });
    source.commit(A, [viewer('insert', 'd1', 'u')]);
    setModel();
    check({ id: 1 });
    await answered(1).toBeDefined();
    time.nowMs = 5_000;
    check({ id: 2, minRevision: 5 });
    time.nowMs = 5_600;
    check({ id: 3, minRevision: 5 });
    time.nowMs = 6_000;
    host.start();
    await expect.poll(() => reason(2)).toBe('SHARD_UNAVAILABLE');
    expect(answers.has(3)).toBe(false);
  });
});

test('nothing is posted after the end', async () => {
  const { source, check, setModel, host, posts, answers } = start();
  source.commit(A, [viewer('insert', 'd1', 'u')]);
  setModel();
  check({ id: 1 });
  host.stop();
  await expect.poll(() => host.actor(A)?.isLoaded).toBe(true);
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  expect([posts(), answers.size]).toEqual([0, 0]);
});
