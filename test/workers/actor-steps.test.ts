import { describe, expect, test } from 'vitest';
import type { CarriedChanges, CommittedChange } from '../../src/model/packed-changes.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { SHARD, start, settle, gate } from './actor-fixture.ts';
import { type MemoryShardSource } from './memory-shard-source.ts';
import { viewer } from './pool-fixture.ts';

describe('what a request sees', () => {
  test('a watermark at its minSeq is enough, one below is not', async () => {
    const { actor, source, ask, runShort, load, commit } = start();
    await load(3);
    const open = gate(source);
    const [below, at, above] = [
      ask({ minRevision: 2 }),
      ask({ minRevision: 3 }),
      ask({ minRevision: 4 }),
    ];
    runShort();
    expect([below.seen, at.seen, above.seen]).toEqual([[3], [3], []]);
    const change = commit('next');
    open();
    await expect.poll(() => actor.watermark).toBe(change.revision);
    runShort();
    expect(above.seen).toEqual([4]);
  });

  test('only its own epoch', async () => {
    const { ask, runShort, load, source, ready, actor } = start();
    await load(2);
    const old = ask({ epoch: 0 });
    expect(old.reason).toBe('SHARD_UNAVAILABLE');
    source.diverge(SHARD, { epoch: 2, forkId: '77' });
    const [next, late] = [ask({ epoch: 2 }), ask({ epoch: 1, minRevision: 3 })];
    await expect.poll(() => actor.position.epoch).toBe(2);
    await ready();
    runShort();
    expect(next.seen).toEqual([2]);
    expect(late.reason).toBe('SHARD_UNAVAILABLE');
    expect(late.seen).toEqual([]);
  });

  test('its deadline ends it before it begins; what is thrown fails it alone', async () => {
    const { ask, runShort, load, reports, actor } = start();
    await load(1);
    const nowMs = performance.timeOrigin + performance.now();
    const [late, broken, fine] = [
      ask({ deadlineMs: nowMs }),
      ask({ throws: new Error('broken') }),
      ask({ deadlineMs: nowMs + 60_000 }),
    ];
    const cancelled = ask();
    cancelled.isCancelled = true;
    runShort();
    expect([late.reason, late.seen]).toEqual(['DEADLINE_EXCEEDED', []]);
    expect(broken.reason).toBe('INTERNAL');
    expect(reports).toEqual(['evaluation_failed']);
    expect([fine.seen, fine.reason]).toEqual([[1], undefined]);
    expect([cancelled.seen, cancelled.reason]).toEqual([[], undefined]);
    expect(actor.depth).toBe(0);
  });

  test('those who wait too long are told so, the others wait on', async () => {
    const { ask, load, actor } = start();
    await load(1);
    const [early, at, later] = [9, 10, 11].map((waitUntilMs) =>
      ask({ minRevision: 5, waitUntilMs }),
    );
    actor.sweep(10);
    expect([early?.reason, at?.reason, later?.reason]).toEqual([
      'SHARD_UNAVAILABLE',
      'SHARD_UNAVAILABLE',
      undefined,
    ]);
    expect(actor.depth).toBe(1);
  });
});

describe('who waits until the end of the time', () => {
  const reasons = (probes: readonly { reason: string | undefined }[]): (string | undefined)[] =>
    probes.map(({ reason }) => reason);

  test.each([
    ['a load', 0],
    ['a change', 5],
  ])(
    'for %s: DEADLINE_EXCEEDED where the caller stated it, else unavailable',
    async (_, minRevision) => {
      const { ask, load, actor } = start();
      if (minRevision > 0) await load(1);
      const over = { minRevision, deadlineMs: 10, waitUntilMs: 10 };
      const probes = [
        ask({ ...over, isDeadlineStated: true }),
        ask(over),
        // The service's own limit comes first, and is no deadline of the caller.
        ask({ ...over, deadlineMs: 11, isDeadlineStated: true }),
        ask({ minRevision, deadlineMs: 11, waitUntilMs: 11, isDeadlineStated: true }),
      ];
      actor.sweep(10);
      expect(reasons(probes)).toEqual([
        'DEADLINE_EXCEEDED',
        'SHARD_UNAVAILABLE',
        'SHARD_UNAVAILABLE',
        undefined,
      ]);
    },
  );
});

