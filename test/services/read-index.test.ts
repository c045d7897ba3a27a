import fc from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { CarriedChanges } from '../../src/model/packed-changes.ts';
import { HeadRevisions } from '../../src/services/reads/head-revisions.ts';
import { AWAY_AFTER_MS } from '../../src/services/reads/index-queries.ts';
import {
  ReadIndex,
  type ReadIndexMetrics,
  WAIT_MAX_MS,
} from '../../src/services/reads/read-index.ts';
import { STALL_MS } from '../../src/services/reads/stall-threshold.ts';
import type { AppError } from '../../src/shared/app-error.ts';
import type { IndexParams, IndexRow } from '../../src/store/sql/reads/read-index.ts';
import { UNCOUNTED } from '../support/read-index.ts';

/*
 * The read index over connections and a clock that the test holds in its hand, against a store that is a list
 * of fork ids for each shard.
 */

const TENANTS = ['a', 'b', 'c'];

/** What PostgreSQL would know. fork ids[revision]; [0] is '0'. */
class Truth {
  readonly stamps = new Map<string, string[]>(TENANTS.map((tenant) => [tenant, ['0']]));
  version = 1;
  /** How often each shard lost its newest part. */
  readonly losses = new Map<string, number>(TENANTS.map((tenant) => [tenant, 0]));
  #forkId = 0;

  of(tenant: string): string[] {
    return this.stamps.get(tenant) ?? [];
  }

  revision(tenant: string): number {
    return this.of(tenant).length - 1;
  }

