import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ShardActor } from '../shard/shard-actor.ts';
import { IndexBudget } from './index-budget.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);

/** A shard as a budget sees it: the size of its index, and whether it may be evicted. */
type Index = Pick<ShardActor, 'indexBytes' | 'isLoaded' | 'isEvictable' | 'evict'>;
type Held = { -readonly [K in keyof Index]: Index[K] };

const gone: Held[] = [];

function held(indexBytes: number, isEvictable = true): Held & ShardActor {
  const index: Held = {
    indexBytes,
    isLoaded: true,
    isEvictable,
    evict(): void {
      gone.push(index);
      index.isLoaded = false;
      index.indexBytes = 0;
    },
  };
  return index as Held & ShardActor;
}

/** A budget with the shards in it, the first one settled first. */
function budgetOf(bytesMax: number, ...shards: readonly ShardActor[]): IndexBudget {
  gone.length = 0;
  const budget = new IndexBudget(bytesMax);
  for (const shard of shards) budget.settled(shard);
  return budget;
}

test('as many bytes as there may be are held, one more evicts who was used longest ago', () => {
  const [a, b, c, d] = [held(40), held(30), held(30), held(1)];
  const budget = budgetOf(100, a, b, c);
  expect([budget.bytes, gone]).toEqual([100, []]);
  budget.touch(a);
  budget.settled(d);
  expect(gone).toEqual([b]);
  expect([budget.bytes, budget.takeEvictions(), budget.takeEvictions()]).toEqual([71, 1, 0]);
});

test('several go where one is not enough', () => {
  const [a, b, c, d] = [held(40), held(30), held(30), held(65)];
  const budget = budgetOf(100, a, b, c, d);
  expect(gone).toEqual([a, b]);
  expect([budget.bytes, budget.takeEvictions()]).toEqual([95, 2]);
});

test('no more go than must', () => {
  const [a, b, c, d] = [held(40), held(30), held(30), held(40)];
  expect([budgetOf(100, a, b, c, d).bytes, gone]).toEqual([100, [a]]);
});

test('to be settled is no use: who was used longest ago goes all the same', () => {
  const [a, b, c] = [held(40), held(60), held(1)];
  const budget = budgetOf(100, a, b, a, c);
  expect([gone, budget.bytes]).toEqual([[a], 61]);
});

test('one that it was not told of is accounted when its size is asked for', () => {
  const budget = budgetOf(100);
  budget.reaccount(held(30));
  expect(budget.bytes).toBe(30);
});

test('one that is larger than all there may be is admitted alone, until another one comes', () => {
  const [a, b, c] = [held(40), held(150), held(10)];
  const budget = budgetOf(100, a, b);
  expect([gone, budget.bytes]).toEqual([[a], 150]);
  budget.settled(b);
  expect([gone, budget.bytes]).toEqual([[a], 150]);
  budget.settled(c);
  expect([gone, budget.bytes]).toEqual([[a, b], 10]);
});

test('one in use is pinned: it counts and stays, until it is idle again', () => {
  const [a, b, c] = [held(60, false), held(30), held(20)];
  const budget = budgetOf(100, a, b, c);
  expect([budget.isPinned(a), budget.isPinned(b)]).toEqual([true, false]);
  expect([gone, budget.bytes]).toEqual([[b], 80]);
  a.isEvictable = true;
  budget.settled(a);
  expect([budget.isPinned(a), budget.bytes]).toEqual([false, 80]);
  c.isEvictable = false;
  budget.settled(c);
  budget.settled(c);
  expect([budget.isPinned(c), budget.bytes]).toEqual([true, 80]);
  const d = held(30);
  budget.settled(d);
  expect([gone, budget.bytes]).toEqual([[b, a], 50]);
});

test('pinned ones alone may take more than there may be, and nothing goes for them but idle ones', () => {
  const [a, b, c] = [held(30), held(80, false), held(80, false)];
  const budget = budgetOf(100, a, b, c);
  expect([gone, budget.bytes, budget.takeEvictions()]).toEqual([[a], 160, 1]);
});

test('one that became busy before it was told is pinned instead of evicted', () => {
  const [a, b, c] = [held(50), held(40), held(30)];
  const budget = budgetOf(100, a, b);
  a.isEvictable = false;
  a.indexBytes = 55;
  budget.settled(c);
  expect([gone, budget.isPinned(a), budget.bytes]).toEqual([[b], true, 85]);
});

test('one that is gone counts no more, pinned or idle', () => {
  const [a, b] = [held(50, false), held(40)];
  const budget = budgetOf(100, a, b);
  a.isLoaded = false;
  b.isLoaded = false;
  budget.settled(a);
  expect([budget.bytes, budget.isPinned(a)]).toEqual([40, false]);
  budget.settled(b);
  expect([budget.bytes, budget.takeEvictions(), gone]).toEqual([0, 0, []]);
});

test('an index without bytes is one of the idle ones, too', () => {
  const [a, b] = [held(0), held(100)];
  const budget = budgetOf(100, a);
  expect(budget.bytes).toBe(1);
  budget.settled(b);
  expect([gone, budget.bytes]).toEqual([[a], 100]);
});

test.each([true, false])('growth counts from an eighth on (idle: %s)', (isIdle) => {
  const a = held(800, isIdle);
  const budget = budgetOf(10_000, a);
  const bytesAt = (bytes: number): number => {
    a.indexBytes = bytes;
    budget.reaccount(a);
    return budget.bytes;
  };
  expect([900, 901, 1013, 1014, 888, 887].map(bytesAt)).toEqual([800, 901, 901, 1014, 1014, 887]);
  expect([997, 998, 700].map(bytesAt)).toEqual([887, 998, 700]);
  a.isLoaded = false;
  expect(bytesAt(5000)).toBe(700);
  a.isLoaded = true;
  a.indexBytes = 10_001;
  budget.reaccount(a);
  expect([budget.bytes, gone]).toEqual([10_001, []]);
});

test('an idle one that grew less than that is not accounted again when it is settled', () => {
  const a = held(800);
  const budget = budgetOf(10_000, a);
  for (const [bytes, counted] of [
    [900, 800],
    [901, 901],
    [789, 901],
    [788, 788],
  ] as const) {
    a.indexBytes = bytes;
    budget.settled(a);
    expect([bytes, budget.bytes]).toEqual([bytes, counted]);
  }
});

test(`never more bytes than there may be while an idle one could go (SEED=${seed})`, () => {
  const step = fc.record({
    which: fc.nat(7),
    bytes: fc.integer({ min: 1, max: 60 }),
    isEvictable: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const shards = Array.from({ length: 8 }, () => held(0));
      for (const shard of shards) shard.isLoaded = false;
      const budget = budgetOf(100);
      for (const { which, bytes, isEvictable } of steps) {
        const shard = shards[which] as Held & ShardActor;
        Object.assign(shard, { indexBytes: bytes, isEvictable, isLoaded: true });
        budget.settled(shard);
        expect([budget.isPinned(shard), shard.isLoaded]).toEqual([!isEvictable, true]);
        const others = shards.filter((one) => one !== shard && one.isLoaded && one.isEvictable);
        expect(budget.bytes <= 100 || others.length === 0).toBe(true);
      }
    }),
    { numRuns: Math.ceil(200 * FUZZ_RUNS), seed },
  );
});