describe('committed changes', () => {
  test('the next one is applied at once, what is there already never again', async () => {
    const { actor, load, commit, source, counts } = start();
    await load(2);
    const third = commit('c');
    const pages = source.pages;
    actor.changes.committed(third);
    expect([actor.watermark, actor.position.forkId]).toEqual([3, third.forkId]);
    expect(actor.tupleCount).toBe(3);
    actor.changes.committed(third);
    actor.changes.committed({ ...third, revision: 1, forkId: 'not remembered' });
    actor.changes.committed({ ...third, revision: 4, epoch: 0 });
    expect([actor.watermark, actor.state, source.pages]).toEqual([3, 'ready', pages]);
    expect(counts).toEqual({ load: 1, loadFailure: 0, catchUp: 0 });
  });

  test('one beyond the next is not applied over the gap', async () => {
    const { actor, load, commit, ready } = start();
    await load(1);
    commit('missed');
    const third = commit('c');
    actor.changes.committed(third);
    expect([actor.watermark, actor.state, actor.lag]).toEqual([1, 'catchingUp', 2]);
    await ready();
    expect([actor.watermark, actor.tupleCount, actor.lag]).toEqual([3, 3, 0]);
  });

  test.each([
    ['another stamp at the watermark', { forkId: '999' }],
    ['a later epoch', { epoch: 2 }],
  ])('%s is another history: loaded anew', async (_what, difference) => {
    const { actor, load, commit, source, ready, ask, runShort } = start();
    await load(1);
    const second = commit('b');
    actor.changes.committed(second);
    const [{ generation }, before] = [actor, actor.index];
    source.diverge(SHARD, difference);
    actor.changes.committed({ ...second, ...difference });
    expect([actor.state, actor.isLoaded]).toEqual(['loading', false]);
    await ready();
    expect(actor.position).toMatchObject(difference);
    expect(actor.generation).toBeGreaterThan(generation);
    expect(actor.index).not.toBe(before);
    const probe = ask({ epoch: actor.position.epoch });
    runShort();
    expect(probe.seen).toEqual([2]);
  });

  test('what comes while the shard is loaded is applied behind it', async () => {
    const { actor, source, commit, ask, ready, runShort, counts } = start();
    commit('a');
    let open: () => void = () => undefined;
    source.fault = () => new Promise((resolve) => (open = resolve));
    const probe = ask();
    const head = source.head(SHARD);
    const second = commit('b');
    // The snapshot is of before: the change that followed it is told while it is under way.
    source.diverge(SHARD, head);
    actor.changes.committed(second);
    expect(actor.state).toBe('loading');
    source.fault = () => Promise.resolve();
    open();
    await ready();
    // Without a look into the store.
    expect([actor.watermark, counts['catchUp'], source.pages]).toEqual([2, 0, 0]);
    runShort();
    expect(probe.seen).toEqual([2]);
  });

  test('of a shard that nobody has loaded they are forgotten, and so are hints', () => {
    const { actor, commit, source } = start();
    actor.changes.committed(commit('a'));
    actor.changes.hint(0);
    actor.changes.hint(5);
    expect([actor.state, actor.lag, source.loads, source.pages]).toEqual(['unloaded', 0, 0, 0]);
  });

  test('hints: 0 looks, a known seq does not, a new one does', async () => {
    const { actor, load, commit, source, ready } = start();
    await load(2);
    const pages = source.pages;
    actor.changes.hint(1);
    actor.changes.hint(2);
    expect([actor.state, source.pages]).toEqual(['ready', pages]);
    actor.changes.hint(0);
    expect(actor.state).toBe('catchingUp');
    await ready();
    expect(source.pages).toBe(pages + 1);
    commit('c');
    actor.changes.hint(3);
    expect([actor.state, actor.lag]).toEqual(['catchingUp', 1]);
    await ready();
    expect([actor.watermark, actor.lag]).toEqual([3, 0]);
  });

  test('a change that the index refuses drops it; who waits gets another', async () => {
    const { actor, load, commit, ask, ready, runShort, reports, source } = start();
    await load(1);
    const second = commit('b');
    const waiting = ask({ minRevision: 2 });
    await ready();
    const { generation } = actor;
    actor.changes.committed({ ...commit('c'), changes: 'no list' });
    expect(reports).toEqual(['shard_index_damaged']);
    expect(actor.generation).toBeGreaterThan(generation);
    await expect.poll(() => actor.state).not.toBe('catchingUp');
    const probe = ask({ minRevision: 3 });
    await ready();
    runShort();
    expect([probe.seen, actor.watermark, source.loads]).toEqual([[3], 3, 2]);
    expect(waiting.seen.length).toBe(1);
    expect(second.revision).toBe(2);
  });
});

