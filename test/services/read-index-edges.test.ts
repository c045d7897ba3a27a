import { describe, expect, onTestFinished, test, vi } from 'vitest';
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
import { rowAt } from '../support/read-index.ts';

/*
 * What the read index does at its bounds: with answers, clock and connections that the test holds in its hand.
 */

type Sent = {
  readonly on: number;
  readonly asks: readonly IndexParams[];
  readonly resolve: (rows: readonly IndexRow[]) => void;
  readonly reject: () => void;
};

/** An index over connections that answer when they are told to. */
class Desk {
  readonly up: boolean[];
  readonly sent: Sent[] = [];
  readonly told: string[] = [];
  readonly carried: CarriedChanges[] = [];
  readonly headRevisions = new HeadRevisions({ entriesMax: 100 });
  readonly counts = { answered: 0, failed: 0, stalled: 0, carried: 0, historyLost: 0, seconds: -1 };
  readonly index: ReadIndex;

  constructor(connections = 2, waitersMax = 100) {
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
    onTestFinished(() => void vi.useRealTimers());
    this.up = Array.from({ length: connections }, () => true);
    const { counts, up, sent } = this;
    const metrics: ReadIndexMetrics = {
      answered: (reads, seconds) => {
        counts.answered += reads;
        counts.seconds = seconds;
      },
      failed: () => void counts.failed++,
      stalled: () => void counts.stalled++,
      carried: (rows) => void (counts.carried += rows),
      historyLost: () => void counts.historyLost++,
    };
    this.index = new ReadIndex({
      clock: { nowMs: () => 0, monotonicMs: () => Date.now() },
      headRevisions: this.headRevisions,
      connections: up.map((_, on) => ({
        get isUp() {
          return up[on] === true;
        },
        query: (asks: readonly IndexParams[]) => {
          const { promise, resolve, reject } = Promise.withResolvers<readonly IndexRow[]>();
          sent.push({ on, asks, resolve, reject: () => reject(new Error('connection lost')) });
          return promise;
        },
      })),
      settingsVersionOf: () => 1,
      carry: (carried) => void this.carried.push(carried),
      waitersMax,
      metrics,
    });
    onTestFinished(() => this.index.stop());
  }

  /** A read; `told` says how it ended: `a found 3` or `a DEADLINE_EXCEEDED`. */
  ask(tenant: string, withinMs = Number.POSITIVE_INFINITY): { cancel(): void } {
    return this.index.request('p', tenant, {
      deadlineMs: performance.timeOrigin + Date.now() + withinMs,
      found: (head, version) =>
        void this.told.push(`${tenant} found ${head.minRevision} ${version}`),
      failed: (error) => void this.told.push(`${tenant} ${error.reason}`),
    });
  }

  /** The nth query that was sent, and its asks by tenant. */
  at(n: number): Sent {
    const sent = this.sent[n];
    if (sent === undefined) throw new Error(`only ${this.sent.length} queries were sent`);
    return sent;
  }

  tenants(): string[] {
    return this.sent.map(({ on, asks }) => `${on}: ${asks.map((ask) => ask.tenantId).join()}`);
  }

  async lose(on: number, n: number): Promise<void> {
    this.up[on] = false;
    this.at(n).reject();
    this.index.disconnected();
    await pass(1);
  }
}

const pass = async (ms: number): Promise<void> => {
  await vi.advanceTimersByTimeAsync(ms);
};

/** One shard that is known to stand at revision 5, fork id 35 of epoch 1, and is asked for again. */
async function known(): Promise<Desk> {
  const desk = new Desk(1);
  desk.ask('a');
  await pass(1);
  desk.at(0).resolve([rowAt(0, 5)]);
  await pass(1);
  expect(desk.told).toEqual(['a found 5 1']);
  desk.ask('a');
  await pass(1);
  expect(desk.at(1).asks).toEqual([
    { projectId: 'p', tenantId: 'a', epoch: 1, revision: 5, forkId: '35', settingsVersion: 1 },
  ]);
  return desk;
}

test('what nobody knows is asked for without a position', async () => {
  const desk = new Desk(1);
  desk.ask('a');
  await pass(1);
  expect(desk.at(0).asks).toEqual([
    { projectId: 'p', tenantId: 'a', epoch: 0, revision: 0, forkId: '', settingsVersion: 1 },
  ]);
});

