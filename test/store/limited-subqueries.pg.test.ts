import { globSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { migrateNotify } from '../../src/notify/store/notify-database.ts';
import { type TestDatabase, createTestDatabase } from '../support/postgres.ts';

/*
 * An update or delete may read a subquery that it joins again for each row, by whichever plan statistics suggest. One that takes
 * some rows only, or locks them, finds others then. So it says that it is read once: `as materialized (` or `array(`.
 */
const READ_ONCE = /(?:\bas materialized|\barray)\s*$/i;
const TAKES_SOME = /\blimit\s+\S|\bfor\s+(?:no key\s+)?update\b/i;
const CHANGES =
  /(?<!\bfor\s+(?:no key\s+)?)(?<!\bdo\s+)\bupdate\s+(?:[a-z]+\.)?\w+|\bdelete\s+from\b/i;

/** The subqueries of a statement that take some rows and do not say that they are read once. */
function readAgain(statement: string): readonly string[] {
  if (!CHANGES.test(statement)) return [];
  const found: string[] = [];
  const open: { readonly at: number; own: string }[] = [];
  for (let at = 0; at < statement.length; at++) {
    const char = statement.charAt(at);
    const group = open.at(-1);
    if (char === '(') {
      open.push({ at, own: '' });
    } else if (char === ')' && group !== undefined) {
      const isOnce = open.some((one) => READ_ONCE.test(statement.slice(0, one.at)));
      if (!isOnce && TAKES_SOME.test(group.own)) found.push(statement.slice(group.at, at + 1));
      open.pop();
    } else if (group !== undefined) {
      group.own += char;
    }
  }
  return found;
}

describe('a subquery of a change that takes some rows', () => {
  it.each([
    ['update a set b = 1 from (select c from a order by c limit 4 for update skip locked) d', 1],
    ['delete from a where c in (select c from a limit $1)', 1],
    ['with d as (select c from a where (c) > (1) for update) delete from a using d', 1],
    ['with d as ((select 1 limit 2) union all (select 2)) update x.a set b = 1 from d', 1],
    [
      'with d as materialized ((select 1 limit 2) union all (select 2)) update a set b = 1 from d',
      0,
    ],
    ['delete from a where ctid = any (array(select ctid from a limit 3))', 0],
    ['select c from (select c from a limit 3) d for update', 0],
    ['insert into a select c from (select c from b limit 3) d on conflict do update set b = 1', 0],
  ])('is found: %s', (statement, count) => {
    expect(readAgain(statement)).toHaveLength(count);
  });

  it('is read once, in statements of the services', () => {
    const found = globSync('src/**/*.ts')
      .filter((path) => !path.endsWith('.test.ts'))
      .flatMap((path) =>
        [...readFileSync(path, 'utf8').matchAll(/`[^`]*`/g)].flatMap(([text]) =>
          readAgain(text).map((subquery) => [path, subquery]),
        ),
      );
    expect(found).toEqual([]);
  });

  describe('in functions of the schemas', () => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await createTestDatabase();
      await migrateNotify(database.target, () => undefined);
    });
    afterAll(async () => await database.drop());

    it('is read once', async () => {
      const { rows } = await database.pool.query<{ name: string; prosrc: string }>(
        `select p.proname as name, p.prosrc from pg_proc p
         where p.pronamespace in ('public'::regnamespace, 'notify'::regnamespace)`,
      );
      expect(rows.length).toBeGreaterThan(30);
      const found = rows.flatMap(({ name, prosrc }) =>
        prosrc.split(';').flatMap((text) => readAgain(text).map((subquery) => [name, subquery])),
      );
      expect(found).toEqual([]);
    });
  });
});
