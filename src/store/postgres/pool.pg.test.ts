import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { classifyPgError, isRetryable, isUnavailable, violatedConstraint } from './pg-errors.ts';
import { createPool } from './pool.ts';
import { inRetriedTransaction, inTransaction } from './transaction.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query(
    'create table item (id int primary key, n int not null check (n >= 0))',
  );
});
afterAll(async () => await database.drop());

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return await work.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('createPool', () => {
  it('bounds how long a session may run, wait for a lock, and sit in a transaction', async () => {
    const pool = createPool(database.target, {
      max: 2,
      applicationName: 'bounded',
      statementTimeoutMs: 100,
      lockTimeoutMs: 50,
      // Longer than another session may take to come to the lock.
      idleInTransactionTimeoutMs: 2_000,
    });
    try {
      expect(classifyPgError(await failureOf(pool.query('select pg_sleep(5)')))).toBe('timeout');
      const holder = await pool.connect();
      holder.on('error', () => undefined);
      const ended = new Promise((resolve) => holder.once('end', resolve));
      await holder.query('begin; lock table item');
      const waiting = await failureOf(pool.query('lock table item; select 1'));
      expect(isRetryable(waiting)).toBe(true);
      await ended;
      const late = await failureOf(holder.query('select 1'));
      expect(isUnavailable(late)).toBe(true);
      holder.release(true);
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    } finally {
      await pool.end();
    }
  });

  it('survives a connection that is lost between two statements of who has it', async () => {
    const pool = createPool(database.target, { max: 1, applicationName: 'lost' });
    try {
      const client = await pool.connect();
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      const ended = new Promise((resolve) => client.once('end', resolve));
      await database.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
      await ended;
      expect(isUnavailable(await failureOf(client.query('select 1')))).toBe(true);
      client.release(true);
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    } finally {
      await pool.end();
    }
  });

  it('classifies what happens without a server', async () => {
    const nowhere = { host: '/nonexistent', port: 1, user: 'u', password: 'p', database: 'd' };
    const pool = createPool(nowhere, { max: 1, applicationName: 'nowhere' });
    expect(isUnavailable(await failureOf(pool.query('select 1')))).toBe(true);
    await pool.end();
    const cut = await failureOf(
      database.pool.query('select pg_terminate_backend(pg_backend_pid())'),
    );
    expect(isUnavailable(cut)).toBe(true);
  });
});

describe('inTransaction', () => {
  it('commits the whole or nothing, and gives its connection back', async () => {
    await inTransaction(database.pool, async (client) => {
      await client.query('insert into item values (1, 1)');
    });
    const failure = await failureOf(
      inTransaction(database.pool, async (client) => {
        await client.query('insert into item values (2, 2)');
        await client.query('insert into item values (1, 1)');
      }),
    );
    expect(violatedConstraint(failure)).toBe('item_pkey');
    const check = await failureOf(database.pool.query('insert into item values (3, -1)'));
    expect(classifyPgError(check)).toBe('invalid');
    expect((await database.pool.query('select id from item order by id')).rows).toEqual([
      { id: 1 },
    ]);
    expect(database.pool.idleCount).toBe(database.pool.totalCount);
  });

  it('throws away a connection that was cut', async () => {
    const failure = await failureOf(
      inTransaction(database.pool, async (client) => {
        await client.query('select pg_terminate_backend(pg_backend_pid())');
      }),
    );
    expect(isUnavailable(failure)).toBe(true);
    expect((await database.pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('runs again after a serialization failure, until it succeeds', async () => {
    await database.pool.query('update item set n = 0 where id = 1');
    let runs = 0;
    await Promise.all(
      Array.from({ length: 3 }, async () => {
        await inRetriedTransaction(
          database.pool,
          async (client) => {
            runs++;
            const { rows } = await client.query<{ n: number }>('select n from item where id = 1');
            await client.query('update item set n = $1 where id = 1', [(rows[0]?.n ?? 0) + 1]);
          },
          'repeatable read',
        );
      }),
    );
    expect((await database.pool.query('select n from item')).rows).toEqual([{ n: 3 }]);
    expect(runs).toBeGreaterThanOrEqual(3);
  });
});
