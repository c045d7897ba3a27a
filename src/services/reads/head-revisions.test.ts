import { expect, test } from 'vitest';
import { indexOver, rowAt } from '../../../test/support/read-index.ts';
import type { IndexRow } from '../../store/sql/reads/read-index.ts';

/** Head revisions whose queries are answered by hand. */
function byHand(entriesMax = 100) {
  const queries: {
    readonly tenants: string[];
    readonly answer: (revision: number) => Promise<void>;
    readonly fail: () => void;
  }[] = [];
  const { headRevisions, index } = indexOver(
    [
      (asks) => {
        const { promise, resolve, reject } = Promise.withResolvers<readonly IndexRow[]>();
        queries.push({
          tenants: asks.map(({ tenantId }) => tenantId),
          answer: async (revision) => {
            resolve(asks.map((_, at) => rowAt(at, revision)));
            await tick();
          },
          fail: () => reject(new Error('away')),
        });
        return promise;
      },
    ],
    { entriesMax },
  );
  const load = async (projectId: string, tenantId: string) =>
    (await index.load(projectId, tenantId)).headRevision;
  return { headRevisions, index, load, queries };
}
const tick = (): Promise<void> => new Promise((done) => setImmediate(() => setImmediate(done)));

test('looks of one tick share a query; one already sent serves nobody who comes later', async () => {
  const { load, queries } = byHand();
  const first = [load('p', 'a'), load('p', 'a')];
  void load('p', 'b');
  await tick();
  expect(queries.map(({ tenants }) => tenants)).toEqual([['a', 'b']]);
  const later = load('p', 'a');
  await tick();
  await queries[0]?.answer(4);
  for (const look of first) expect(await look).toMatchObject({ epoch: 1, minRevision: 4 });
  expect(queries.map(({ tenants }) => tenants)).toEqual([['a', 'b'], ['a']]);
  await queries[1]?.answer(5);
  expect(await later).toMatchObject({ epoch: 1, minRevision: 5 });
});

test('what is raised while a query is under way survives its older answer (I1)', async () => {
  const { headRevisions, load: look, queries } = byHand();
  const load = look('p', 'a');
  await tick();
  headRevisions.raise('p', 'a', 1, 9);
  await queries[0]?.answer(8);
  expect(await load).toMatchObject({ epoch: 1, minRevision: 9 });
  headRevisions.raise('p', 'a', 1, 7);
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(9);
  headRevisions.raise('p', 'a', 2, 3);
  expect(headRevisions.peek('p', 'a')).toMatchObject({ epoch: 2, minRevision: 3 });
  headRevisions.raise('p', 'a', 1, 100);
  expect(headRevisions.peek('p', 'a')).toMatchObject({ epoch: 2, minRevision: 3 });
});

test('an entry that is absent or evicted is asked for, also after a raise (I2)', async () => {
  const { headRevisions, load, queries } = byHand(4);
  headRevisions.raise('p', 'a', 1, 9);
  expect(headRevisions.peek('p', 'a')).toBeUndefined();
  for (let i = 0; i < 10; i++) {
    void load('p', `t${i}`);
    await tick();
    await queries[i]?.answer(i);
  }
  expect(headRevisions.peek('p', 't9')?.minRevision).toBe(9);
  expect(headRevisions.peek('p', 't0')).toBeUndefined();
});

test('while an outcome is unknown every read asks (I3)', async () => {
  const { headRevisions, load: look, queries } = byHand();
  void look('p', 'a');
  await tick();
  await queries[0]?.answer(1);
  headRevisions.markUnknown('p', 'a');
  headRevisions.markUnknown('p', 'a');
  headRevisions.clearUnknown('p', 'a');
  expect(headRevisions.peek('p', 'a')).toBeUndefined();
  headRevisions.clearUnknown('p', 'a');
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(1);
});

test('what a query finds that was under way when all was forgotten is not remembered', async () => {
  const { headRevisions, load: look, queries } = byHand();
  const load = look('p', 'a');
  await tick();
  headRevisions.forgetAll();
  await queries[0]?.answer(4);
  expect(await load).toMatchObject({ epoch: 1, minRevision: 4 });
  expect(headRevisions.peek('p', 'a')).toBeUndefined();
});

/** Head revisions of which all of `tenants` were loaded, one after the other, at revision 1. */
async function loaded(entriesMax: number, tenants: readonly string[]) {
  const made = byHand(entriesMax);
  const load = async (tenant: string, revision = 1): Promise<unknown> => {
    const answer = made.load('p', tenant);
    await tick();
    await made.queries.at(-1)?.answer(revision);
    return await answer;
  };
  for (const tenant of tenants) await load(tenant);
  const known = (): string[] =>
    tenants.filter((tenant) => made.headRevisions.peek('p', tenant) !== undefined);
  return { ...made, load, look: made.load, known };
}