describe('what is found against what was known', () => {
  test.each([
    ['the same', {}, false],
    ['newer settings', { settingsVersion: 2 }, false],
    ['further on', { revision: 7, forkId: '49', forkIdAtKnown: '35' }, false],
    ['further on, where the stamp is known no more', { revision: 7, forkId: '49' }, false],
    ['without a stamp', { forkId: '' }, false],
    ['a later epoch', { epoch: 2, revision: 1, forkId: '7' }, false],
    ['a later epoch, with another stamp at the same seq', { epoch: 2, forkId: '36' }, false],
    [
      'a later epoch, with another stamp where it was',
      { epoch: 2, revision: 9, forkIdAtKnown: '36' },
      false,
    ],
    ['an earlier epoch', { epoch: 0, revision: 9, forkId: '63' }, true],
    [
      'an earlier epoch, further on from the same stamp',
      { epoch: 0, revision: 9, forkIdAtKnown: '35' },
      true,
    ],
    ['below it', { revision: 4, forkId: '28' }, true],
    ['below it, with the same stamp', { revision: 4, forkId: '35' }, true],
    ['another stamp', { forkId: '36' }, true],
    ['another stamp, further on', { revision: 7, forkId: '49', forkIdAtKnown: '36' }, true],
  ] as const)('%s: another history: %s', async (_what, more, isLost) => {
    const desk = await known();
    desk.at(1).resolve([rowAt(0, 5, more)]);
    await pass(1);
    expect(desk.counts.historyLost).toBe(isLost ? 1 : 0);
    expect(desk.carried.map((one) => one.isLost)).toEqual(isLost ? [true] : []);
    const revision = 'revision' in more ? more.revision : 5;
    expect(desk.told).toHaveLength(2);
    expect(desk.told[1]).toMatch(new RegExp(`^a found ${revision} `));
  });

  test('a stamp that is not known says nothing', async () => {
    const desk = new Desk(1);
    desk.ask('a');
    await pass(1);
    desk.at(0).resolve([rowAt(0, 5, { forkId: '' })]);
    await pass(1);
    desk.ask('a');
    await pass(1);
    expect(desk.at(1).asks[0]).toMatchObject({ revision: 5, forkId: '' });
    desk.at(1).resolve([rowAt(0, 5)]);
    await pass(1);
    expect([desk.carried, desk.counts.historyLost]).toEqual([[], 0]);
  });

  test('nothing was known: nothing was lost', async () => {
    const desk = new Desk(1);
    desk.ask('a');
    await pass(1);
    desk.at(0).resolve([rowAt(0, 0, { epoch: 0, forkId: '1', forkIdAtKnown: '2' })]);
    await pass(1);
    expect([desk.carried, desk.counts.historyLost]).toEqual([[], 0]);
  });
});

test('it counts what was answered, in seconds, and what was carried', async () => {
  const desk = await known();
  expect(desk.counts).toMatchObject({ answered: 1, carried: 0 });
  desk.ask('a');
  await pass(12);
  const changes = [6, 7].map((revision) => ({
    revision,
    forkId: String(revision * 7),
    settingsVersion: 1,
    changes: '[]',
  }));
  desk.at(1).resolve([rowAt(0, 7, { forkIdAtKnown: '35', changes })]);
  await pass(0);
  expect(desk.counts).toMatchObject({ answered: 2, carried: 2, stalled: 0, failed: 0 });
  // Sent a tick before the wait began.
  expect(desk.counts.seconds).toBeGreaterThanOrEqual(0.012);
  expect(desk.counts.seconds).toBeLessThan(0.015);
});

test('reads that come while a query is under way share the next one', async () => {
  const desk = new Desk();
  for (const tenant of ['a', 'b', 'a']) desk.ask(tenant);
  await pass(1);
  desk.ask('c');
  desk.ask('a');
  await pass(1);
  expect(desk.tenants()).toEqual(['0: a,b']);
  desk.at(0).resolve([rowAt(0, 1), rowAt(1, 2)]);
  await pass(1);
  expect(desk.told).toEqual(['a found 1 1', 'a found 1 1', 'b found 2 1']);
  expect(desk.tenants()).toEqual(['0: a,b', '0: c,a']);
});

