import { expect, test } from 'vitest';
import type { ShardKey, Subject, TupleChange } from '../../src/model/relation-tuple.ts';
import type { RawAnswer, ReadScope } from '../../src/protocol/shard-client.ts';
import { slotOfShard } from '../../src/protocol/shard-routing.ts';
import type { WorkerPool } from '../../src/workers/pool/worker-pool.ts';
import { createRandom } from '../support/dataset/random.ts';
import { byLength } from '../support/test-length.ts';
import {
  askList,
  askRaw,
  askBatch,
  MODEL_VERSION,
  reasonOf,
  scopeOf,
  startFixture,
  type Fixture,
  type FixtureOptions,
  viewer,
} from './pool-fixture.ts';

/* Single Checks of a busy shard, answered on the thread of the pool from a replica there. */
const SEED = Number(process.env['SEED'] ?? '1');
const SEEDS = byLength(1, 3) * Number(process.env['FUZZ_RUNS'] ?? '1');
const SHARD: ShardKey = { projectId: 'p', tenantId: 'hot' };
const WORKERS = 2;
const OWNER = slotOfShard(SHARD, WORKERS);
const MIB = 1024 * 1024;
const NEAR = { indexBytesMax: 64 * MIB, checksPerSecondMin: 1 };
const SPREADING = { workersMax: 1, indexBytesMax: 64 * MIB, sampleMs: 5, localReplicas: NEAR };
const WAIT = { timeout: 25_000, interval: 10 };

type Answered = { readonly answer: RawAnswer; readonly isInstant: boolean };

function bodyOf(objectId: string, relation = 'viewer'): string {
  return JSON.stringify({
    namespace: 'doc',
    object_id: objectId,
    relation,
    subject_user_id: 'u',
  });
}

/** One raw Check, and whether it was answered in its call. */
async function ask(
  pool: WorkerPool,
  scope: ReadScope,
  objectId: string,
  relation = 'viewer',
): Promise<Answered> {
  const before = pool.localReplicas.answered;
  const answer = askRaw(pool, scope, 'check', bodyOf(objectId, relation));
  const isInstant = pool.localReplicas.answered > before;
  return { answer: await answer, isInstant };
}

async function allows(pool: WorkerPool, minRevision: number, objectId: string): Promise<boolean> {
  const { answer } = await ask(pool, scopeOf(SHARD, minRevision), objectId);
  expect(['allowed', 'denied']).toContain(answer.kind);
  return answer.kind === 'allowed';
}

/** Asks in every sample, as a busy shard is asked, until `isDone`; all the time where there is a replica. */
async function untilBusy({ pool }: Fixture, isDone: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + WAIT.timeout;
  while (!(await isDone())) {
    if (performance.now() > endMs) expect.fail('the shard was never taken for a busy one');
    await (pool.localReplicas.shards === 0 ? partOfSample() : settle());
  }
}

/** Asks until Checks of the shard are answered in their calls. */
async function untilLocalReplica(
  fixture: Fixture,
  minRevision: number,
  objectId = 'd0',
): Promise<void> {
  await untilBusy(
    fixture,
    async () => (await ask(fixture.pool, scopeOf(SHARD, minRevision), objectId)).isInstant,
  );
}

async function startLocalReplicas(options: FixtureOptions = {}): Promise<Fixture> {
  const fixture = await startFixture({ workerCount: WORKERS, replication: SPREADING, ...options });
  fixture.source.commit(SHARD, [viewer('insert', 'd0', 'u')]);
  return fixture;
}

/** Less than a sample: to ask without a pause would keep a core busy. */
const partOfSample = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2));

const settle = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('single Checks of a busy shard are answered in their calls, and no worker hears of them', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, transports } = fixture;
  await untilLocalReplica(fixture, 1);
  const asked = transports.map(({ requests }) => requests);
  for (let i = 0; i < 200; i++) {
    const { answer, isInstant } = await ask(pool, scopeOf(SHARD, 1), i % 2 === 0 ? 'd0' : 'none');
    expect([answer.kind, isInstant]).toEqual([i % 2 === 0 ? 'allowed' : 'denied', true]);
  }
  expect(transports.map(({ requests }) => requests)).toEqual(asked);
  expect(pool.localReplicas.shards).toBe(1);
  expect(pool.replicatedCount).toBe(0);
  expect(fixture.events.find(({ kind }) => kind === 'shardSpread')).toMatchObject({
    replicated: { event: 'shard_spread', isLocalReplica: true, slots: [OWNER, WORKERS] },
  });
});