test('the highest of several raised while a query is under way counts', async () => {
  for (const revisions of [
    [9, 11],
    [11, 9],
  ]) {
    const { headRevisions, load: look, queries } = byHand();
    const load = look('p', 'a');
    await tick();
    for (const revision of revisions) headRevisions.raise('p', 'a', 1, revision);
    headRevisions.raise('p', 'other', 1, 100);
    await queries[0]?.answer(8);
    expect(await load).toMatchObject({ epoch: 1, minRevision: 11 });
    expect(headRevisions.peek('p', 'a')?.minRevision).toBe(11);
  }
});

test('an answer below what became known meanwhile lowers nothing, for the caller neither', async () => {
  const { headRevisions, load, look, queries } = await loaded(100, ['a']);
  const below = look('p', 'a');
  await tick();
  headRevisions.raise('p', 'a', 1, 9);
  await queries.at(-1)?.answer(8);
  expect(await below).toMatchObject({ epoch: 1, minRevision: 9 });
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(9);
  expect(await load('a', 10)).toMatchObject({ epoch: 1, minRevision: 10 });
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(10);
});

test('an answer below what was known when it was asked for is of another history, and counts (I4)', async () => {
  const { headRevisions, load } = await loaded(100, ['a']);
  headRevisions.raise('p', 'a', 1, 9);
  expect(await load('a', 8)).toMatchObject({ epoch: 1, minRevision: 8 });
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(8);
});

test('half of the entries are kept at least, all of them at most', async () => {
  const names = ['t0', 't1', 't2', 't3', 't4', 't5', 't6', 't7', 't8', 't9'];
  const { headRevisions } = await loaded(8, names.slice(0, 4));
  for (const name of names.slice(0, 4)) expect(headRevisions.peek('p', name)).toBeDefined();
  const { known } = await loaded(4, names);
  expect(known()).toEqual(expect.arrayContaining(['t8', 't9']));
  expect(known().length).toBeLessThanOrEqual(4);
});

test('what is used stays, what is not goes', async () => {
  const { headRevisions, load } = await loaded(4, ['a', 'b', 'c']);
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(1); // from the old generation into the young
  await load('d');
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(1);
  expect(headRevisions.peek('p', 'b')).toBeUndefined();
  expect(headRevisions.peek('p', 'd')?.minRevision).toBe(1);
});

test('looking for what is not known displaces nothing, nor does loading again', async () => {
  const { headRevisions, load } = await loaded(8, ['a', 'b', 'c']);
  for (let i = 0; i < 20; i++) {
    expect(headRevisions.peek('p', 'nobody')).toBeUndefined();
    await load('c', i);
  }
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(1);
  expect(headRevisions.peek('p', 'c')?.minRevision).toBe(19);
});

test('the smallest of all memories still remembers', async () => {
  const { headRevisions } = await loaded(1, ['a']);
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(1);
});

test('an unknown outcome of one shard concerns no other, nor does its end', async () => {
  const { headRevisions } = await loaded(100, ['a', 'b', 'c']);
  headRevisions.markUnknown('p', 'a');
  headRevisions.markUnknown('p', 'b');
  expect(headRevisions.peek('p', 'c')?.minRevision).toBe(1);
  headRevisions.clearUnknown('p', 'a');
  expect(headRevisions.peek('p', 'a')?.minRevision).toBe(1);
  expect(headRevisions.peek('p', 'b')).toBeUndefined();
  headRevisions.clearUnknown('p', 'c');
  headRevisions.clearUnknown('nothing', 'c');
  expect(headRevisions.peek('p', 'b')).toBeUndefined();
  headRevisions.clearUnknown('p', 'b');
  expect(headRevisions.peek('p', 'b')?.minRevision).toBe(1);
});

test.each([
  [1000, [1000]],
  [1001, [1000, 1]],
])('%i shards are asked for in queries of %j', async (count, sizes) => {
  const { load, queries } = byHand(10_000);
  const loads = Array.from({ length: count }, (_, i) => load('p', `t${i}`));
  await tick();
  for (let i = 0; i < sizes.length; i++) await queries[i]?.answer(i + 1);
  expect(queries.map(({ tenants }) => tenants.length)).toEqual(sizes);
  expect(await loads[count - 1]).toMatchObject({ epoch: 1, minRevision: sizes.length });
});
