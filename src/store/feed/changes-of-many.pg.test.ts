import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { writeChange } from '../../../test/support/write-change.ts';
import { readChangesOfMany } from './changes-of-many.ts';
import { readChanges } from './changes.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const shard = (i: number) => ({ projectId: 'p', tenantId: `t${i}` });

test('each of many has the page that it has alone', async () => {
  // Shard i has i changes; the last one was never written.
  for (let i = 0; i < 6; i++)
    for (let n = 0; n < i; n++) await writeChange(database.pool, shard(i));
  await database.pool.query(`update shard set retained_from = 3 where tenant_id = 't5'`);
  await database.pool.query(`delete from tuple_change where tenant_id = 't5' and seq < 3`);
  const asks = [0, 1, 2, 3, 4, 5, 99].flatMap((i) =>
    [0, 1, 3, 5].map((afterRevision) => ({ shard: shard(i), afterRevision })),
  );
  const pages = await readChangesOfMany(database.pool, asks);
  for (const [index, { shard: asked, afterRevision }] of asks.entries()) {
    expect(pages[index]).toEqual(await readChanges(database.pool, asked, afterRevision));
  }
  expect(await readChangesOfMany(database.pool, [])).toEqual([]);
});

test('one that is far behind has a whole beginning, one that is too large has nothing', async () => {
  const [far, large, near] = [shard(100), shard(101), shard(102)];
  for (let n = 0; n < 100; n++) await writeChange(database.pool, far);
  for (let n = 0; n < 3; n++) await writeChange(database.pool, large);
  await writeChange(database.pool, near);
  await database.pool.query(
    `update tuple_change set changes = '["' || repeat('x', 3000000) || '"]' where tenant_id = 't101'`,
  );
  const pages = await readChangesOfMany(database.pool, [
    { shard: far, afterRevision: 10 },
    { shard: large, afterRevision: 0 },
    { shard: near, afterRevision: 0 },
    { shard: large, afterRevision: 1 },
  ]);
  const [ofFar, ofLarge, ofNear, ofLargeAgain] = pages;
  const revisions = ofFar?.changes.map(({ revision }) => revision) ?? [];
  expect(revisions).toEqual(Array.from(revisions, (_, i) => 11 + i));
  expect(ofFar?.headRevision.revision).toBe(100);
  expect(ofLarge?.changes).toHaveLength(1);
  expect(ofNear?.changes).toHaveLength(1);
  // The first row of a shard lies as near as those of the others; there was room for one of the two.
  expect(ofLargeAgain).toBeUndefined();
});
