import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { assertConnectionsFit, type ConnectionNeeds } from './connection-budget.ts';

let database: TestDatabase;
/** Connections that the server grants, as the check itself finds. */
const GRANTED = 60;

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query(
    `do $$ begin execute format('alter database %I connection limit ${GRANTED}', current_database()); end $$`,
  );
});
afterAll(() => database.drop());

async function register(live: number, ended = 0): Promise<void> {
  await database.pool.query('delete from instance');
  await database.pool.query(
    `insert into instance (id, lease_until)
     select gen_random_uuid(), clock_timestamp() + (case when n <= $1 then 1 else -1 end) * interval '1 hour'
     from generate_series(1, $2::int) n`,
    [live, live + ended],
  );
}

async function outcomeOf(needs: Partial<ConnectionNeeds>): Promise<string> {
  const told: string[] = [];
  const all = { each: 20, instances: undefined, isExclusive: false, ...needs };
  try {
    await assertConnectionsFit(database.pool, all, (_, event) => void told.push(event));
    return told.join();
  } catch (error) {
    return (error as Error).message;
  }
}

test('those that run must fit together, those whose lease has ended do not count', async () => {
  await register(2, 5);
  expect(await outcomeOf({})).toBe('');
  await register(3);
  expect(await outcomeOf({})).toBe('postgres_connections_short');
  await register(4);
  expect(await outcomeOf({})).toMatch(
    /^the 4 instances on this database may open 80 connections to Postgres \(20 each\), which grants 60;/,
  );
});

test('those that are meant to run must fit with one more, however few run yet', async () => {
  await register(1);
  expect(await outcomeOf({ instances: 2 })).toBe('');
  expect(await outcomeOf({ instances: 3 })).toMatch(/^3 instances and one more during a rollout/);
  // In a rollout the one more is registered itself.
  await register(3);
  expect(await outcomeOf({ instances: 2 })).toBe('');
  await register(4);
  expect(await outcomeOf({ instances: 2 })).toMatch(/^the 4 instances/);
});

test('one that nobody stands beside must fit alone', async () => {
  await register(5);
  expect(await outcomeOf({ each: 50, isExclusive: true, instances: 3 })).toBe('');
  expect(await outcomeOf({ each: 61, isExclusive: true })).toMatch(/^this instance may open 61/);
});
