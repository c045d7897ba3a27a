import { expect, test } from 'vitest';
import type { CommittedChange } from '../../src/model/packed-changes.ts';
import type { ShardKey } from '../../src/model/relation-tuple.ts';
import { createRandom } from '../support/dataset/random.ts';
import type { Random } from '../support/dataset/random.ts';
import { byLength } from '../support/test-length.ts';
import { askBatch, checkViewer, reasonOf, scopeOf, startFixture, viewer } from './pool-fixture.ts';
import type { Fixture } from './pool-fixture.ts';

const SEED = Number(process.env['SEED'] ?? '1');
const SEEDS = byLength(1, 3) * Number(process.env['FUZZ_RUNS'] ?? '1');
const STEPS = 250;
const SHARDS = 6;
const OBJECTS = 4;
const QUEUE_DEPTH_MAX = 60;
/** What a read may answer instead of a decision. */
const EXPECTED_REASONS = new Set(['WORKER_LOST', 'SHARD_UNAVAILABLE', 'QUEUE_FULL']);

type Simulated = {
  readonly shard: ShardKey;
  /** states[revision] holds the objects that the user can view after that revision. */
  readonly states: ReadonlySet<string>[];
  /** Changes on their way to the worker: some are lost, doubled or overtaken. */
  readonly inFlight: CommittedChange[];
};

type Tally = { asked: number; decided: number; failed: number };

/** Commits one revision: a toggled object, sometimes two. */
function commit(fixture: Fixture, simulated: Simulated, random: Random): void {
  const state = new Set(simulated.states.at(-1));
  const objects = new Set([`d${random.below(OBJECTS)}`, `d${random.below(OBJECTS)}`]);
  const changes = [...objects].map((object) => {
    const op = state.has(object) ? ('delete' as const) : ('insert' as const);
    if (op === 'insert') state.add(object);
    else state.delete(object);
    return viewer(op, object, 'u');
  });
  simulated.states.push(state);
  const change = fixture.source.commit(simulated.shard, changes);
  const fate = random.next();
  if (fate < 0.7) simulated.inFlight.push(change); // else lost
  if (fate < 0.15) simulated.inFlight.push(change); // doubled
}

/** Hands some changes over, in whatever order. */
function deliver(fixture: Fixture, simulated: Simulated, random: Random): void {
  while (simulated.inFlight.length > 0 && random.next() < 0.7) {
    const [change] = simulated.inFlight.splice(random.below(simulated.inFlight.length), 1);
    if (change !== undefined) fixture.pool.applyCommitted([change]);
  }
}

/** One read that must see at least what was acknowledged before it was sent. */
async function read(
  fixture: Fixture,
  simulated: Simulated,
  random: Random,
  tally: Tally,
): Promise<void> {
  const { shard, states } = simulated;
  const head = states.length - 1;
  const minRevision = random.next() < 0.7 ? head : random.below(head + 1);
  const object = `d${random.below(OBJECTS)}`;
  tally.asked += 1;
  const answer = await checkViewer(fixture.pool, scopeOf(shard, minRevision), object, 'u').catch(
    reasonOf,
  );
  if (typeof answer === 'string') {
    expect(EXPECTED_REASONS).toContain(answer);
    tally.failed += 1;
    return;
  }
  tally.decided += 1;
  // Some state between minRevision and now must give this answer: never one older than minRevision.
  const isPossible = states.slice(minRevision).some((state) => state.has(object) === answer);
  expect(isPossible, `answer ${answer} for ${object} at minSeq ${minRevision}`).toBe(true);
}

/** A batch that is suspended many times must see one revision, whole. */
async function readBatch(
  fixture: Fixture,
  simulated: Simulated,
  random: Random,
  tally: Tally,
): Promise<void> {
  const { shard, states } = simulated;
  const minRevision = random.below(states.length);
  const items = Array.from({ length: 24 * OBJECTS }, (_, i) => ({
    namespace: 'doc',
    objectId: `d${i % OBJECTS}`,
    relation: 'viewer',
    userId: 'u',
  }));
  tally.asked += 1;
  const scope = scopeOf(shard, minRevision);
  const results = await askBatch(fixture.pool, scope, items).catch(reasonOf);
  if (typeof results === 'string') {
    expect(EXPECTED_REASONS).toContain(results);
    tally.failed += 1;
    return;
  }
  tally.decided += 1;
  const isOf = (state: ReadonlySet<string>): boolean =>
    results.every((result, i) => result.allowed === state.has(`d${i % OBJECTS}`));
  expect(states.slice(minRevision).some(isOf), `a batch at minSeq ${minRevision}`).toBe(true);
}