test('what is committed is seen by the next Check, and answered in its call again', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source } = fixture;
  await untilLocalReplica(fixture, 1);
  let instant = 0;
  const commits = byLength(80, 300);
  for (let revision = 2; revision < commits; revision++) {
    const isGrant = revision % 2 === 0;
    pool.applyCommitted([source.commit(SHARD, [viewer(isGrant ? 'insert' : 'delete', 'x', 'u')])]);
    expect(await allows(pool, revision, 'x'), `right after seq ${revision}`).toBe(isGrant);
    await settle();
    const { answer, isInstant } = await ask(pool, scopeOf(SHARD, revision), 'x');
    expect(answer.kind).toBe(isGrant ? 'allowed' : 'denied');
    if (isInstant) instant += 1;
  }
  expect(instant).toBeGreaterThan((commits * 2) / 3);
});

test('a Check whose seq the replica has not reached is left to the worker, and it catches up', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source } = fixture;
  await untilLocalReplica(fixture, 1);
  source.commit(SHARD, [viewer('insert', 'late', 'u')]); // lost on the way
  const { answer, isInstant } = await ask(pool, scopeOf(SHARD, 2), 'late');
  expect([answer.kind, isInstant]).toEqual(['allowed', false]);
  await untilLocalReplica(fixture, 2, 'late');
});

test('the first Check of each relation and model is a worker’s', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, transports } = fixture;
  await untilLocalReplica(fixture, 1);
  const asked = transports[OWNER]?.requests ?? 0;
  const first = await ask(pool, scopeOf(SHARD, 1), 'd0', 'owner');
  expect([first.answer.kind, first.isInstant]).toEqual(['denied', false]);
  expect(transports[OWNER]?.requests).toBe(asked + 1);
});

test('what the engine cannot decide at once is a worker’s, and soon is not tried any more', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source } = fixture;
  // A list of groups that no step of the hot path may walk to the end.
  const members = Array.from({ length: 300 }, (_, i) => ({
    op: 'insert' as const,
    tuple: {
      namespace: 'doc',
      objectId: 'wide',
      relation: 'viewer',
      subject: { kind: 'set' as const, namespace: 'group', objectId: `g${i}`, relation: 'member' },
    },
  }));
  for (let i = 0; i < members.length; i += 50) {
    pool.applyCommitted([source.commit(SHARD, members.slice(i, i + 50))]);
  }
  await untilLocalReplica(fixture, 7);
  const { left, answered } = pool.localReplicas;
  // Checks of a moment in which the shard has no replica are not counted. None is answered on this thread.
  while (pool.localReplicas.left - left < 20) expect(await allows(pool, 7, 'wide')).toBe(false);
  expect(pool.localReplicas.answered).toBe(answered);
  // Others of that relation are left as well for a while, and then answered again.
  await untilLocalReplica(fixture, 7);
});

test('a tenant whose Checks are dear has no more of the thread than they earn, and others have theirs', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source } = fixture;
  const other: ShardKey = { projectId: 'p', tenantId: 'cheap' };
  source.commit(other, [viewer('insert', 'd0', 'u')]);
  // The closure of `u` takes 200 steps, and has to be made again when groups change; a Check earns 100, and 20,000 are saved at first.
  const member = (groupId: string, subject: Subject): TupleChange => ({
    op: 'insert',
    tuple: { namespace: 'group', objectId: groupId, relation: 'member', subject },
  });
  const group = (objectId: string): Subject => ({
    kind: 'set',
    namespace: 'group',
    objectId,
    relation: 'member',
  });
  const dear = { namespace: 'doc', objectId: 'dear', relation: 'viewer', subject: group('none') };
  pool.applyCommitted([source.commit(SHARD, [{ op: 'insert', tuple: dear }])]);
  for (let i = 0; i < 200; i += 50) {
    const joined = Array.from({ length: 50 }, (_, k) =>
      member(`g${i + k}`, { kind: 'user', userId: 'u' }),
    );
    pool.applyCommitted([source.commit(SHARD, joined)]);
  }
  await untilLocalReplica(fixture, 6);
  const before = pool.localReplicas.answered;
  for (let i = 0; i < 600; i++) {
    pool.applyCommitted([source.commit(SHARD, [member('changing', group(`h${i}`))])]);
    await settle();
    expect(await allows(pool, 7 + i, 'dear')).toBe(false);
  }
  const answered = pool.localReplicas.answered - before;
  expect(answered).toBeGreaterThan(100);
  expect(answered).toBeLessThan(200 + 400 / 2 + 50);
  const isInstant = async (): Promise<boolean> =>
    (await ask(pool, scopeOf(other, 1), 'd0')).isInstant;
  await untilBusy(fixture, isInstant);
  for (let i = 0; i < 50; i++) expect(await isInstant()).toBe(true);
});

