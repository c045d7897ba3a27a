import { expect, test } from 'vitest';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { slotOfShard } from '../../src/protocol/shard-routing.ts';
import type { ReplicationOptions } from '../../src/workers/pool/shard-replication.ts';
import { createRandom } from '../support/dataset/random.ts';
import { byLength } from '../support/test-length.ts';
import {
  askList,
  checkViewer,
  reasonOf,
  scopeOf,
  startFixture,
  type Fixture,
  viewer,
} from './pool-fixture.ts';

const SEED = Number(process.env['SEED'] ?? '1');
const SEEDS = byLength(1, 3) * Number(process.env['FUZZ_RUNS'] ?? '1');
const SHARD: ShardKey = { projectId: 'p', tenantId: 'hot' };
const WORKERS = 3;
const OWNER = slotOfShard(SHARD, WORKERS);
const INDEX_BYTES_MAX = 64 * 1024 * 1024;
const SPREADING = {
  workersMax: WORKERS,
  indexBytesMax: INDEX_BYTES_MAX,
  sampleMs: 5,
  busySamples: 2,
};

/** Keeps the shard asked, as a tenant does whose owner cannot keep up, until it is over. */
function keepAsking(fixture: Fixture, revision: () => number): { end(): Promise<void> } {
  let isOver = false;
  const callers = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      await checkViewer(fixture.pool, scopeOf(SHARD, revision()), 'd1', 'u').catch(reasonOf);
    }
  });
  return {
    end: async () => {
      isOver = true;
      await Promise.all(callers);
    },
  };
}

type Spreading = Fixture & {
  /** Until all workers have said what they hold: before that nothing is spread, and asking only keeps a core busy. */
  reported(): Promise<void>;
};

async function startSpreading(replication: ReplicationOptions = SPREADING): Promise<Spreading> {
  const told = new Set<number>();
  const fixture = await startFixture({
    workerCount: WORKERS,
    replication,
    onStats: ({ recentShards }, slot) => {
      if (recentShards !== undefined && (slot !== OWNER || recentShards.length > 0)) told.add(slot);
    },
  });
  const reported = (): Promise<void> =>
    expect.poll(() => told.size, { timeout: 20_000 }).toBe(WORKERS);
  return { ...fixture, reported };
}

async function replicateShards(fixture: Fixture): Promise<void> {
  const { transports, events } = fixture;
  if (transports[OWNER] !== undefined) transports[OWNER].busy = 1;
  const told = events.length;
  await expect
    .poll(() => events.slice(told).some(({ kind }) => kind === 'shardSpread'), { timeout: 20_000 })
    .toBe(true);
}

test('a shard that keeps its owner busy is answered by all workers, each from its own index', async () => {
  await using fixture = await startSpreading();
  const { pool, source, transports } = fixture;
  source.commit(SHARD, [viewer('insert', 'd1', 'u')]);
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'd1', 'u')).toBe(true);
  await fixture.reported();
  const asking = keepAsking(fixture, () => 1);
  await replicateShards(fixture);
  const before = transports.map(({ requests }) => requests);
  for (let i = 0; i < 300; i++) {
    expect(await checkViewer(pool, scopeOf(SHARD, 1), 'd1', 'u')).toBe(true);
  }
  await asking.end();
  const asked = transports.map(({ requests }, i) => requests - (before[i] ?? 0));
  for (const { host } of transports) expect(host?.actor(SHARD)?.state).toBe('ready');
  expect(Math.min(...asked), `shares ${asked.join(', ')}`).toBeGreaterThan(300 / WORKERS / 2);
  // What is written is told to all of them.
  const pages = source.pages;
  pool.applyCommitted([source.commit(SHARD, [viewer('insert', 'd2', 'u')])]);
  for (let i = 0; i < 2 * WORKERS; i++) {
    expect(await checkViewer(pool, scopeOf(SHARD, 2), 'd2', 'u')).toBe(true);
  }
  expect(source.pages, 'nobody had to read it').toBe(pages);
});

test('a shard of a worker with time is left alone, as is one for which others have no room', async () => {
  await using idle = await startSpreading();
  await using small = await startSpreading({ ...SPREADING, indexBytesMax: 1_000 });
  await using spread = await startSpreading();
  for (const fixture of [idle, small, spread]) {
    fixture.source.commit(SHARD, [viewer('insert', 'd1', 'u')]);
    await checkViewer(fixture.pool, scopeOf(SHARD, 1), 'd1', 'u');
  }
  const owner = small.transports[OWNER];
  if (owner !== undefined) owner.busy = 1;
  await Promise.all([idle.reported(), small.reported(), spread.reported()]);
  const asking = [idle, small, spread].map((fixture) => keepAsking(fixture, () => 1));
  // In the time in which one that is busy, and has room, is spread.
  await replicateShards(spread);
  expect([idle.pool.replicatedCount, small.pool.replicatedCount]).toEqual([0, 0]);
  await Promise.all(asking.map((one) => one.end()));
});