/** The watermark of one life of an index only grows. */
function watchWatermarks(fixture: Fixture, shards: readonly Simulated[]): () => void {
  const seen = new Map<string, number>();
  return () => {
    fixture.transports.forEach((transport) => {
      for (const { shard } of shards) {
        const actor = transport.host?.actor(shard);
        if (actor === undefined || !actor.isLoaded || transport.host === null) continue;
        const life = `${shard.tenantId} ${actor.generation} ${lifeOf(transport.host)}`;
        expect(actor.watermark).toBeGreaterThanOrEqual(seen.get(life) ?? 0);
        expect(actor.watermark).toBeLessThanOrEqual(fixture.source.head(shard).revision);
        seen.set(life, actor.watermark);
      }
    });
  };
}

const lives = new WeakMap<object, number>();
let nextLife = 0;
function lifeOf(host: object): number {
  const known = lives.get(host);
  if (known !== undefined) return known;
  nextLife += 1;
  lives.set(host, nextLife);
  return nextLife;
}

async function simulate(seed: number): Promise<Tally> {
  const random = createRandom(seed);
  await using fixture = await startFixture({
    workerCount: 2,
    pollMs: 30,
    // Every evaluation that can be suspended is.
    sliceMs: 0.001,
    queueDepthMax: QUEUE_DEPTH_MAX,
    shardQueueDepthMax: QUEUE_DEPTH_MAX,
    // Two or three small indexes fit a worker: evictions all the time.
    indexBytesMax: 700_000,
  });
  const shards: Simulated[] = Array.from({ length: SHARDS }, (_, i) => ({
    shard: { projectId: 'p', tenantId: `t${i}` },
    states: [new Set<string>()],
    inFlight: [],
  }));
  fixture.source.fault = async (what) => {
    const fate = random.next();
    if (fate < 0.05) throw new Error(`the store failed (${what})`);
    if (fate < 0.4) await new Promise((resolve) => setTimeout(resolve, random.below(8)));
  };
  const checkWatermarks = watchWatermarks(fixture, shards);
  const tally: Tally = { asked: 0, decided: 0, failed: 0 };
  const reads: Promise<void>[] = [];
  for (let step = 0; step < STEPS; step++) {
    const simulated = shards[random.below(SHARDS)] as Simulated;
    const what = random.next();
    if (what < 0.3) commit(fixture, simulated, random);
    else if (what < 0.5) deliver(fixture, simulated, random);
    else if (what < 0.52) fixture.transports[random.below(2)]?.crash();
    else if (what < 0.55) fixture.pool.hint(simulated.shard, simulated.states.length - 1);
    else if (what < 0.57 && simulated.states.length > 4) {
      fixture.source.prune(simulated.shard, simulated.states.length - 2);
    } else if (what < 0.7) reads.push(readBatch(fixture, simulated, random, tally));
    else reads.push(read(fixture, simulated, random, tally));
    expect(fixture.pool.pendingCount).toBeLessThanOrEqual(QUEUE_DEPTH_MAX * 2);
    checkWatermarks();
    if (random.next() < 0.3) await new Promise((resolve) => setImmediate(resolve));
    if (random.next() < 0.1) await new Promise((resolve) => setTimeout(resolve, random.below(5)));
  }
  await Promise.all(reads);
  expect(fixture.pool.pendingCount).toBe(0);
  // Without faults every shard comes to its head, whatever was lost on the way.
  fixture.source.fault = () => Promise.resolve();
  await expect.poll(() => fixture.pool.isReady, { timeout: 15_000 }).toBe(true);
  for (const { shard, states } of shards) {
    for (let i = 0; i < OBJECTS; i++) {
      const answer = await checkViewer(
        fixture.pool,
        scopeOf(shard, states.length - 1),
        `d${i}`,
        'u',
      );
      expect(answer).toBe(states.at(-1)?.has(`d${i}`));
    }
  }
  return tally;
}

test.each(Array.from({ length: SEEDS }, (_, i) => SEED + i))(
  'answers are never older than minSeq, every request is answered once (SEED=%i)',
  async (seed) => {
    const tally = await simulate(seed);
    expect(tally.decided + tally.failed).toBe(tally.asked);
    expect(tally.decided).toBeGreaterThan(tally.asked / 3);
  },
  60_000,
);