test('with a context a Check is a worker’s where a condition meets it, and only there', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source } = fixture;
  const conditional = viewer('insert', 'net', 'u');
  const conditionParams = '{"cidrs":["10.0.0.0/8"]}';
  const tuple = { ...conditional.tuple, conditionName: 'ip_in_cidrs', conditionParams };
  pool.applyCommitted([source.commit(SHARD, [{ ...conditional, tuple }])]);
  await untilLocalReplica(fixture, 2);
  const asked = async (objectId: string, context: object | null): Promise<Answered> => {
    const before = pool.localReplicas.answered;
    const body = { ...(JSON.parse(bodyOf(objectId)) as object), ...(context && { context }) };
    const answer = await askRaw(pool, scopeOf(SHARD, 2), 'check', JSON.stringify(body));
    return { answer, isInstant: pool.localReplicas.answered > before };
  };
  expect(await asked('d0', { ip: '10.1.2.3' })).toEqual({
    answer: { kind: 'allowed' },
    isInstant: true,
  });
  expect(await asked('net', null)).toEqual({ answer: { kind: 'denied' }, isInstant: true });
  expect(await asked('net', { ip: '10.1.2.3' })).toEqual({
    answer: { kind: 'allowed' },
    isInstant: false,
  });
  expect(await asked('net', { ip: '11.1.2.3' })).toEqual({
    answer: { kind: 'denied' },
    isInstant: false,
  });
});

test('a large change is not applied on this thread: the shard is let go of, and nobody reads what was before it', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source } = fixture;
  await untilLocalReplica(fixture, 1);
  const many = Array.from({ length: 2_000 }, (_, i) => viewer('insert', `many-${i}`, 'u'));
  pool.applyCommitted([source.commit(SHARD, many)]);
  for (let i = 0; i < 50; i++) {
    expect(await allows(pool, 2, `many-${i}`)).toBe(true);
    if (i % 5 === 0) await settle();
  }
  await untilBusy(fixture, async () => {
    await allows(pool, 2, 'd0');
    return pool.localReplicas.shards === 0;
  });
  expect(fixture.events.some(({ kind }) => kind === 'workerLost')).toBe(false);
});

test('a replica that fails is dropped, its Checks are a worker’s, and none is an allow for it', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, nears } = fixture;
  await untilLocalReplica(fixture, 1);
  const actor = nears[0]?.localReplicas?.host.actor(SHARD);
  const index = actor?.index;
  if (index === undefined) throw new Error('the shard is held');
  Object.defineProperty(index, 'reader', {
    get: () => {
      throw new Error('damaged');
    },
  });
  const { answer, isInstant } = await ask(pool, scopeOf(SHARD, 1), 'none');
  expect([answer.kind, isInstant]).toEqual(['denied', false]);
  await expect.poll(() => nears.length, WAIT).toBe(2);
  for (let i = 0; i < 20; i++) expect(await allows(pool, 1, 'none')).toBe(false);
  await expect.poll(() => pool.localReplicas.shards, WAIT).toBe(0);
  expect(fixture.fatal).toEqual([]);
});

test('a lost owner ends it, and what was shown stays shown', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source, transports, nears } = fixture;
  await untilLocalReplica(fixture, 1);
  // Ahead of what the gateway knows: shown all the same.
  source.commit(SHARD, [viewer('insert', 'ahead', 'u')]);
  nears[0]?.localReplicas?.host.actor(SHARD)?.changes.hint(0);
  await expect.poll(() => allows(pool, 1, 'ahead'), WAIT).toBe(true);
  transports[OWNER]?.crash();
  await expect.poll(() => pool.isReady, WAIT).toBe(true);
  for (let i = 0; i < 50; i++) expect(await allows(pool, 1, 'ahead')).toBe(true);
});