describe('a connection that is lost', () => {
  test('costs its reads nothing but the time to ask anew, and is counted', async () => {
    const desk = new Desk();
    desk.ask('a');
    await pass(1);
    desk.at(0).reject();
    await pass(1);
    expect([desk.counts.failed, desk.tenants()]).toEqual([1, ['0: a', '0: a']]);
    expect(desk.index.isAway).toBe(false);
  });

  test('while it stalled is not asked again for what the other one was sent', async () => {
    const desk = new Desk();
    desk.ask('a');
    await pass(1);
    await pass(STALL_MS);
    desk.ask('b');
    expect(desk.tenants()).toEqual(['0: a', '1: a']);
    await desk.lose(0, 0);
    expect(desk.tenants()).toEqual(['0: a', '1: a']);
    desk.at(1).resolve([rowAt(0, 3)]);
    await pass(1);
    expect(desk.told).toEqual(['a found 3 1']);
    expect(desk.tenants()).toEqual(['0: a', '1: a', '1: b']);
  });

  test('what its query would have found is no longer awaited by the heads', async () => {
    const desk = new Desk();
    const ended = vi.spyOn(desk.headRevisions, 'ended');
    desk.ask('a');
    await pass(1);
    desk.at(0).reject();
    await pass(1);
    expect(ended).toHaveBeenCalledTimes(1);
    desk.at(1).resolve([rowAt(0, 3)]);
    await pass(1);
    expect(ended).toHaveBeenCalledTimes(2);
  });

  test('without another one: who comes is refused once that is so for long', async () => {
    const desk = new Desk(1);
    desk.ask('a');
    await pass(1);
    // The query tells so before the connection does.
    desk.up[0] = false;
    desk.at(0).reject();
    await pass(1);
    await pass(AWAY_AFTER_MS - 10);
    expect(desk.index.isAway).toBe(false);
    desk.index.disconnected();
    await pass(10);
    expect(desk.index.isAway).toBe(true);
  });

  test('beside one that answers: nobody is refused', async () => {
    for (const lost of [0, 1]) {
      const desk = new Desk();
      desk.up[lost] = false;
      desk.index.disconnected();
      await pass(2 * AWAY_AFTER_MS);
      expect([lost, desk.index.isAway]).toEqual([lost, false]);
      desk.ask('a');
      await pass(1);
      expect(desk.tenants()).toEqual([`${1 - lost}: a`]);
      desk.index.stop();
    }
  });

  test('beside one that stalls: that counts from when its query was sent', async () => {
    const desk = new Desk();
    desk.up[1] = false;
    desk.ask('a');
    await pass(1);
    await pass(AWAY_AFTER_MS - 2);
    expect([desk.counts.stalled, desk.index.isAway]).toEqual([1, false]);
    // Another loss does not begin it anew.
    desk.index.disconnected();
    await pass(3);
    expect(desk.index.isAway).toBe(true);
    desk.at(0).resolve([rowAt(0, 1)]);
    await pass(1);
    expect(desk.index.isAway).toBe(false);
  });

  test('when one is back what waits is sent, and nothing is away', async () => {
    const desk = new Desk(1);
    desk.up[0] = false;
    desk.index.disconnected();
    desk.ask('a');
    await pass(AWAY_AFTER_MS + 1);
    expect([desk.index.isAway, desk.tenants()]).toEqual([true, []]);
    desk.up[0] = true;
    desk.index.connected();
    expect(desk.index.isAway).toBe(false);
    await pass(1);
    expect(desk.tenants()).toEqual(['0: a']);
  });

  test('what waits goes to the other one at once, also where its query had not been sent', async () => {
    const desk = new Desk();
    desk.ask('a');
    desk.up[0] = false;
    await pass(1);
    expect(desk.tenants()).toEqual(['1: a']);
  });
});

test('both stall: nobody else is asked, and whoever answers first answers all', async () => {
  const desk = new Desk();
  desk.ask('a');
  await pass(1);
  await pass(STALL_MS);
  desk.ask('b');
  await pass(STALL_MS + 1);
  expect(desk.tenants()).toEqual(['0: a', '1: a']);
  desk.at(0).resolve([rowAt(0, 1)]);
  await pass(1);
  expect(desk.told).toEqual(['a found 1 1']);
  expect(desk.tenants()).toEqual(['0: a', '1: a', '0: b']);
  // What the other one answers now is heard by nobody, and taken for true all the same.
  desk.at(1).resolve([rowAt(0, 4)]);
  await pass(1);
  expect([desk.told, desk.headRevisions.peek('p', 'a')?.minRevision]).toEqual([['a found 1 1'], 4]);
  expect(desk.counts.answered).toBe(1);
});

