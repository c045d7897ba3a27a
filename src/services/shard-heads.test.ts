import { expect, test } from 'vitest';
import { type HeadRow, ShardHeads } from './shard-heads.ts';

/** Heads whose queries are answered by hand. */
function byHand(entriesMax = 100): {
  heads: ShardHeads;
  queries: { tenants: string[]; answer: (seq: number) => Promise<void>; fail: () => void }[];
} {
  const queries: ReturnType<typeof byHand>['queries'] = [];
  const heads = new ShardHeads({
    entriesMax,
    readHeads: (shards) => {
      const { promise, resolve, reject } = Promise.withResolvers<HeadRow[]>();
      queries.push({
        tenants: shards.map(({ tenantId }) => tenantId),
        answer: async (seq) => {
          resolve(shards.map((shard) => ({ ...shard, epoch: 1, seq })));
          await new Promise(setImmediate);
        },
        fail: () => reject(new Error('away')),
      });
      return promise;
    },
  });
  return { heads, queries };
}
const tick = (): Promise<void> => new Promise((done) => setImmediate(() => setImmediate(done)));

test('loads of one tick share a query; a query already sent serves nobody who comes later', async () => {
  const { heads, queries } = byHand();
  const first = heads.load('p', 'a');
  expect(heads.load('p', 'a')).toBe(first);
  void heads.load('p', 'b');
  await tick();
  expect(queries.map(({ tenants }) => tenants)).toEqual([['a', 'b']]);
  const later = heads.load('p', 'a');
  await tick();
  expect(queries).toHaveLength(2);
  await queries[0]?.answer(4);
  expect(await first).toEqual({ epoch: 1, minSeq: 4 });
  await queries[1]?.answer(5);
  expect(await later).toEqual({ epoch: 1, minSeq: 5 });
});

test('what is raised while a query is under way survives its older answer', async () => {
  const { heads, queries } = byHand();
  const load = heads.load('p', 'a');
  await tick();
  heads.raise('p', 'a', 1, 9);
  await queries[0]?.answer(8);
  expect(await load).toEqual({ epoch: 1, minSeq: 9 });
  heads.raise('p', 'a', 1, 7);
  expect(heads.peek('p', 'a')?.minSeq).toBe(9);
  heads.raise('p', 'a', 2, 3);
  expect(heads.peek('p', 'a')).toEqual({ epoch: 2, minSeq: 3 });
  heads.raise('p', 'a', 1, 100);
  expect(heads.peek('p', 'a')).toEqual({ epoch: 2, minSeq: 3 });
});

test('an entry that is absent or evicted is asked for, also after a raise', async () => {
  const { heads, queries } = byHand(4);
  heads.raise('p', 'a', 1, 9);
  expect(heads.peek('p', 'a')).toBeUndefined();
  for (let i = 0; i < 10; i++) {
    void heads.load('p', `t${i}`);
    await tick();
    await queries[i]?.answer(i);
  }
  expect(heads.peek('p', 't9')?.minSeq).toBe(9);
  expect(heads.peek('p', 't0')).toBeUndefined();
});

test('while an outcome is unknown every read asks', async () => {
  const { heads, queries } = byHand();
  void heads.load('p', 'a');
  await tick();
  await queries[0]?.answer(1);
  heads.markUnknown('p', 'a');
  heads.markUnknown('p', 'a');
  heads.clearUnknown('p', 'a');
  expect(heads.peek('p', 'a')).toBeUndefined();
  heads.clearUnknown('p', 'a');
  expect(heads.peek('p', 'a')?.minSeq).toBe(1);
});

test('a failed query fails its readers and is not remembered', async () => {
  const { heads, queries } = byHand();
  const load = heads.load('p', 'a');
  await tick();
  queries[0]?.fail();
  await expect(load).rejects.toThrow('away');
  expect(heads.peek('p', 'a')).toBeUndefined();
});

test('what a query finds that was under way when all was forgotten is not remembered', async () => {
  const { heads, queries } = byHand();
  const load = heads.load('p', 'a');
  await tick();
  heads.forgetAll();
  await queries[0]?.answer(4);
  expect(await load).toEqual({ epoch: 1, minSeq: 4 });
  expect(heads.peek('p', 'a')).toBeUndefined();
});