test('an evicted replica, other settings and another history are left to the worker', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, source, nears } = fixture;
  for (const object of ['d1', 'd2']) {
    pool.applyCommitted([source.commit(SHARD, [viewer('insert', object, 'u')])]);
  }
  await untilLocalReplica(fixture, 3);
  pool.applyCommitted([source.commit(SHARD, [viewer('insert', 'd3', 'u')], 4)]);
  await settle();
  const old = await askRaw(pool, scopeOf(SHARD, 3), 'check', bodyOf('d2'));
  expect(old).toMatchObject({ kind: 'error', error: { reason: 'SETTINGS_OLD' } });
  nears[0]?.localReplicas?.host.actor(SHARD)?.evict();
  const { answer } = await ask(pool, scopeOf(SHARD, 3, { settingsVersion: 4 }), 'd2');
  expect(answer.kind).toBe('allowed');
  source.diverge(SHARD, { revision: 2, forkId: 'other' });
  pool.hint(null, 0);
  await expect
    .poll(
      () =>
        ask(pool, scopeOf(SHARD, 2, { settingsVersion: 4 }), 'd0').then(
          (asked) => asked.answer.kind,
        ),
      WAIT,
    )
    .toBe('allowed');
});

test('a comparison with what is stored finds a replica that differs, and loads it again', async () => {
  const stats = { differences: 0 };
  await using fixture = await startLocalReplicas({
    onStats: ({ fsck }) => {
      stats.differences += fsck.differences;
    },
  });
  const { pool, source, nears } = fixture;
  await untilLocalReplica(fixture, 1);
  expect(await pool.checkIndexes()).toMatchObject({ differences: 0, shards: 2 });
  const actor = nears[0]?.localReplicas?.host.actor(SHARD);
  actor?.index.apply('[[1,"doc","stray","viewer","","u","",null,null,null]]');
  expect((await pool.checkIndexes()).differences).toBe(1);
  expect(source.loads).toBe(3);
});

/*
 * Linearizability of a counter and of a door, by single Checks and lists: every commit adds an object and opens or shuts the
 * door. A read shows at least what was acknowledged before it began, and what any read that ended before it began had shown,
 * whoever answered the two; and nothing that was not committed.
 */