describe('an evaluation that is begun', () => {
  test('keeps its revision: changes wait, in order, and nothing new begins over them', async () => {
    const { actor, load, commit, ask, runShort, runLong } = start();
    await load(1);
    const long = ask({ slices: 4 });
    runShort();
    const beside = ask();
    runShort();
    expect([long.seen, beside.seen]).toEqual([[1], [1]]);
    const [second, third] = [commit('b'), commit('c')];
    actor.changes.committed(third);
    actor.changes.committed(second);
    const after = ask();
    expect(runShort()).toBe(false);
    for (let i = 0; i < 2; i++) {
      expect([after.seen, actor.watermark, actor.isEvictable]).toEqual([[], 1, false]);
      runLong();
    }
    runLong();
    expect([long.seen, actor.watermark]).toEqual([[1, 1, 1, 1], 3]);
    runShort();
    expect(after.seen).toEqual([3]);
    expect(actor.isEvictable).toBe(true);
  });

  test('a page that is read meanwhile waits for its end, too', async () => {
    const { actor, load, commit, ask, runShort, runLong, ready } = start();
    await load(1);
    const long = ask({ slices: 3 });
    runShort();
    commit('b');
    const waiting = ask({ minRevision: 2 });
    await settle();
    const other = ask();
    runShort();
    expect([actor.watermark, actor.state]).toEqual([1, 'catchingUp']);
    expect([other.seen, waiting.seen]).toEqual([[], []]);
    runLong();
    expect(actor.watermark).toBe(1);
    runLong();
    // In the very step that ends it.
    expect([long.seen, actor.watermark]).toEqual([[1, 1, 1], 2]);
    await ready();
    runShort();
    expect([other.seen, waiting.seen]).toEqual([[2], [2]]);
  });

  test('begins anew when its index goes', async () => {
    const { actor, load, ask, runShort, ready } = start();
    await load(1);
    const long = ask({ slices: 3 });
    const queued = ask({ isLong: true });
    runShort();
    expect(long.seen).toEqual([1]);
    actor.damaged(new Error('damaged'));
    expect(long.restarts).toBe(1);
    expect(queued.restarts).toBe(0);
    await ready();
    runShort();
    expect(long.seen).toEqual([1, 1]);
    expect(actor.depth).toBe(2);
  });
});

