import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anyCharacter } from '../../../test/support/any-text.ts';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { readSnapshotPage } from './snapshot-page.ts';

const SHARD = { projectId: 'p', tenantId: "t'\\" };
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const text = fc.string({ unit: anyCharacter, maxLength: 8 }).filter((each) => !each.includes('\0'));

test('pages hold every row of the shard once, in the order of the bytes of their keys', async () => {
  const key = fc.tuple(text, text, text, text, text, text);
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(key, { maxLength: 40, size: 'max', selector: (each) => each.join('\0') }),
      fc.integer({ min: 1, max: 12 }),
      async (keys, limit) => {
        await database.pool.query('truncate relation_tuple');
        for (const [i, each] of keys.entries()) {
          for (const tenant of [SHARD.tenantId, 'another']) {
            await database.pool.query(
              `insert into relation_tuple values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1)`,
              [SHARD.projectId, tenant, ...each, i % 2 === 0 ? i : null, null, `${i}`],
            );
          }
        }
        const found: string[][] = [];
        for (let next: readonly string[] | null = null, isFirst = true; isFirst || next !== null;) {
          const page = await readSnapshotPage(database.pool, SHARD, next, limit);
          isFirst = false;
          next = page.next;
          for (let row = 0; row < page.rows; row++) {
            const columns = Array.from({ length: 6 }, (_, i) => {
              const at = row * 18 + 2 * i;
              return Buffer.from(page.bytes.subarray(page.bounds[at], page.bounds[at + 1]));
            });
            found.push(columns.map((each) => each.toString()));
          }
        }
        const order = (each: readonly string[]): Buffer => Buffer.from(each.join('\0'));
        expect(found).toEqual(keys.toSorted((a, b) => Buffer.compare(order(a), order(b))));
      },
    ),
    { numRuns: 20 },
  );
}, 120_000);

test('a page of large rows ends early, and the next one goes on behind it', async () => {
  await database.pool.query('truncate relation_tuple');
  await database.pool.query(
    `insert into relation_tuple select $1, $2, 'doc', lpad(i::text, 3, '0'), 'viewer', '', 'u', '', null, 'c',
       repeat('x', 300000), 1 from generate_series(1, 10) i`,
    [SHARD.projectId, SHARD.tenantId],
  );
  const first = await readSnapshotPage(database.pool, SHARD, null, 500);
  expect(first.rows).toBe(4);
  const second = await readSnapshotPage(database.pool, SHARD, first.next, 500);
  expect(second.next?.[1]).toBe('008');
  const third = await readSnapshotPage(database.pool, SHARD, second.next, 500);
  expect([third.rows, third.next]).toEqual([2, null]);
});

test('a page is read by the primary key, however far it lies behind', async () => {
  await database.pool.query('truncate relation_tuple');
  await database.pool.query(
    `insert into relation_tuple select 'p', 't' || i % 3, 'doc', i::text, 'viewer', '', 'u', '', null, null, null, 1
     from generate_series(1, 30000) i`,
  );
  await database.pool.query('analyze relation_tuple');
  const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(
    `explain select namespace from relation_tuple where project_id = 'p' and tenant_id = 't1'
     and (namespace, object_id, relation, subject_namespace, subject_id, subject_relation) > ('doc', '5', '', '', '', '')
     order by namespace, object_id, relation, subject_namespace, subject_id, subject_relation limit 500`,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/Index (Only )?Scan using relation_tuple_pkey/);
  expect(plan).toMatch(/Index Cond: .*ROW\(namespace/);
  expect(plan).not.toMatch(/Sort/);
});
