import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../test/support/postgres.ts';
import { type InstanceLock, acquireInstanceLock } from './instance-lock.ts';

let database: TestDatabase;
const locks: InstanceLock[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(locks.splice(0).map(async (lock) => await lock.release()));
});
afterAll(async () => await database.drop());

async function acquire(
  states: string[] = [],
  options: { isExclusive?: boolean; leaseMs?: number } = {},
): Promise<InstanceLock> {
  const lock = await acquireInstanceLock({
    target: database.target,
    region: '',
    isExclusive: options.isExclusive ?? false,
    leaseMs: options.leaseMs ?? 3_000,
    onChange: (state) => void states.push(state),
  });
  locks.push(lock);
  return lock;
}

async function cut(): Promise<void> {
  await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'gatehouse-instance' and datname = current_database()`,
  );
}

async function instances(): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string }>('select id from instance');
  return rows.map((row) => row.id);
}

async function leaseUntil(): Promise<string> {
  const { rows } = await database.pool.query<{ lease_until: string }>(
    'select lease_until::text from instance',
  );
  return rows[0]?.lease_until ?? '';
}

async function until(fact: () => boolean): Promise<void> {
  while (!fact()) await sleep(5);
}

describe('acquireInstanceLock', () => {
  it('lets one instance in, refuses the second with a clear message, and the next after it', async () => {
    const first = await acquire();
    expect(first.isAlone()).toBe(true);
    expect(await instances()).toEqual([first.instanceId]);
    await expect(acquire()).rejects.toMatchObject({
      reason: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(/another instance already runs .*server process \d+/),
    });
    await first.release();
    expect(first.isAlone()).toBe(false);
    expect(await instances()).toEqual([]);
    const next = await acquire();
    expect(await instances()).toEqual([next.instanceId]);
  });

  it('renews its lease', async () => {
    await acquire([], { leaseMs: 600 });
    const first = await leaseUntil();
    while ((await leaseUntil()) === first) await sleep(10);
  });

  it('notices that its connection went, and takes the lock again', async () => {
    const states: string[] = [];
    const lock = await acquire(states);
    for (let i = 1; i <= 3; i++) {
      await cut();
      await until(() => states.length === 2 * i);
    }
    expect(states).toEqual(['lost', 'held', 'lost', 'held', 'lost', 'held']);
    expect(lock.isAlone()).toBe(true);
    await expect(acquire()).rejects.toMatchObject({ reason: 'STORE_UNAVAILABLE' });
  });

  it('tells that the lock is ours again before it calls itself alone', async () => {
    const alone: [string, boolean][] = [];
    let isOver = false;
    const lock = await acquireInstanceLock({
      target: database.target,
      region: '',
      isExclusive: false,
      leaseMs: 300,
      onChange: (state) => {
        alone.push([state, lock.isAlone()]);
        isOver = state === 'held';
      },
    });
    locks.push(lock);
    // A rival's row keeps the lock from being regained before the lease has lapsed.
    await database.pool.query(
      `insert into instance (id, lease_until) values (gen_random_uuid(), clock_timestamp() + interval '600 ms')`,
    );
    await cut();
    await until(() => isOver);
    expect(alone.at(-1)).toEqual(['held', false]);
    expect(lock.isAlone()).toBe(true);
  });

  it('says taken when another instance was faster, which waited for the lease first', async () => {
    const states: string[] = [];
    const lock = await acquire(states, { leaseMs: 6_000 });
    const rival = new Client(database.target);
    await rival.connect();
    const waiting = rival.query('select pg_advisory_lock($1, $2)', [0x67617465, 0x696e7374]);
    await cut();
    await waiting;
    await until(() => states.includes('taken'));
    expect(states).toEqual(['lost', 'taken']);
    expect(lock.isAlone()).toBe(false);
    await rival.end();
  });

  it('waits for the lease of an instance that vanished, unless the database is ours alone', async () => {
    await database.pool.query(
      `insert into instance (id, lease_until) values (gen_random_uuid(), clock_timestamp() + interval '700 ms')`,
    );
    const { rows } = await database.pool.query<{ until: string }>(
      'select max(lease_until)::text as until from instance',
    );
    const lock = await acquire();
    const after = await database.pool.query(
      'select clock_timestamp() >= $1::timestamptz as ended',
      [rows[0]?.until],
    );
    expect(after.rows).toEqual([{ ended: true }]);
    await lock.release();
    await database.pool.query(
      `insert into instance (id, lease_until) values (gen_random_uuid(), clock_timestamp() + interval '1 hour')`,
    );
    const exclusive = await acquire([], { isExclusive: true });
    expect(exclusive.isAlone()).toBe(true);
    expect(await instances()).toEqual([exclusive.instanceId]);
  });
});