describe('loads and catch-ups', () => {
  test('what an earlier life of the index has asked for is ignored', async () => {
    const { actor, load, source, commit, ready, ask } = start();
    await load(1);
    const [held, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    source.fault = (what) => (what === 'load' ? hold : held).promise;
    commit('b');
    actor.changes.hint(2);
    expect(actor.state).toBe('catchingUp');
    actor.damaged(new Error('damaged'));
    expect([actor.state, actor.isLoaded]).toEqual(['loading', false]);
    held.resolve();
    await settle();
    expect([actor.state, actor.isLoaded, actor.watermark]).toEqual(['loading', false, 1]);
    hold.resolve();
    ask({ minRevision: 2 });
    await ready();
    expect([actor.watermark, actor.tupleCount]).toEqual([2, 2]);
  });

  test('a failed load fails who waits, and the next one is tried', async () => {
    const { actor, source, ask, ready, counts, reports } = start();
    source.fault = () => Promise.reject(new Error('away'));
    const [first, second] = [ask(), ask()];
    await expect.poll(() => first.reason).toBe('SHARD_UNAVAILABLE');
    expect([second.reason, actor.state, actor.depth]).toEqual(['SHARD_UNAVAILABLE', 'unloaded', 0]);
    expect([counts['loadFailure'], source.loads, reports]).toEqual([1, 1, ['shard_load_failed']]);
    source.fault = () => Promise.resolve();
    ask();
    await ready();
  });

  test('a catch-up is tried three times, then who waits is told', async () => {
    const { actor, load, source, ask, runShort } = start();
    await load(1);
    let calls = 0;
    source.fault = () => {
      calls++;
      return Promise.reject(new Error('away'));
    };
    const waiting = ask({ minRevision: 2 });
    const fine = ask({ minRevision: 1 });
    runShort();
    expect(fine.seen).toEqual([1]);
    await expect.poll(() => waiting.reason).toBe('SHARD_UNAVAILABLE');
    expect([calls, actor.state, actor.watermark]).toEqual([3, 'ready', 1]);
  });

  test('many pages are read to the end', async () => {
    const { actor, load, commit, source, ready, ask, runShort } = start();
    await load(1);
    for (let i = 0; i < 10; i++) commit(`c${i}`);
    const pages = source.pages;
    const waiting = ask({ minRevision: 11 });
    await ready();
    runShort();
    expect([waiting.seen, source.pages - pages, actor.tupleCount]).toEqual([[11], 4, 11]);
  });

  test('a seq that somebody asks for is looked for again and again', async () => {
    const { actor, load, ask, commit, runShort } = start();
    await load(1);
    const waiting = ask({ minRevision: 2 });
    await settle();
    commit('late');
    await expect.poll(() => actor.watermark).toBe(2);
    runShort();
    expect(waiting.seen).toEqual([2]);
  });

  test('an evicted one is gone, and may come back', async () => {
    const { actor, load, ask, ready } = start();
    await load(1);
    expect(actor.isEvictable).toBe(true);
    const waiting = ask();
    expect(actor.isEvictable).toBe(false);
    waiting.isCancelled = true;
    actor.runShort(Infinity, Infinity, () => undefined);
    actor.evict();
    expect([actor.state, actor.isLoaded, actor.indexBytes, actor.tupleCount]).toEqual([
      'unloaded',
      false,
      0,
      0,
    ]);
    expect(() => actor.index).toThrow('not loaded');
    ask();
    await ready();
    expect(actor.indexBytes).toBeGreaterThan(0);
    actor.changes.hint(0);
    expect(() => actor.evict()).toThrow("cannot be told 'evicted'");
  });
});

describe('what the worker around it is told', () => {
  test('of work, of its ends, of the id under evaluation', async () => {
    const { actor, load, ask, take } = start();
    await load(1);
    take();
    ask();
    expect(take()).toEqual(['runnable']);
    ask({ isLong: true });
    expect(take()).toEqual(['longRunnable']);
    const marks: number[] = [];
    const mark = (id: number): void => void marks.push(id);
    expect(actor.runShort(Infinity, Infinity, mark)).toBe(false);
    expect(marks).toEqual([2, 0]);
    expect(actor.runLong(Infinity, mark)).toBe(false);
    expect(marks).toEqual([2, 0, 3, 0]);
    ask({ slices: 2 });
    take();
    actor.runShort(Infinity, Infinity, mark);
    expect(take()).toEqual(['longRunnable']);
    expect(actor.indexBytes).toBeGreaterThan(1_000_000);
  });

  test('of short ones that could begin again', async () => {
    const { actor, load, commit, ask, runShort, runLong, take } = start();
    await load(1);
    ask({ slices: 2 });
    runShort();
    actor.changes.committed(commit('b'));
    ask();
    expect(runShort()).toBe(false);
    take();
    runLong();
    expect(take()).toEqual(['runnable']);
    expect(runShort()).toBe(false);
    take();
    ask({ isLong: true });
    take();
    runLong();
    expect(take()).toEqual([]);
  });

  test('that it has settled: loaded, failed, caught up, dropped, swept', async () => {
    const { actor, source, ask, take, ready, load, runShort } = start();
    source.fault = () => Promise.reject(new Error('away'));
    const probe = ask();
    await expect.poll(() => probe.reason).toBe('SHARD_UNAVAILABLE');
    expect(take()).toContain('settled');
    source.fault = () => Promise.resolve();
    await load(1);
    expect(take()).toContain('settled');
    actor.changes.hint(0);
    await ready();
    expect(take()).toEqual(['settled']);
    ask({ minRevision: 9, waitUntilMs: 5 });
    await ready();
    take();
    actor.sweep(4);
    expect(take()).toEqual([]);
    actor.sweep(5);
    expect(take()).toEqual(['settled']);
    actor.sweep(6);
    expect(take()).toEqual([]);
    runShort();
    actor.evict();
    expect(take()).toEqual(['settled']);
  });
});

describe('shares of time', () => {
  test('short ones end with their share, and say that there are more', async () => {
    const { actor, load, ask, time } = start();
    await load(1);
    const probes = [ask(), ask(), ask()];
    const seen = (): number => probes.filter((probe) => probe.seen.length > 0).length;
    time.nowMs = 100;
    const none = (): void => undefined;
    expect([actor.runShort(100, 200, none), seen()]).toEqual([true, 1]);
    expect([actor.runShort(99, 200, none), seen()]).toEqual([true, 2]);
    expect([actor.runShort(100, 200, none), seen()]).toEqual([false, 3]);
    const more = [ask(), ask()];
    expect(actor.runShort(101, 200, none)).toBe(false);
    expect(more.map((probe) => probe.seen)).toEqual([[1], [1]]);
  });

  test('long ones end with their slice', async () => {
    const { actor, load, ask, time } = start();
    await load(1);
    const probes = [1, 2, 3].map(() => ask({ isLong: true }));
    const seen = (): number => probes.filter((probe) => probe.seen.length > 0).length;
    time.nowMs = 100;
    const none = (): void => undefined;
    expect([actor.runLong(100, none), seen()]).toEqual([true, 1]);
    expect([actor.runLong(101, none), seen()]).toEqual([false, 3]);
  });

  test('a deadline ends with its last millisecond', async () => {
    const { load, ask, runShort, time } = start();
    await load(1);
    time.nowMs = 1000;
    const [at, after] = [1000, 1001].map((ms) => ask({ deadlineMs: performance.timeOrigin + ms }));
    runShort();
    expect([at?.reason, after?.seen]).toEqual(['DEADLINE_EXCEEDED', [1]]);
  });
});

describe('more than one evaluation is begun', () => {
  test('changes and pages wait for the last of them', async () => {
    for (const how of ['change', 'page'] as const) {
      const { actor, load, commit, ask, runShort, runLong } = start();
      await load(1);
      const [first, second] = [ask({ slices: 2 }), ask({ slices: 4 })];
      runShort();
      const change = commit('b');
      if (how === 'change') actor.changes.committed(change);
      else {
        actor.changes.hint(2);
        await settle();
      }
      while (first.seen.length < 2) runLong();
      expect([actor.watermark, second.seen.length < 4]).toEqual([1, true]);
      while (second.seen.length < 4) runLong();
      expect([actor.watermark, first.seen, second.seen]).toEqual([2, [1, 1], [1, 1, 1, 1]]);
    }
  });

  test('changes that came during a catch-up wait for it even when the catch-up fails', async () => {
    const { actor, load, source, commit, ask, runShort, runLong, ready, reports } = start();
    await load(1);
    const long = ask({ slices: 3 });
    runShort();
    source.fault = () => Promise.reject(new Error('away'));
    actor.changes.hint(0);
    actor.changes.committed(commit('b'));
    await ready();
    expect([reports, actor.watermark, long.seen]).toEqual([['shard_catch_up_failed'], 1, [1]]);
    runLong();
    expect(actor.watermark).toBe(1);
    runLong();
    expect([long.seen, actor.watermark]).toEqual([[1, 1, 1], 2]);
  });

  test('those that were to begin on another history begin on the new one', async () => {
    const { actor, load, source, commit, ask, runShort, ready } = start();
    await load(1);
    const change = commit('b');
    actor.changes.committed(change);
    const [short, long] = [ask(), ask({ isLong: true })];
    source.diverge(SHARD, { forkId: '55' });
    actor.changes.committed({ ...change, forkId: '55' });
    expect(runShort()).toBe(false);
    expect([short.seen, short.reason, actor.depth]).toEqual([[], undefined, 2]);
    await ready();
    runShort();
    actor.runLong(Infinity, () => undefined);
    expect([short.seen, long.seen, actor.position.forkId]).toEqual([[2], [2], '55']);
  });
});

describe('what waits is served as soon as it can be', () => {
  test('by the next change, with no look into the store', async () => {
    const { actor, load, ask, runShort, commit, ready, source } = start();
    await load(1);
    const waiting = ask({ minRevision: 2 });
    await ready();
    const { pages } = source;
    actor.changes.committed(commit('b'));
    runShort();
    expect([waiting.seen, source.pages]).toEqual([[2], pages]);
  });

  test('by changes that came during a catch-up, or one that failed', async () => {
    for (const fails of [false, true]) {
      const { actor, load, ask, commit, source, ready, runShort } = start();
      await load(1);
      const page = Promise.withResolvers<void>();
      source.fault = () => page.promise;
      actor.changes.hint(0);
      await settle();
      const change = commit('b');
      source.diverge(SHARD, { revision: 1, forkId: actor.position.forkId });
      actor.changes.committed(change);
      expect(actor.watermark).toBe(1);
      if (fails) {
        source.fault = () => Promise.reject(new Error('away'));
        page.reject(new Error('away'));
      } else {
        page.resolve();
      }
      await ready();
      expect(actor.watermark).toBe(2);
      const probe = ask({ minRevision: 2 });
      runShort();
      expect(probe.seen).toEqual([2]);
    }
  });

  test('after a load that shows less than was asked for', async () => {
    const { actor, source, ask, ready, runShort, commit } = start();
    commit('a');
    const load = Promise.withResolvers<void>();
    source.fault = (what) => (what === 'load' ? load.promise : Promise.resolve());
    const waiting = ask({ minRevision: 1 });
    actor.changes.hint(3);
    load.resolve();
    await ready();
    runShort();
    expect([waiting.seen, source.pages > 0]).toEqual([[1], true]);
  });

  test('a shard that is too large is told as such, another fault of the load is not', async () => {
    for (const [reason, wanted] of [
      ['SHARD_TOO_LARGE', 'SHARD_TOO_LARGE'],
      ['INTERNAL', 'SHARD_UNAVAILABLE'],
    ] as const) {
      const { source, ask } = start();
      source.fault = () => Promise.reject(new AppError(reason, 'no'));
      const probe = ask();
      await expect.poll(() => probe.reason).toBe(wanted);
    }
  });

  test('a hint of what is not there is looked after twice, and then forgotten', async () => {
    const { actor, load, source, counts } = start();
    await load(1);
    actor.changes.hint(7);
    expect(actor.lag).toBe(6);
    await expect.poll(() => counts['catchUp']).toBe(2);
    await expect.poll(() => actor.state).toBe('ready');
    expect(actor.lag).toBe(0);
    const { pages } = source;
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect([source.pages, counts['catchUp']]).toEqual([pages, 2]);
  });
});

describe('settings', () => {
  test('nothing is answered under older ones than a change that is shown, nor taken back', async () => {
    const { actor, source, ask, load, runShort } = start();
    await load(1);
    const before = ask({ settingsVersion: 1 });
    const change = source.commit(SHARD, [viewer('insert', 'x', 'u')], 3);
    // Admitted before the change came, begun after it.
    actor.changes.committed(change);
    runShort();
    expect([before.seen, before.reason]).toEqual([[], 'SETTINGS_OLD']);
    const [old, same, newer] = [2, 3, 4].map((settingsVersion) => ask({ settingsVersion }));
    runShort();
    expect([old?.reason, same?.seen, newer?.seen]).toEqual(['SETTINGS_OLD', [2], [2]]);
    // A change of a writer that knew older ones does not lower it.
    actor.changes.committed(source.commit(SHARD, [viewer('insert', 'y', 'u')], 2));
    expect(ask({ settingsVersion: 2 }).reason).toBe('SETTINGS_OLD');
  });

  test('a snapshot says under which it was written, and so does what is caught up with', async () => {
    const { actor, source, ask, ready, runShort } = start();
    source.commit(SHARD, [viewer('insert', 'x', 'u')], 5);
    const [old, fit] = [ask({ settingsVersion: 4 }), ask({ settingsVersion: 5 })];
    await ready();
    runShort();
    expect([old.reason, fit.seen]).toEqual(['SETTINGS_OLD', [1]]);
    source.commit(SHARD, [viewer('insert', 'y', 'u')], 6);
    const waiting = ask({ settingsVersion: 5, minRevision: 2 });
    await expect.poll(() => actor.watermark).toBe(2);
    expect(waiting.reason).toBe('SETTINGS_OLD');
  });
});

describe('what is held', () => {
  test('who asks only for that is told at once that it is not, and nothing is loaded for it', async () => {
    const { actor, source, ask, load, runShort } = start();
    expect(ask({ isHeldOnly: true }).reason).toBe('SHARD_BEHIND');
    expect([actor.state, source.loads]).toEqual(['unloaded', 0]);
    await load(2);
    const { pages } = source;
    const [held, behind, other] = [
      ask({ isHeldOnly: true, minRevision: 2 }),
      ask({ isHeldOnly: true, minRevision: 3 }),
      ask({ isHeldOnly: true, epoch: 2 }),
    ];
    runShort();
    expect(held.seen).toEqual([2]);
    expect([behind.reason, other.reason]).toEqual(['SHARD_BEHIND', 'SHARD_BEHIND']);
    expect([source.pages, actor.state]).toEqual([pages, 'ready']);
  });
});

describe('another history', () => {
  test('a stamp that is not that of the index drops it, once for a request', async () => {
    const { ask, load, source, ready, counts, runShort } = start();
    await load(3);
    const forkId = source.head(SHARD).forkId;
    expect(ask({ minRevision: 3, forkId }).reason).toBeUndefined();
    runShort();
    // The store has this history all the same: the request names one that is gone.
    const lost = ask({ minRevision: 3, forkId: '424242' });
    await ready();
    expect([counts['load'], lost.reason]).toEqual([2, 'SHARD_UNAVAILABLE']);
    // The store has another one: the index that is loaded anew fits the request.
    source.diverge(SHARD, { forkId: '77' });
    const other = ask({ minRevision: 3, forkId: '77' });
    await ready();
    runShort();
    expect([counts['load'], other.seen]).toEqual([3, [3]]);
  });

  test('is seen below the watermark, too, as far as stamps are remembered', async () => {
    const { actor, ask, load, commit, ready, counts, runShort } = start();
    await load(1);
    const changes = Array.from({ length: 40 }, (_, i) => commit(`c${i}`));
    for (const change of changes) actor.changes.committed(change);
    expect(actor.watermark).toBe(41);
    const [old, recent] = [changes[3], changes[30]];
    ask({ minRevision: recent?.revision ?? 0, forkId: recent?.forkId ?? '' });
    ask({ minRevision: old?.revision ?? 0, forkId: 'not remembered' });
    runShort();
    expect(counts['load']).toBe(1);
    ask({ minRevision: recent?.revision ?? 0, forkId: 'another' });
    await ready();
    expect(counts['load']).toBe(2);
  });
});

describe('carried changes', () => {
  const carriedOf = (
    source: MemoryShardSource,
    afterRevision: number,
    changes: readonly CommittedChange[],
    more: Partial<CarriedChanges> = {},
  ): CarriedChanges => {
    const { epoch, revision, forkId } = source.head(SHARD);
    const head = { ...SHARD, epoch, revision, forkId };
    return { ...head, isLost: false, afterRevision, forkIdAtStart: '', changes, ...more };
  };

  test('bring a shard forward without a look at the store; what is there already is not taken twice', async () => {
    const { actor, source, load, commit, ask, runShort } = start();
    await load(2);
    const changes = [commit('a'), commit('b'), commit('c')];
    const { pages } = source;
    actor.changes.committed(changes[0] as CommittedChange);
    actor.changes.carried(carriedOf(source, 2, changes));
    const probe = ask({ minRevision: 5, forkId: source.head(SHARD).forkId });
    runShort();
    expect([actor.watermark, probe.seen, source.pages]).toEqual([5, [5], pages]);
  });

  test('after a gap are not applied', async () => {
    const { actor, source, load, commit, ready } = start();
    await load(1);
    commit('missed');
    const changes = [commit('b')];
    actor.changes.carried(carriedOf(source, 2, changes));
    expect(actor.watermark).toBe(1);
    await ready();
    expect([actor.watermark, actor.tupleCount]).toEqual([3, 3]);
  });

  test('that follow another stamp than the one here drop the index; those of a shard that is not here do nothing', async () => {
    const { actor, source, load, commit, ready, counts } = start();
    actor.changes.carried(carriedOf(source, 0, []));
    expect(actor.state).toBe('unloaded');
    await load(2);
    const change = commit('c');
    actor.changes.carried(carriedOf(source, 2, [change], { forkIdAtStart: '99' }));
    await ready();
    expect([counts['load'], actor.watermark]).toEqual([2, 3]);
  });

  test('a lost history drops the index, unless it stands at the head already', async () => {
    const { actor, source, load, ready, counts } = start();
    await load(3);
    actor.changes.carried(carriedOf(source, 5, [], { isLost: true }));
    expect([actor.state, counts['load']]).toEqual(['ready', 1]);
    source.diverge(SHARD, { revision: 1, forkId: '7920' });
    actor.changes.carried(carriedOf(source, 3, [], { isLost: true }));
    await ready();
    expect([counts['load'], actor.watermark]).toEqual([2, 1]);
  });
});
