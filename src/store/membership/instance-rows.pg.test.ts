import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { isFenced, isRetryable } from '../postgres/pg-errors.ts';
import {
  acknowledgeShared,
  becomeAlone,
  leaveInstances,
  registerInstance,
  renewInstance,
} from './instance-rows.ts';

let database: TestDatabase;
let one: PoolClient;
let two: PoolClient;
beforeAll(async () => {
  database = await createTestDatabase();
});
beforeEach(async () => {
  one = await database.pool.connect();
  two = await database.pool.connect();
});
afterEach(async () => {
  one.release(true);
  two.release(true);
  await database.pool.query('delete from instance');
});
afterAll(async () => await database.drop());

const LEASE_MS = 60_000;

async function register(client: PoolClient, leaseMs = LEASE_MS, isExclusive = false) {
  const id = randomUUID();
  const registration = await registerInstance(client, {
    id,
    region: 'eu',
    holder: 'host 1',
    leaseMs,
    former: [],
    isExclusive,
  });
  return { id, ...registration };
}

async function lockShard(client: PoolClient, id: string | null): Promise<void> {
  await client.query(`select gatehouse_lock_shards($1::uuid, '{p}', '{t}')`, [id]);
}

async function beginWrite(client: PoolClient, id: string | null): Promise<void> {
  await client.query('begin');
  await lockShard(client, id);
}

async function until(fact: () => Promise<boolean>): Promise<void> {
  while (!(await fact())) await sleep(5);
}

describe('rows of instances', () => {
  it('lets the first write at once, and the next only when the first left alone mode', async () => {
    const first = await register(one);
    expect(first).toMatchObject({ isShared: true, mayWrite: true, others: 0, waitMs: null });
    const term = await becomeAlone(one, first.id, LEASE_MS);
    expect(term).toBe(1);
    const second = await register(two);
    expect(second).toMatchObject({ isShared: true, mayWrite: false, others: 1 });
    expect(second.waitMs).toBeGreaterThan(LEASE_MS / 2);
    await expect(beginWrite(two, second.id)).rejects.toSatisfy(isFenced);
    await two.query('rollback');
    expect(await renewInstance(two, second.id, LEASE_MS)).toMatchObject({ mayWrite: false });
    // Of a time before the term: says nothing about this one.
    await acknowledgeShared(one, first.id, 0);
    expect(await renewInstance(two, second.id, LEASE_MS)).toMatchObject({ mayWrite: false });
    await acknowledgeShared(one, first.id, 1);
    expect(await renewInstance(two, second.id, LEASE_MS)).toMatchObject({ mayWrite: true });
    expect(await becomeAlone(one, first.id, LEASE_MS)).toBeUndefined();
    await leaveInstances(two, second.id);
    expect(await becomeAlone(one, first.id, LEASE_MS)).toBe(2);
  });

  it('removes rows whose lease ended, which then write nothing and cannot be renewed', async () => {
    const first = await register(one, 1);
    await becomeAlone(one, first.id, 1);
    await sleep(5);
    const second = await register(two);
    expect(second).toMatchObject({ mayWrite: true, others: 0, fenced: 1 });
    expect(await renewInstance(one, first.id, LEASE_MS)).toBeUndefined();
    await expect(beginWrite(one, first.id)).rejects.toSatisfy(isFenced);
  });

  it('looks at the row when the locks are held: one that went meanwhile writes nothing', async () => {
    const first = await register(one);
    const second = await register(two);
    await beginWrite(one, first.id);
    const waiting = beginWrite(two, second.id);
    waiting.catch(() => undefined);
    await until(async () => {
      const { rows } = await database.pool.query(
        `select from pg_locks where not granted and locktype in ('transactionid', 'tuple')
         and pid <> pg_backend_pid()`,
      );
      return rows.length > 0;
    });
    await database.pool.query('delete from instance where id = $1', [second.id]);
    await one.query('commit');
    await expect(waiting).rejects.toSatisfy(isFenced);
  });

  it('does not become alone before what was let in has ended, nor beside a row being made', async () => {
    const first = await register(one);
    const second = await register(two);
    await beginWrite(two, second.id);
    await database.pool.query('select gatehouse_leave($1)', [second.id]);
    await expect(becomeAlone(one, first.id, LEASE_MS)).rejects.toSatisfy(isRetryable);
    await two.query('commit');
    await two.query('begin');
    const third = await register(two);
    await expect(becomeAlone(one, first.id, LEASE_MS)).rejects.toSatisfy(isRetryable);
    await two.query('commit');
    expect(await becomeAlone(one, first.id, LEASE_MS)).toBeUndefined();
    await leaveInstances(two, third.id);
    expect(await becomeAlone(one, first.id, LEASE_MS)).toBe(1);
  });

  it('refuses writes without a registration while anybody is registered, and any other snapshot', async () => {
    await beginWrite(one, null);
    await one.query('commit');
    const { id } = await register(two);
    await expect(beginWrite(one, null)).rejects.toSatisfy(isFenced);
    await one.query('rollback');
    await one.query('begin isolation level repeatable read');
    await expect(lockShard(one, id)).rejects.toThrow('writes need read committed');
  });

  it('gives an operator an id to write under, once nobody is alone', async () => {
    const first = await register(one);
    await becomeAlone(one, first.id, LEASE_MS);
    const joining = two.query<{ r_instance: string }>('call gatehouse_join(null)');
    await until(async () => ((await renewInstance(one, first.id, LEASE_MS))?.others ?? 0) === 1);
    await acknowledgeShared(one, first.id, 1);
    const id = (await joining).rows[0]?.r_instance ?? '';
    await beginWrite(two, id);
    await two.query('commit');
    await two.query('select gatehouse_leave($1)', [id]);
    await expect(beginWrite(two, id)).rejects.toSatisfy(isFenced);
  });

  it('ends every registration with a new epoch, and lets nobody write before old leases ended', async () => {
    const first = await register(one);
    await database.pool.query(
      `insert into deployment (system_identifier, timeline, token_key, epoch)
       values ('test', 1, '\\x01', 1) on conflict (singleton) do update set opened_at = null, epoch = 1`,
    );
    await database.pool.query('update deployment set epoch = epoch + 1');
    expect(await renewInstance(one, first.id, LEASE_MS)).toBeUndefined();
    const again = await register(one, 500);
    expect(again.mayWrite).toBe(false);
    expect(again.waitMs).toBeGreaterThan(100);
    await until(async () => (await renewInstance(one, again.id, 500))?.mayWrite === true);
    const { rows } = await database.pool.query(
      `select opened_at + interval '550 ms' <= clock_timestamp() as waited from deployment`,
    );
    expect(rows).toEqual([{ waited: true }]);
    await database.pool.query('update deployment set epoch = epoch + 1');
    const only = await register(one, LEASE_MS, true);
    expect(only.mayWrite).toBe(true);
  });
});
