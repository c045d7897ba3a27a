import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { indexOverPool } from '../../../test/support/read-index.ts';
import type { HeadRevisions } from './head-revisions.ts';
import type { ReadIndex } from './read-index.ts';
import { PAGE_ROWS, readSnapshot, streamSnapshot } from './snapshot-read.ts';

let database: TestDatabase;
let headRevisions: HeadRevisions;
let index: ReadIndex;
const shard = { projectId: 'p', tenantId: 't' };

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 8 });
  await database.pool.query(
    `insert into deployment (system_identifier, timeline, token_key, epoch)
     values ('test', 1, '\\x01', 1) on conflict do nothing`,
  );
  await database.pool.query(`insert into shard (project_id, tenant_id, seq) values ('p', 't', 41)`);
  ({ headRevisions, index } = indexOverPool(database.pool));
});
afterAll(async () => {
  await database.drop();
});

type Row = { readonly n: number };
function numbers(count: number, rowsMax?: number): AsyncGenerator<readonly Row[]> {
  const query = { text: 'select n from generate_series(1, $1::int) n order by n', values: [count] };
  const prepare = (): Promise<typeof query> => Promise.resolve(query);
  return streamSnapshot<Row>({ pool: database.pool, headRevisions }, shard, prepare, rowsMax);
}
async function read(pages: AsyncIterable<readonly Row[]>): Promise<number[]> {
  const sizes: number[] = [];
  let expected = 1;
  for await (const page of pages) {
    sizes.push(page.length);
    for (const { n } of page) expect(n).toBe(expected++);
  }
  return sizes;
}

test('lists come whole, in order, in pages of a bounded size', async () => {
  expect(await read(numbers(0))).toEqual([]);
  expect(await read(numbers(1))).toEqual([1]);
  expect(await read(numbers(PAGE_ROWS))).toEqual([PAGE_ROWS]);
  expect(await read(numbers(PAGE_ROWS + 1))).toEqual([PAGE_ROWS, 1]);
  expect(await read(numbers(2 * PAGE_ROWS))).toEqual([PAGE_ROWS, PAGE_ROWS]);
});

test('what was read raises the head that decisions must have reached', async () => {
  await index.load('p', 't');
  await database.pool.query(`update shard set seq = 42 where project_id = 'p'`);
  expect(headRevisions.peek('p', 't')?.minRevision).toBe(41);
  await read(numbers(1));
  expect(headRevisions.peek('p', 't')?.minRevision).toBe(42);
  await database.pool.query(`update shard set seq = 43 where project_id = 'p'`);
  await readSnapshot({ pool: database.pool, headRevisions }, shard, () => Promise.resolve());
  expect(headRevisions.peek('p', 't')?.minRevision).toBe(43);
});

test('a list beyond its limit is refused, and its connection given back', async () => {
  for (let i = 0; i < 20; i++) {
    await expect(read(numbers(1_000, 600))).rejects.toMatchObject({ reason: 'RESULT_TOO_LARGE' });
  }
  expect(database.pool.idleCount).toBe(database.pool.totalCount);
});

test('long lists take a quarter of the connections, the others wait their turn', async () => {
  const started: AsyncGenerator<readonly Row[]>[] = [];
  const all = Array.from({ length: 6 }, async () => {
    const list = numbers(1_000);
    await list.next();
    started.push(list);
  });
  await Promise.race(all);
  while (started.length < 2) await new Promise((done) => setTimeout(done, 5));
  // Nobody consumes: two lists hold their places, and everything else continues.
  for (let i = 0; i < 20; i++) expect(await read(numbers(10))).toEqual([10]);
  expect(started).toHaveLength(2);
  // The first page of each is read before it waits for its place.
  await expect.poll(() => database.pool.totalCount - database.pool.idleCount).toBe(2);
  for (let closed = 0; closed < 6; closed++) {
    while (started.length <= closed) await new Promise((done) => setTimeout(done, 5));
    await started[closed]?.return(undefined);
  }
  await Promise.all(all);
  expect(database.pool.idleCount).toBe(database.pool.totalCount);
  expect(await read(numbers(600))).toEqual([256, 256, 88]);
});

test('a failing statement gives the connection back and does not hang the next', async () => {
  for (let i = 0; i < 5; i++) {
    const broken = {
      text: 'select 1 / (300 - n) as n from generate_series(1, 600) n order by 1',
      values: [],
    };
    const pages = streamSnapshot<Row>({ pool: database.pool, headRevisions }, shard, () =>
      Promise.resolve(broken),
    );
    await expect(read(pages)).rejects.toThrow('division by zero');
  }
  expect(await read(numbers(600))).toEqual([256, 256, 88]);
});
