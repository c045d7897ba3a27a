import { describe, expect, test } from 'vitest';
import { AppError } from '../../shared/app-error.ts';
import {
  type HeadRevisionWaiter,
  HeadRevisionLoads,
  type Load,
  type WaiterEntry,
} from './head-revision-loads.ts';

type Reader = HeadRevisionWaiter & { readonly notified: string[] };

function reader(): Reader {
  const notified: string[] = [];
  return {
    notified,
    deadlineMs: Number.POSITIVE_INFINITY,
    found: () => void notified.push('found'),
    failed: (error) => void notified.push(error.reason),
  };
}

const add = (
  loads: HeadRevisionLoads,
  tenantId: string,
  waiter: HeadRevisionWaiter = reader(),
): WaiterEntry => loads.add({ projectId: 'p', tenantId }, waiter, 1_000);
const tenants = (loads: readonly Load[]): string[] => loads.map(({ shard }) => shard.tenantId);
const MAX = 100;
const HEAD = { epoch: 1, minRevision: 1, forkId: '' };
const tellAll = (loads: HeadRevisionLoads, load: Load): number =>
  loads.notify(load, (waiter) => waiter.found(HEAD, 1, 0));
const stopping = new AppError('SHUTTING_DOWN', 'stopping');

test('reads of a shard share a load until it is taken, later ones have another', () => {
  const loads = new HeadRevisionLoads();
  const [first, second, other] = [add(loads, 'a'), add(loads, 'a'), add(loads, 'b')];
  expect(first.load).toBe(second.load);
  expect(other.load).not.toBe(first.load);
  expect([loads.waitingCount, first.load.waitingCount]).toEqual([3, 2]);
  expect(tenants(loads.takeBatch([], MAX))).toEqual(['a', 'b']);
  const late = add(loads, 'a');
  expect(late.load).not.toBe(first.load);
  expect(tenants(loads.takeBatch([], MAX))).toEqual(['a']);
  expect(loads.takeBatch([], MAX)).toEqual([]);
});

describe('leaving', () => {
  test('gives the reader, once, and leaves the others', () => {
    const loads = new HeadRevisionLoads();
    const waiter = reader();
    const [first, second] = [add(loads, 'a', waiter), add(loads, 'a')];
    expect(loads.remove(first)).toBe(waiter);
    expect([loads.waitingCount, first.load.waitingCount, first.waiter]).toEqual([1, 1, null]);
    expect(() => loads.remove(first)).toThrow('told once');
    const [load] = loads.takeBatch([], MAX);
    expect(load).toBe(second.load);
    expect(tellAll(loads, load as Load)).toBe(1);
    expect(waiter.notified).toEqual([]);
  });

  test('of the last one of what was not sent: nobody asks, and who comes has another load', () => {
    const loads = new HeadRevisionLoads();
    const first = add(loads, 'a');
    loads.remove(first);
    expect(first.load).toMatchObject({ isSettled: true, waiters: [] });
    expect(loads.takeBatch([], MAX)).toEqual([]);
    expect(add(loads, 'a').load).not.toBe(first.load);
    expect(tenants(loads.takeBatch([], MAX))).toEqual(['a']);
  });

  test('of the last one of what was sent: it still tells the head, and keeps no reader', () => {
    const loads = new HeadRevisionLoads();
    const first = add(loads, 'a');
    loads.takeBatch([], MAX);
    loads.remove(first);
    expect(first.load).toMatchObject({ isSettled: false, waiters: [] });
    expect(loads.waitingCount).toBe(0);
  });

  test('of what was sent takes nothing from who came later', () => {
    const loads = new HeadRevisionLoads();
    const first = add(loads, 'a');
    loads.takeBatch([], MAX);
    const late = add(loads, 'a');
    loads.remove(first);
    expect(add(loads, 'a').load).toBe(late.load);
    expect(loads.takeBatch([], MAX)).toEqual([late.load]);
  });
});

describe('what is taken', () => {
  test('begins with what stalls, each shard once, and has a bound', () => {
    const loads = new HeadRevisionLoads();
    add(loads, 'a');
    add(loads, 'b');
    const stalled = loads.takeBatch([], MAX);
    for (const tenant of ['b', 'c', 'd']) add(loads, tenant);
    const taken = loads.takeBatch(stalled, 3);
    expect(tenants(taken)).toEqual(['a', 'b', 'c']);
    expect(taken.slice(0, 2)).toEqual(stalled);
    expect(tenants(loads.unsent)).toEqual(['b', 'd']);
    // What stays back has its place: who comes shares it.
    expect(add(loads, 'b').load).toBe(loads.unsent[0]);
    expect(tenants(loads.takeBatch([], MAX))).toEqual(['b', 'd']);
  });

  test('is nothing of what nobody waits for any more, or was told', () => {
    const loads = new HeadRevisionLoads();
    const [left, notified] = [add(loads, 'left'), add(loads, 'told')];
    const stalled = loads.takeBatch([], MAX);
    loads.remove(left);
    tellAll(loads, notified.load);
    expect(loads.takeBatch(stalled, MAX)).toEqual([]);
  });
});