test(`Checks never go back, on this thread or in a worker, while the shard changes and both are lost (SEED=${SEED})`, async () => {
  let instant = 0;
  for (let seed = SEED; seed < SEED + SEEDS; seed++) {
    const random = createRandom(seed);
    await using fixture = await startLocalReplicas();
    const { pool, source, transports, nears } = fixture;
    await pool.setModel('p', MODEL_VERSION + 1, '');
    let committed = 1;
    let acknowledged = 1;
    let shown = 1;
    let reads = 0;
    let isOver = false;
    let version = MODEL_VERSION;
    const pause = (ms: number): Promise<void> =>
      new Promise((resolve) => setTimeout(resolve, random.below(ms)));
    source.fault = () => (random.next() < 0.2 ? pause(8) : Promise.resolve());
    const write = async (): Promise<void> => {
      while (!isOver) {
        const isOpen = committed % 2 === 0;
        const change = source.commit(SHARD, [
          viewer('insert', `d${committed}`, 'u'),
          viewer(isOpen ? 'delete' : 'insert', 'door', 'u'),
        ]);
        committed += 1;
        const mine = committed;
        // Committed, and not yet known to the gateway: a replica may see it all the same.
        if (random.next() < 0.5) transports[OWNER]?.host?.actor(SHARD)?.changes.hint(0);
        if (random.next() < 0.5) nears.at(-1)?.localReplicas?.host.actor(SHARD)?.changes.hint(0);
        await pause(6);
        if (random.next() < 0.8) pool.applyCommitted([change]); // else lost
        acknowledged = Math.max(acknowledged, mine);
        await pause(12);
      }
    };
    const disturb = async (): Promise<void> => {
      while (!isOver) {
        await pause(150);
        const fate = random.next();
        const near = nears.at(-1)?.localReplicas;
        if (fate < 0.1) transports[OWNER]?.crash();
        else if (fate < 0.3) {
          const actor = near?.host.actor(SHARD);
          if (actor?.isEvictable === true) actor.evict();
        } else if (fate < 0.5) version = MODEL_VERSION + random.below(2);
        else if (fate < 0.6) pool.hint(null, 0);
      }
    };
    const scope = (): ReadScope => scopeOf(SHARD, acknowledged, { modelVersion: version });
    const list = async (): Promise<void> => {
      while (!isOver) {
        const least = Math.max(acknowledged, shown);
        const query = { namespace: 'doc', relation: 'viewer', userId: 'u' };
        const answer = await askList(pool, scope(), query).catch(reasonOf);
        await pause(4);
        if (typeof answer === 'string') continue;
        const count = answer.filter((id) => id !== 'door').length;
        expect(count, `seed ${seed}: a list went back`).toBeGreaterThanOrEqual(least);
        shown = Math.max(shown, count);
      }
    };
    const check = async (): Promise<void> => {
      while (!isOver) {
        const least = Math.max(acknowledged, shown);
        const before = committed;
        const objectId = [`d${least - 1}`, `d${committed - 1}`, 'door', `d${committed + 3}`][
          random.below(4)
        ] as string;
        const { answer, isInstant } = await ask(pool, scope(), objectId);
        if (random.next() < 0.2) await pause(2);
        if (answer.kind !== 'allowed' && answer.kind !== 'denied') {
          expect(answer.kind).toBe('error');
          continue;
        }
        reads += 1;
        if (isInstant) instant += 1;
        const isAllowed = answer.kind === 'allowed';
        const context = `seed ${seed}: ${objectId} of ${least} to ${committed}, instant ${isInstant}`;
        if (objectId === 'door') {
          // The door is open after an even number of commits; which one was seen is certain if there is one to see.
          if (least === before && before === committed) {
            expect(isAllowed, context).toBe(before % 2 === 0);
          }
        } else {
          const n = Number(objectId.slice(1));
          if (n < least) expect(isAllowed, context).toBe(true);
          if (n >= committed) expect(isAllowed, context).toBe(false);
          if (isAllowed) shown = Math.max(shown, n + 1);
        }
      }
    };
    const all = [write(), disturb(), list(), ...Array.from({ length: 6 }, check)];
    const from = instant;
    const isEnough = (): boolean =>
      reads > byLength(300, 1_500) && instant - from > byLength(80, 300);
    await expect.poll(isEnough, { ...WAIT, timeout: 250_000 }).toBe(true);
    isOver = true;
    await Promise.all(all);
  }
  expect(instant).toBeGreaterThan(0);
}, 300_000);

test('a Check that ended a worker is refused, also where the thread itself would answer', async () => {
  await using fixture = await startLocalReplicas();
  const { pool, transports } = fixture;
  await untilLocalReplica(fixture, 1);
  // The worker dies of a Check while the replica is not to be asked: its owner has just been lost.
  transports[OWNER]?.crash();
  await expect.poll(() => pool.isReady, WAIT).toBe(true);
  const killer = askRaw(pool, scopeOf(SHARD, 1), 'check', bodyOf('killer'));
  await new Promise((resolve) => setImmediate(resolve));
  transports[OWNER]?.crash(transports[OWNER].lastRawId);
  expect((await killer).kind).toBe('error');
  await expect.poll(() => pool.isReady, WAIT).toBe(true);
  await untilLocalReplica(fixture, 1);
  const again = await askRaw(pool, scopeOf(SHARD, 1), 'check', bodyOf('killer'));
  expect(again).toMatchObject({ kind: 'error', error: { reason: 'REQUEST_REFUSED' } });
});

test('a busy shard is answered as before where it asks for anything but single Checks', async () => {
  await using fixture = await startLocalReplicas();
  const { pool } = fixture;
  const item = { namespace: 'doc', objectId: 'd0', relation: 'viewer', userId: 'u' };
  for (let i = 0; i < 200; i++) {
    const [result] = await askBatch(pool, scopeOf(SHARD, 1), [item]);
    expect(result?.allowed).toBe(true);
  }
  expect(pool.localReplicas.shards).toBe(0);
});