test('once one worker would do the owner answers alone, and the others give their indexes back', async () => {
  await using fixture = await startSpreading({ ...SPREADING, idleSamples: 3 });
  const { pool, source, transports } = fixture;
  source.commit(SHARD, [viewer('insert', 'd1', 'u')]);
  await checkViewer(pool, scopeOf(SHARD, 1), 'd1', 'u');
  await fixture.reported();
  const asking = keepAsking(fixture, () => 1);
  await replicateShards(fixture);
  await asking.end();
  for (const transport of transports) transport.busy = 0;
  await expect.poll(() => pool.replicatedCount, { timeout: 20_000 }).toBe(0);
  const held = (): boolean[] => transports.map(({ host }) => host?.actor(SHARD)?.isLoaded === true);
  await expect.poll(held).toEqual(transports.map((_, slot) => slot === OWNER));
  expect(await checkViewer(pool, scopeOf(SHARD, 1), 'd1', 'u')).toBe(true);
});

test('another history ends it: what replicas have shown of the lost one holds up no read', async () => {
  await using fixture = await startSpreading();
  const { pool, source, transports } = fixture;
  for (const object of ['d1', 'd2', 'd3']) source.commit(SHARD, [viewer('insert', object, 'u')]);
  await checkViewer(pool, scopeOf(SHARD, 3), 'd3', 'u');
  await fixture.reported();
  const asking = keepAsking(fixture, () => 1);
  await replicateShards(fixture);
  await asking.end();
  for (const transport of transports) transport.busy = 0;
  source.diverge(SHARD, { revision: 2, forkId: 'other' });
  pool.hint(SHARD, 0);
  for (let i = 0; i < 10; i++) {
    expect(await checkViewer(pool, scopeOf(SHARD, 2), 'd1', 'u')).toBe(true);
  }
  await expect.poll(() => pool.replicatedCount, { timeout: 20_000 }).toBe(0);
});

/*
 * Linearizability of a counter: every commit adds an object, a read counts them. A read shows at least what was acknowledged
 * before it began, and at least what any read that ended before it began had shown, whichever workers answered
 * the two; and no more than was committed. Replicas are made to run ahead of the gateway, and to lag behind.
 */
test(`reads of a spread shard never go back, while it changes, spreads and workers crash (SEED=${SEED})`, async () => {
  let ahead = 0;
  for (let seed = SEED; seed < SEED + SEEDS; seed++) {
    const random = createRandom(seed);
    await using fixture = await startFixture({
      workerCount: WORKERS,
      replication: { ...SPREADING, idleSamples: 6 },
    });
    const { pool, source, transports } = fixture;
    let committed = 0;
    let acknowledged = 0;
    let shown = 0;
    let reads = 0;
    let isOver = false;
    const pause = (ms: number): Promise<void> =>
      new Promise((resolve) => setTimeout(resolve, random.below(ms)));
    source.fault = () => (random.next() < 0.3 ? pause(12) : Promise.resolve());
    const write = async (): Promise<void> => {
      while (!isOver) {
        const change = source.commit(SHARD, [viewer('insert', `d${committed}`, 'u')]);
        committed += 1;
        // Committed, and not yet known to the gateway: a replica may see it all the same.
        const mine = committed;
        if (random.next() < 0.7) {
          transports[random.below(WORKERS)]?.host?.actor(SHARD)?.changes.hint(0);
        }
        await pause(8);
        if (random.next() < 0.7) pool.applyCommitted([change]); // else lost
        acknowledged = Math.max(acknowledged, mine);
      }
    };
    const disturb = async (): Promise<void> => {
      while (!isOver) {
        await pause(60);
        const transport = transports[random.below(WORKERS)];
        const fate = random.next();
        if (transport === undefined) continue;
        if (fate < 0.15) transport.crash();
        else if (fate < 0.75)
          for (const one of transports) one.busy = one === transports[OWNER] ? 1 : 0.1;
        else for (const one of transports) one.busy = 0;
      }
    };
    const read = async (): Promise<void> => {
      while (!isOver) {
        const least = Math.max(acknowledged, shown);
        const query = { namespace: 'doc', relation: 'viewer', userId: 'u' };
        const answer = await askList(pool, scopeOf(SHARD, acknowledged), query).catch(reasonOf);
        if (typeof answer === 'string') {
          expect(['WORKER_LOST', 'SHARD_UNAVAILABLE', 'QUEUE_FULL']).toContain(answer);
          await pause(4);
          continue;
        }
        reads += 1;
        expect(answer.length, `seed ${seed}: a read went back`).toBeGreaterThanOrEqual(least);
        expect(answer.length, `seed ${seed}: nothing is made up`).toBeLessThanOrEqual(committed);
        if (answer.length > acknowledged) ahead += 1;
        shown = Math.max(shown, answer.length);
      }
    };
    const all = [write(), disturb(), ...Array.from({ length: 8 }, read)];
    // On a busy machine many reads pass before one comes between a commit and its acknowledgement.
    const isEnough = (): boolean =>
      reads > byLength(200, 400) &&
      ahead > 0 &&
      fixture.events.some(({ kind }) => kind === 'shardSpread');
    await expect.poll(isEnough, { timeout: 60_000, interval: 20 }).toBe(true);
    isOver = true;
    await Promise.all(all);
  }
  expect(ahead, 'some reads showed what was not acknowledged yet').toBeGreaterThan(0);
}, 300_000);