  write(tenant: string): { revision: number; forkId: string } {
    const forkId = String(++this.#forkId * 31);
    const revision = this.of(tenant).push(forkId) - 1;
    return { revision, forkId };
  }

  /** An older state comes back under the same epoch. */
  lose(tenant: string, count: number): void {
    const stamps = this.of(tenant);
    const kept = Math.max(1, stamps.length - count);
    if (kept === stamps.length) return;
    stamps.length = kept;
    this.losses.set(tenant, (this.losses.get(tenant) ?? 0) + 1);
  }

  /** As readIndex answers now. */
  answer(asks: readonly IndexParams[]): IndexRow[] {
    return asks.flatMap((ask, at) => {
      const stamps = this.of(ask.tenantId);
      const revision = stamps.length - 1;
      const forkId = stamps[revision] ?? '';
      const isAsKnown = ask.epoch === 1 && ask.revision === revision && ask.forkId === forkId;
      if (isAsKnown && ask.settingsVersion === this.version) return [];
      const isKnown = ask.epoch === 1;
      const later = isKnown ? stamps.slice(ask.revision + 1, ask.revision + 4) : [];
      return [
        {
          at,
          epoch: 1,
          revision,
          forkId,
          settingsVersion: this.version,
          forkIdAtKnown:
            isKnown && revision > ask.revision && ask.revision > 0
              ? (stamps[ask.revision] ?? '')
              : '',
          changes: later.map((one, index) => ({
            revision: ask.revision + 1 + index,
            forkId: one,
            settingsVersion: this.version,
            changes: '[]',
          })),
        },
      ];
    });
  }
}

type Pending = {
  readonly asks: readonly IndexParams[];
  readonly atSend: readonly IndexRow[];
  readonly sentMs: number;
  readonly resolve: (rows: readonly IndexRow[]) => void;
  readonly reject: (error: unknown) => void;
};

/** One of both connections. */
class Hand {
  isUp = true;
  pending: Pending | null = null;
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  query(params: readonly IndexParams[]): Promise<readonly IndexRow[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly IndexRow[]>();
    expect(this.isUp).toBe(true);
    expect(this.pending).toBeNull();
    // R2: beside another query only if that stalls.
    for (const other of this.#world.hands) {
      if (other.pending === null) continue;
      expect(this.#world.nowMs - other.pending.sentMs).toBeGreaterThanOrEqual(STALL_MS);
    }
    const keys = params.map((one) => one.tenantId);
    expect(new Set(keys).size).toBe(keys.length);
    const atSend = this.#world.truth.answer(params);
    this.pending = { asks: params, atSend, sentMs: this.#world.nowMs, resolve, reject };
    return promise;
  }

  /** The snapshot is that of the sending, or of the answer: as old or as new as it can be. */
  reply(isOld: boolean): void {
    const { pending } = this;
    this.pending = null;
    pending?.resolve(isOld ? pending.atSend : this.#world.truth.answer(pending.asks));
  }

  fail(): void {
    const { pending } = this;
    this.pending = null;
    if (this.isUp) {
      this.isUp = false;
      pending?.reject(new Error('Connection terminated'));
      this.#world.index.disconnected();
    }
  }

  reconnect(): void {
    if (this.isUp) return;
    this.isUp = true;
    this.#world.index.connected();
  }
}

type Asked = {
  readonly tenant: string;
  readonly revisionThen: number;
  readonly versionThen: number;
  readonly lossesThen: number;
  readonly deadlineMs: number;
  readonly untilMs: number;
  readonly handle: { cancel(): void };
  outcome: 'found' | 'failed' | 'cancelled' | null;
};

class World {
  readonly truth = new Truth();
  readonly headRevisions: HeadRevisions;
  readonly hands: readonly Hand[];
  readonly index: ReadIndex;
  readonly asked: Asked[] = [];
  readonly carried: CarriedChanges[] = [];
  readonly faults: unknown[] = [];
  /** Highest revision raised since the shard was forgotten or lost something. */
  readonly raised = new Map<string, number>();

  constructor(entriesMax: number, metrics: ReadIndexMetrics = UNCOUNTED, waitersMax = 1_000) {
    this.headRevisions = new HeadRevisions({ entriesMax });
    this.hands = [new Hand(this), new Hand(this)];
    this.index = new ReadIndex({
      clock: { nowMs: () => 0, monotonicMs: () => this.nowMs },
      headRevisions: this.headRevisions,
      connections: this.hands,
      settingsVersionOf: () => 1,
      carry: (carried) => this.carried.push(carried),
      waitersMax,
      metrics,
    });
  }

  /** Faked, and moved by the timers' own clock. */
  get nowMs(): number {
    return Date.now();
  }

  async pass(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
  }

  ask(tenant: string, withinMs = Number.POSITIVE_INFINITY): Asked {
    const deadlineMs = performance.timeOrigin + this.nowMs + withinMs;
    let isInside = true;
    const end = (outcome: 'found' | 'failed', check: () => void): void => {
      // What is thrown here is the index's to handle: told to the test by way of `faults`.
      try {
        expect(isInside).toBe(false);
        expect(asked.outcome).toBeNull();
        asked.outcome = outcome;
        check();
      } catch (error) {
        this.faults.push(error);
      }
    };
    const handle = this.index.request('p', tenant, {
      deadlineMs,
      found: (head, version) => {
        end('found', () => this.#check(asked, head.minRevision, head.forkId, version));
      },
      failed: (error: AppError) => {
        const isOverdue = performance.timeOrigin + this.nowMs >= asked.deadlineMs;
        const reason = isOverdue ? 'DEADLINE_EXCEEDED' : 'STORE_UNAVAILABLE';
        end('failed', () => expect(error.reason).toBe(reason));
      },
    });
    const asked: Asked = {
      tenant,
      revisionThen: this.truth.revision(tenant),
      versionThen: this.truth.version,
      lossesThen: this.truth.losses.get(tenant) ?? 0,
      deadlineMs,
      untilMs: this.nowMs + Math.min(withinMs, WAIT_MAX_MS),
      handle,
      outcome: null,
    };
    isInside = false;
    this.asked.push(asked);
    return asked;
  }

  #check(asked: Asked, revision: number, forkId: string, version: number | null): void {
    expect(version).toBeGreaterThanOrEqual(asked.versionThen);
    const stamps = this.truth.of(asked.tenant);
    // While something is lost after the question, both histories are an answer.
    if ((this.truth.losses.get(asked.tenant) ?? 0) !== asked.lossesThen) return;
    expect(revision).toBeGreaterThanOrEqual(asked.revisionThen);
    expect(revision).toBeLessThan(stamps.length);
    if (forkId !== '') expect(forkId).toBe(stamps[revision]);
  }

  /** Nobody waits longer than may be, and nothing is known that was not committed. */
  checkAlways(): void {
    if (this.faults.length > 0) throw this.faults[0];
    for (const { outcome, untilMs } of this.asked) {
      if (outcome === null) expect(this.nowMs).toBeLessThan(untilMs + 50);
    }
    for (const [tenant, revision] of this.raised) {
      const known = this.headRevisions.peek('p', tenant);
      if (known !== undefined) expect(known.minRevision).toBeGreaterThanOrEqual(revision);
    }
    expect(this.index.waitingCount).toBe(
      this.asked.filter(({ outcome }) => outcome === null).length,
    );
  }
}

type Step = (world: World) => Promise<void> | void;
const tenant = fc.constantFrom(...TENANTS);
const hand = fc.nat(1);
const step: fc.Arbitrary<{ readonly name: string; readonly run: Step }> = fc.oneof(
  {
    weight: 6,
    arbitrary: tenant.map((t) => ({ name: `ask ${t}`, run: (w: World) => void w.ask(t) })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(tenant, fc.nat(200)).map(([t, ms]) => ({
      name: `ask ${t} within ${ms}`,
      run: (w: World) => void w.ask(t, ms + 1),
    })),
  },
  {
    weight: 3,
    arbitrary: tenant.map((t) => ({
      name: `foreign ${t}`,
      run: (w: World) => void w.truth.write(t),
    })),
  },
  {
    weight: 3,
    arbitrary: tenant.map((t) => ({
      name: `own ${t}`,
      run: (w: World) => {
        const { revision, forkId } = w.truth.write(t);
        w.headRevisions.raise('p', t, 1, revision, forkId);
        w.raised.set(t, revision);
      },
    })),
  },
  {
    weight: 6,
    arbitrary: fc.tuple(hand, fc.boolean()).map(([n, isOld]) => ({
      name: `reply ${n} ${isOld ? 'old' : 'new'}`,
      run: (w: World) => w.hands[n]?.reply(isOld),
    })),
  },
  {
    weight: 1,
    arbitrary: hand.map((n) => ({ name: `fail ${n}`, run: (w: World) => w.hands[n]?.fail() })),
  },
  {
    weight: 2,
    arbitrary: hand.map((n) => ({ name: `up ${n}`, run: (w: World) => w.hands[n]?.reconnect() })),
  },
  {
    weight: 3,
    arbitrary: fc.nat(40).map((ms) => ({ name: `pass ${ms}`, run: (w: World) => w.pass(ms) })),
  },
  { weight: 1, arbitrary: fc.constant({ name: 'pass 600', run: (w: World) => w.pass(600) }) },
  {
    weight: 1,
    arbitrary: fc.nat(20).map((n) => ({
      name: `cancel ${n}`,
      run: (w: World) => {
        const asked = w.asked.at(-1 - n);
        if (asked?.outcome !== null) return;
        asked.handle.cancel();
        asked.outcome = 'cancelled';
      },
    })),
  },
  {
    weight: 1,
    arbitrary: fc.constant({
      name: 'forget all',
      run: (w: World) => {
        w.headRevisions.forgetAll();
        w.raised.clear();
      },
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constant({ name: 'settings', run: (w: World) => void w.truth.version++ }),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(tenant, fc.integer({ min: 1, max: 3 })).map(([t, count]) => ({
      name: `lose ${count} of ${t}`,
      run: (w: World) => {
        // Another server, or a restored one: no connection outlives that.
        for (const one of w.hands) one.fail();
        w.truth.lose(t, count);
        w.raised.delete(t);
      },
    })),
  },
);

beforeEach(() => {
  vi.useFakeTimers({
    now: 10_000,
    toFake: [
      'Date',
      'setTimeout',
      'clearTimeout',
      'setInterval',
      'clearInterval',
      'setImmediate',
      'clearImmediate',
    ],
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const steps = fc.array(step, { minLength: 5, maxLength: 80 }).map((list) => ({
  list,
  [fc.toStringMethod]: () => list.map(({ name }) => name).join('; '),
}));

test('whatever happens in between, a read sees what was there when it began, or is told in time (R1)', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(2, 100), steps, async (entriesMax, { list }) => {
      const world = new World(entriesMax);
      for (const { run } of list) {
        await run(world);
        await vi.advanceTimersByTimeAsync(0);
        world.checkAlways();
      }
      // All is well again: everybody who waits is answered.
      for (const one of world.hands) one.reconnect();
      for (let i = 0; i < 6; i++) {
        await vi.advanceTimersByTimeAsync(1);
        for (const one of world.hands) one.reply(i % 2 === 0);
      }
      await vi.advanceTimersByTimeAsync(1);
      world.checkAlways();
      expect(world.asked.filter(({ outcome }) => outcome === null)).toEqual([]);
      expect(world.index.waitingCount).toBe(0);
      world.index.stop();
    }),
    { numRuns: 300 * Number(process.env['FUZZ_RUNS'] ?? '1') },
  );
}, 60_000);

const tick = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1);

test('while one connection stalls the other serves, also those who wait for the stalled query (R2)', async () => {
  const stalls: string[] = [];
  const world = new World(100, { ...UNCOUNTED, stalled: () => stalls.push('stall') });
  const [first, second] = world.hands;
  const early = world.ask('a');
  await tick();
  const late = world.ask('b');
  await world.pass(STALL_MS - 5);
  expect([first?.pending?.asks.length, second?.pending]).toEqual([1, null]);
  await world.pass(10);
  expect(second?.pending?.asks.map(({ tenantId }) => tenantId)).toEqual(['a', 'b']);
  expect(stalls).toEqual(['stall']);
  second?.reply(true);
  await tick();
  expect([early.outcome, late.outcome]).toEqual(['found', 'found']);
  // The late answer of the first one is no answer to anybody, and harms nothing.
  first?.reply(true);
  await tick();
  expect(world.index.waitingCount).toBe(0);
  world.index.stop();
});

test('a lost connection costs its readers the time to ask the other one', async () => {
  const world = new World(100);
  const asked = world.ask('a');
  await tick();
  world.hands[0]?.fail();
  await tick();
  world.hands[1]?.reply(true);
  await tick();
  expect(asked.outcome).toBe('found');
  world.index.stop();
});

test('without any connection reads fail in time, and later ones at once, until one is back (R3)', async () => {
  const world = new World(100);
  for (const one of world.hands) one.fail();
  const asked = world.ask('a');
  await world.pass(AWAY_AFTER_MS - 20);
  expect([asked.outcome, world.index.isAway]).toEqual([null, false]);
  await world.pass(20);
  const later = world.ask('a');
  expect(later.outcome).toBeNull();
  await tick();
  expect([asked.outcome, later.outcome, world.index.isAway]).toEqual([null, 'failed', true]);
  await world.pass(WAIT_MAX_MS - AWAY_AFTER_MS + 30);
  expect(asked.outcome).toBe('failed');
  world.hands[1]?.reconnect();
  const back = world.ask('a');
  await tick();
  world.hands[1]?.reply(true);
  await tick();
  expect([back.outcome, world.index.isAway]).toEqual(['found', false]);
  world.index.stop();
});

test('connections that stay up but answer nothing count as away', async () => {
  const world = new World(100);
  world.ask('a');
  await world.pass(2 * STALL_MS + 20);
  expect(world.hands.every(({ pending }) => pending !== null)).toBe(true);
  await world.pass(AWAY_AFTER_MS);
  expect(world.index.isAway).toBe(true);
  const later = world.ask('b');
  await tick();
  expect(later.outcome).toBe('failed');
  await world.pass(WAIT_MAX_MS);
  expect(world.index.waitingCount).toBe(0);
  world.index.stop();
});

test('changes go to the owner before anybody is told, with what they follow (R5)', async () => {
  const world = new World(100);
  const { revision, forkId } = world.truth.write('a');
  world.ask('a');
  await tick();
  world.hands[0]?.reply(true);
  await tick();
  expect(world.carried).toEqual([]); // nothing was known that it could follow
  for (let i = 0; i < 5; i++) world.truth.write('a');
  world.ask('a');
  await tick();
  world.hands[0]?.reply(true);
  await tick();
  expect(world.carried).toMatchObject([
    { tenantId: 'a', isLost: false, afterRevision: revision, forkIdAtStart: forkId, revision: 6 },
  ]);
  expect(world.carried[0]?.changes.map((change) => change.revision)).toEqual([2, 3, 4]);
  world.index.stop();
});

test.each(['below what was known', 'another stamp at it', 'another stamp, further on'])(
  'a history that is not the known one is told to the owner: %s (R4)',
  async (how) => {
    const world = new World(100);
    for (let i = 0; i < 3; i++) world.truth.write('a');
    const look = async (): Promise<void> => {
      world.ask('a');
      await tick();
      world.hands[0]?.reply(true);
      await tick();
    };
    await look();
    world.truth.lose('a', 1);
    if (how !== 'below what was known') world.truth.write('a');
    if (how === 'another stamp, further on') world.truth.write('a');
    await look();
    const revision = world.truth.revision('a');
    expect(world.carried).toMatchObject([
      { isLost: true, revision, forkId: world.truth.of('a')[revision] },
    ]);
    expect(world.headRevisions.peek('p', 'a')).toMatchObject({ minRevision: revision });
    await look();
    expect(world.carried).toHaveLength(1);
    world.index.stop();
  },
);

test('10,000 reads that are given up leave nothing behind', async () => {
  const world = new World(100, UNCOUNTED, 20_000);
  for (const one of world.hands) one.fail();
  const asked = Array.from({ length: 10_000 }, (_, i) => world.ask(`t${i % 3_000}`));
  expect(world.index.waitingCount).toBe(10_000);
  for (const one of asked) {
    one.handle.cancel();
    one.outcome = 'cancelled';
  }
  expect(world.index.waitingCount).toBe(0);
  world.hands[0]?.reconnect();
  await tick();
  // Nobody asks: nothing is sent.
  expect(world.hands[0]?.pending).toBeNull();
  world.index.stop();
});

test('more readers than may wait are refused', async () => {
  const world = new World(100, UNCOUNTED, 2);
  const reasons: string[] = [];
  const waiter = {
    deadlineMs: Number.POSITIVE_INFINITY,
    found: () => void reasons.push('found'),
    failed: (error: AppError) => void reasons.push(error.reason),
  };
  for (let i = 0; i < 3; i++) world.index.request('p', 'a', waiter);
  await tick();
  expect(reasons).toEqual(['QUEUE_FULL']);
  world.index.stop();
  expect(reasons).toEqual(['QUEUE_FULL', 'SHUTTING_DOWN', 'SHUTTING_DOWN']);
  world.index.request('p', 'a', waiter);
  await tick();
  expect(reasons).toHaveLength(4);
});

test('an aborted call is told so, and waits no longer', async () => {
  const world = new World(100);
  const abort = new AbortController();
  const loading = world.index.load('p', 'a', Number.POSITIVE_INFINITY, abort.signal);
  abort.abort();
  await expect(loading).rejects.toMatchObject({ reason: 'CANCELLED' });
  await expect(
    world.index.load('p', 'a', Number.POSITIVE_INFINITY, abort.signal),
  ).rejects.toMatchObject({ reason: 'CANCELLED' });
  expect(world.index.waitingCount).toBe(0);
  world.index.stop();
});
