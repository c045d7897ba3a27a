import { describe, expect, test } from 'vitest';
import { AppError } from '../../src/shared/app-error.ts';
import { SHARD, start, settle } from './actor-fixture.ts';

describe('what an earlier life of an index, or another state, has left behind', () => {
  test('a page that waited for an evaluation is not applied to the next index', async () => {
    const { actor, load, commit, ask, runShort, ready, reports, source } = start();
    await load(1);
    const long = ask({ slices: 2 });
    runShort();
    commit('b');
    actor.changes.hint(2);
    await settle();
    actor.damaged(new Error('damaged'));
    await ready();
    expect([actor.watermark, source.loads]).toEqual([2, 2]);
    runShort();
    await settle();
    expect([long.seen, actor.state, actor.isLoaded]).toEqual([[1, 2], 'ready', true]);
    expect([reports, source.loads]).toEqual([['shard_index_damaged'], 2]);
  });

  test('the end of its catch-up does not end the one of the next index', async () => {
    const { actor, load, source, commit } = start();
    await load(1);
    const [old, next] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    source.fault = (what) => (what === 'load' ? Promise.resolve() : old.promise);
    actor.changes.hint(0);
    actor.damaged(new Error('damaged'));
    source.fault = (what) => (what === 'load' ? Promise.resolve() : next.promise);
    await expect.poll(() => actor.state, { interval: 2 }).toBe('ready');
    actor.changes.hint(0);
    old.resolve();
    await settle();
    expect(actor.state).toBe('catchingUp');
    commit('b');
    next.resolve();
    await expect.poll(() => actor.state, { interval: 2 }).toBe('ready');
    expect(actor.watermark).toBe(2);
  });

  test('hints during a catch-up start no other', async () => {
    const { actor, load, counts, ready, source } = start();
    await load(1);
    const page = Promise.withResolvers<void>();
    source.fault = () => page.promise;
    actor.changes.hint(0);
    actor.changes.hint(0);
    actor.changes.hint(9);
    expect([counts['catchUp'], actor.isEvictable, actor.depth]).toEqual([1, false, 0]);
    page.resolve();
    await ready();
  });

  test('a page with a gap, or a change that cannot be read, drops the index once', async () => {
    for (const how of ['gap', 'unreadable'] as const) {
      const { actor, load, commit, source, reports, ready, ask, runShort } = start();
      await load(1);
      const readChanges = source.readChanges.bind(source);
      let pages = 0;
      source.readChanges = async (shard, afterRevision) => {
        const page = await readChanges(shard, afterRevision);
        if (pages++ > 0) return page;
        const changes =
          how === 'gap'
            ? page.changes.slice(1)
            : page.changes.map((each) =>
                each.revision === 2 ? { ...each, changes: 'no list' } : each,
              );
        return { ...page, changes };
      };
      for (const id of ['b', 'c', 'd']) commit(id);
      const waiting = ask({ minRevision: 4 });
      await expect.poll(() => reports.length).toBeGreaterThan(0);
      await ready();
      runShort();
      expect([waiting.seen, actor.tupleCount, reports]).toEqual([[4], 4, ['shard_index_damaged']]);
      expect(source.loads).toBe(2);
    }
  });

  test('a change that the index refuses at once drops it', async () => {
    const { actor, load, commit, reports } = start();
    await load(1);
    actor.changes.committed({ ...commit('b'), changes: 'no list' });
    expect([actor.isLoaded, actor.state, reports]).toEqual([
      false,
      'loading',
      ['shard_index_damaged'],
    ]);
  });

  test('changes held for an evaluation wait for the catch-up, too', async () => {
    const { actor, load, commit, ask, runShort, runLong, source, ready, reports } = start();
    await load(1);
    ask({ slices: 2 });
    runShort();
    const page = Promise.withResolvers<void>();
    source.fault = () => page.promise;
    actor.changes.hint(0);
    actor.changes.committed(commit('b'));
    runLong();
    expect([actor.watermark, actor.state]).toEqual([1, 'catchingUp']);
    page.resolve();
    await ready();
    expect([actor.watermark, actor.tupleCount, reports]).toEqual([2, 2, []]);
  });

  test('of held changes that tell of another history the first one loads it, and once', async () => {
    const { actor, load, commit, ask, runShort, runLong, source, ready } = start();
    await load(1);
    ask({ slices: 2 });
    runShort();
    const [second, third] = [commit('b'), commit('c')];
    source.diverge(SHARD, { epoch: 2 });
    actor.changes.committed({ ...second, epoch: 2 });
    actor.changes.committed({ ...third, epoch: 2 });
    runLong();
    expect([actor.state, actor.isLoaded]).toEqual(['loading', false]);
    await ready();
    expect([actor.watermark, actor.position.epoch, source.loads]).toEqual([3, 2, 2]);
  });

  test('who waits for a held change is served when it is applied', async () => {
    const { actor, load, commit, ask, runShort, runLong, ready, source } = start();
    await load(1);
    const waiting = ask({ minRevision: 2 });
    await ready();
    ask({ slices: 2 });
    runShort();
    const { pages } = source;
    actor.changes.committed(commit('b'));
    expect(runShort()).toBe(false);
    runLong();
    runShort();
    expect([waiting.seen, source.pages]).toEqual([[2], pages]);
  });

  test('who waits is served by the first page that is enough', async () => {
    const { actor, load, commit, ask, runShort, source, ready } = start();
    await load(1);
    for (let i = 0; i < 5; i++) commit(`c${i}`);
    const second = Promise.withResolvers<void>();
    let reads = 0;
    source.fault = () => (++reads === 1 ? Promise.resolve() : second.promise);
    const [near, far] = [ask({ minRevision: 4 }), ask({ minRevision: 6 })];
    await expect.poll(() => actor.watermark).toBe(4);
    runShort();
    expect([near.seen, far.seen, actor.state]).toEqual([[4], [], 'catchingUp']);
    second.resolve();
    await ready();
    runShort();
    expect(far.seen).toEqual([6]);
  });

  test('a gap that comes to light behind a catch-up is known until it is closed', async () => {
    const { actor, load, commit, source, ready } = start();
    await load(1);
    const readChanges = source.readChanges.bind(source);
    const old = await readChanges(SHARD, 1);
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reads = 0;
    source.readChanges = async (shard, afterRevision) => {
      reads += 1;
      if (reads === 1) return first.promise.then(() => old);
      await second.promise;
      return readChanges(shard, afterRevision);
    };
    actor.changes.hint(0);
    commit('b');
    actor.changes.committed(commit('c'));
    first.resolve();
    await expect.poll(() => reads).toBe(2);
    expect([actor.state, actor.watermark, actor.lag]).toEqual(['catchingUp', 1, 2]);
    second.resolve();
    await ready();
    expect([actor.watermark, actor.lag]).toEqual([3, 0]);
  });

  test('a catch-up that failed has settled, too', async () => {
    const { actor, load, source, reports, take } = start();
    await load(1);
    take();
    source.fault = () => Promise.reject(new Error('away'));
    actor.changes.hint(0);
    await expect.poll(() => reports).toEqual(['shard_catch_up_failed']);
    expect(take()).toEqual(['settled']);
  });

  test('a first load tells nothing before its end', () => {
    const { ask, take, actor } = start();
    ask();
    expect([take(), actor.state]).toEqual([[], 'loading']);
  });

  test('an index with open jobs is not evicted', async () => {
    const { actor, load, ask, runShort } = start();
    await load(1);
    const open = ask();
    expect(() => actor.evict()).toThrow('idle');
    runShort();
    expect([open.seen, actor.isLoaded]).toEqual([[1], true]);
  });

  test('a job that its revision no longer serves fails, and is not run', async () => {
    const { load, ask, runShort, reports } = start();
    await load(1);
    const job = ask({ minRevision: 1 });
    Object.assign(job, { minRevision: 9 });
    runShort();
    expect([job.seen, job.reason, reports]).toEqual([[], 'INTERNAL', ['evaluation_failed']]);
  });

  test('an answer that is an error is not logged as a fault', async () => {
    const { load, ask, runShort, reports } = start();
    await load(1);
    const job = ask({ throws: new AppError('READ_BUDGET_EXCEEDED', 'too many reads') });
    runShort();
    expect([job.reason, reports]).toEqual(['READ_BUDGET_EXCEEDED', []]);
  });

  test('new long ones and begun ones begin slices in turn', async () => {
    const { load, ask, runLong } = start();
    await load(1);
    const order: string[] = [];
    const [a, b, c] = ['a', 'b', 'c'].map(() => ask({ isLong: true, slices: 3 }));
    for (let i = 0; i < 9; i++) {
      const before = [a, b, c].map((probe) => probe?.seen.length ?? 0);
      runLong();
      [a, b, c].forEach((probe, at) => {
        if ((probe?.seen.length ?? 0) > (before[at] ?? 0)) order.push('abc'[at] ?? '');
      });
    }
    expect(order.join('')).toBe('aabacbcbc');
  });

  test('within a slice new long ones begin before begun ones go on', async () => {
    const { actor, load, ask } = start();
    await load(1);
    const first = ask({ isLong: true, slices: 2 }).requestId;
    ask({ isLong: true, slices: 2 });
    ask({ isLong: true, slices: 2 });
    const marks: number[] = [];
    actor.runLong(Infinity, (id) => void marks.push(id));
    const order = marks.filter((id) => id > 0).map((id) => id - first);
    expect(order).toEqual([0, 1, 2, 0, 1, 2]);
  });
});