describe('what is given back', () => {
  test('is sent again, before what came later, and others share it', () => {
    const loads = new HeadRevisionLoads();
    const first = add(loads, 'a');
    loads.takeBatch([], MAX);
    add(loads, 'b');
    const { load } = first;
    load.raised = { epoch: 1, minRevision: 4, forkId: '' };
    load.isForgotten = true;
    loads.release(load);
    expect(load).toMatchObject({ raised: undefined, isForgotten: false, isSettled: false });
    expect(add(loads, 'a').load).toBe(load);
    expect(tenants(loads.takeBatch([], MAX))).toEqual(['a', 'b']);
    expect(load.waitingCount).toBe(2);
  });

  test('joins what came for its shard meanwhile, but for those who left', () => {
    const loads = new HeadRevisionLoads();
    const waiters = [reader(), reader(), reader()] as const;
    const [gone, stays] = [add(loads, 'a', waiters[0]), add(loads, 'a', waiters[1])];
    loads.takeBatch([], MAX);
    const late = add(loads, 'a', waiters[2]);
    loads.remove(gone);
    const { load } = stays;
    loads.release(load);
    expect(load).toMatchObject({ isSettled: true, waiters: [], waitingCount: 0 });
    expect(stays.load).toBe(late.load);
    expect([late.load.waitingCount, loads.waitingCount]).toEqual([2, 2]);
    expect(loads.takeBatch([], MAX)).toEqual([late.load]);
    expect(tellAll(loads, late.load)).toBe(2);
    expect(waiters.map(({ notified }) => notified)).toEqual([[], ['found'], ['found']]);
    expect(loads.waitingCount).toBe(0);
  });

  test('is settled where nobody waits for it', () => {
    const loads = new HeadRevisionLoads();
    const { load } = add(loads, 'a');
    loads.takeBatch([], MAX);
    loads.remove(load.waiters[0] as WaiterEntry);
    loads.release(load);
    expect(load.isSettled).toBe(true);
    expect(loads.unsent).toEqual([]);
    expect(add(loads, 'a').load).not.toBe(load);
  });

  test('stays where it is once it was told', () => {
    const loads = new HeadRevisionLoads();
    const { load } = add(loads, 'a');
    loads.takeBatch([], MAX);
    tellAll(loads, load);
    load.raised = { epoch: 1, minRevision: 4, forkId: '' };
    loads.release(load);
    expect([loads.unsent, load.raised?.minRevision]).toEqual([[], 4]);
  });
});

test('all of a load are told once, and it is settled, also where all of them left', () => {
  const loads = new HeadRevisionLoads();
  const waiters = [reader(), reader(), reader()];
  const [gone] = waiters.map((waiter) => add(loads, 'a', waiter)) as [WaiterEntry];
  const { load } = gone;
  loads.takeBatch([], MAX);
  loads.remove(gone);
  expect(tellAll(loads, load)).toBe(2);
  expect(waiters.map(({ notified }) => notified)).toEqual([[], ['found'], ['found']]);
  expect([load.isSettled, loads.waitingCount]).toEqual([true, 0]);
  expect(tellAll(loads, load)).toBe(0);

  const alone = add(loads, 'b');
  loads.takeBatch([], MAX);
  loads.remove(alone);
  expect([tellAll(loads, alone.load), alone.load.isSettled]).toEqual([0, true]);
});

test('those fail for whom there is an error, once', () => {
  const loads = new HeadRevisionLoads();
  const waiters = [reader(), reader(), reader()];
  const [gone, late] = waiters.map((waiter) => add(loads, 'a', waiter)) as [
    WaiterEntry,
    WaiterEntry,
  ];
  loads.remove(gone);
  const asked: WaiterEntry[] = [];
  loads.fail(late.load, (waiting) => {
    asked.push(waiting);
    return waiting === late ? stopping : null;
  });
  expect(asked).toHaveLength(2);
  expect(waiters.map(({ notified }) => notified)).toEqual([[], ['SHUTTING_DOWN'], []]);
  expect(loads.waitingCount).toBe(1);
  loads.fail(late.load, () => stopping);
  expect(waiters.map(({ notified }) => notified)).toEqual([
    [],
    ['SHUTTING_DOWN'],
    ['SHUTTING_DOWN'],
  ]);
  expect(loads.takeBatch([], MAX)).toEqual([]);
});

describe('loads that nobody waits for', () => {
  test('take no memory while nothing is sent', () => {
    const loads = new HeadRevisionLoads();
    const kept = Array.from({ length: 40 }, (_, i) => add(loads, `kept${i}`));
    for (let i = 0; i < 1_000; i++) loads.remove(add(loads, `gone${i}`));
    // Settled ones are at most as many as those that wait, or few.
    expect(loads.unsent.length).toBeLessThanOrEqual(81);
    expect(loads.takeBatch([], MAX)).toEqual(kept.map(({ load }) => load));
  });

  test('are looked for only where they are many: each look costs as much as there are', () => {
    const loads = new HeadRevisionLoads();
    const few = Array.from({ length: 63 }, (_, i) => add(loads, `t${i}`));
    for (const one of few) loads.remove(one);
    expect(loads.unsent).toHaveLength(63);
    loads.remove(add(loads, 'one more'));
    expect(loads.unsent).toEqual([]);

    const many = Array.from({ length: 200 }, (_, i) => add(loads, `t${i}`));
    for (const one of many.slice(0, 99)) loads.remove(one);
    expect(loads.unsent).toHaveLength(200);
    loads.remove(many[99] as WaiterEntry);
    expect(loads.unsent).toEqual(many.slice(100).map(({ load }) => load));
  });

  test('are counted also where loads were taken and given back', () => {
    const loads = new HeadRevisionLoads();
    for (let i = 0; i < 100; i++) add(loads, `t${i}`);
    const sent = loads.takeBatch([], MAX);
    for (const load of sent) loads.release(load);
    expect(loads.unsent).toHaveLength(100);
    for (const load of sent.slice(0, 49)) loads.remove(load.waiters[0] as WaiterEntry);
    expect(loads.unsent).toHaveLength(100);
    loads.remove(sent[49]?.waiters[0] as WaiterEntry);
    expect(loads.unsent).toHaveLength(50);
  });
});