describe('a read without an answer', () => {
  test.each([
    ['its deadline', 300, 'DEADLINE_EXCEEDED', 300],
    ['the time that is waited', Number.POSITIVE_INFINITY, 'STORE_UNAVAILABLE', WAIT_MAX_MS],
    ['that time, where its deadline is later', WAIT_MAX_MS * 2, 'STORE_UNAVAILABLE', WAIT_MAX_MS],
  ] as const)('is told at %s', async (_what, withinMs, reason, atMs) => {
    const desk = new Desk(1);
    desk.ask('a', withinMs);
    await pass(atMs - 1);
    expect(desk.told).toEqual([]);
    await pass(21);
    expect([desk.told, desk.index.waitingCount]).toEqual([[`a ${reason}`], 0]);
    desk.at(0).resolve([rowAt(0, 1)]);
    await pass(1);
    expect(desk.told).toHaveLength(1);
  });

  test('is told so also where others of its shard go on waiting, or have left', async () => {
    const desk = new Desk(1);
    const left = desk.ask('a', 50);
    desk.ask('a', 50);
    desk.ask('a', 5_000);
    left.cancel();
    await pass(80);
    expect([desk.told, desk.index.waitingCount]).toEqual([['a DEADLINE_EXCEEDED'], 1]);
    desk.at(0).resolve([rowAt(0, 1)]);
    await pass(1);
    expect(desk.told).toEqual(['a DEADLINE_EXCEEDED', 'a found 1 1']);
  });

  test('that was cancelled before it is refused hears nothing, one that was told may cancel', async () => {
    const desk = new Desk(1, 1);
    const first = desk.ask('a');
    desk.ask('b').cancel();
    desk.ask('c');
    await pass(1);
    expect(desk.told).toEqual(['c QUEUE_FULL']);
    desk.at(0).resolve([rowAt(0, 1)]);
    await pass(1);
    first.cancel();
    first.cancel();
    expect([desk.told, desk.index.waitingCount]).toEqual([['c QUEUE_FULL', 'a found 1 1'], 0]);
  });
});

test('nothing is looked at while nobody waits', async () => {
  const desk = new Desk(1);
  desk.ask('a');
  await pass(1);
  desk.at(0).resolve([rowAt(0, 1)]);
  await pass(2 * STALL_MS);
  expect([vi.getTimerCount(), desk.counts.stalled]).toEqual([0, 0]);
  desk.ask('a', 30);
  await pass(60);
  expect(desk.told).toEqual(['a found 1 1', 'a DEADLINE_EXCEEDED']);
});

describe('once it has stopped', () => {
  test('no timer of it is left, and an answer or a failure is heard by nobody', async () => {
    for (const how of ['answer', 'failure'] as const) {
      const desk = new Desk();
      desk.ask('a');
      await pass(1);
      desk.index.stop();
      expect([how, desk.told]).toEqual([how, ['a SHUTTING_DOWN']]);
      expect([how, vi.getTimerCount()]).toEqual([how, 0]);
      if (how === 'answer') desk.at(0).resolve([rowAt(0, 1)]);
      else desk.at(0).reject();
      desk.index.connected();
      desk.index.disconnected();
      await pass(0);
      expect([how, vi.getTimerCount()]).toEqual([how, 0]);
      expect([how, desk.headRevisions.peek('p', 'a')]).toEqual([how, undefined]);
      expect([how, desk.tenants(), desk.told.length]).toEqual([how, ['0: a'], 1]);
    }
  });

  test('who comes is told so', async () => {
    const desk = new Desk();
    desk.index.stop();
    desk.index.stop();
    desk.ask('a');
    await pass(1);
    expect([desk.told, desk.tenants()]).toEqual([['a SHUTTING_DOWN'], []]);
  });
});

test('the refusal says how many may wait', async () => {
  const desk = new Desk(1, 3);
  for (const tenant of ['a', 'b', 'c']) desk.ask(tenant);
  const error = await desk.index.load('p', 'd').then(
    () => undefined,
    (failure: unknown) => failure as AppError,
  );
  expect(error).toMatchObject({ reason: 'QUEUE_FULL', metadata: { limit: '3' } });
});

describe('a look that is awaited', () => {
  test('is what was found, and who aborts later is not told', async () => {
    const desk = new Desk(1);
    const abort = new AbortController();
    const removed = vi.spyOn(abort.signal, 'removeEventListener');
    const loading = desk.index.load('p', 'a', Number.POSITIVE_INFINITY, abort.signal);
    await pass(1);
    desk.at(0).resolve([rowAt(0, 5)]);
    const { headRevision: head, settingsVersion, askedMs } = await loading;
    expect([head.minRevision, settingsVersion, askedMs]).toEqual([5, 1, 10_000]);
    expect(removed).toHaveBeenCalledWith('abort', expect.any(Function));
    abort.abort();
  });

  test('fails as a read does, and keeps nothing of the signal', async () => {
    const desk = new Desk(1);
    const abort = new AbortController();
    const removed = vi.spyOn(abort.signal, 'removeEventListener');
    const deadlineMs = performance.timeOrigin + Date.now() + 40;
    const loading = desk.index.load('p', 'a', deadlineMs, abort.signal);
    const failure = loading.catch((error: unknown) => error);
    await pass(80);
    expect(await failure).toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
    expect(removed).toHaveBeenCalledWith('abort', expect.any(Function));
    const later = desk.index.load('p', 'a', deadlineMs + 1_000);
    desk.index.stop();
    await expect(later).rejects.toMatchObject({ reason: 'SHUTTING_DOWN' });
  });
});
