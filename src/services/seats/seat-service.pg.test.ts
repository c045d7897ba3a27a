import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import type { WriteMeta } from '../ports.ts';
import type { SeatAssignment, SeatUsage } from './seat-service.ts';

let database: TestDatabase;
let services: TestServices;
let sku: string;
let skus = 0;

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 20 });
  services = await createTestServices(database);
});
afterAll(async () => {
  await services.close();
  await database.drop();
});
beforeEach(() => {
  sku = `plan-${++skus}`;
  services.audited.length = 0;
});

const metaOf = (rpc: string): WriteMeta => ({
  rpc,
  actingUserId: null,
  requestId: 'r1',
  deadlineMs: Infinity,
});
const scope = { projectId: '', tenantId: 't' };
const refused = (reason: string): object => ({ reason });
const setLimit = (limit?: number): Promise<number | undefined> =>
  services.seats.setLimit({ ...scope, sku, limit }, metaOf('SetSeatLimit'));
const assign = (userId: string, by = services): Promise<boolean> =>
  by.seats.assign({ ...scope, sku, userId }, metaOf('AssignSeat'));
const revoke = (userId: string): Promise<void> =>
  services.seats.revoke({ ...scope, sku, userId }, metaOf('RevokeSeat'));
const usage = (): Promise<SeatUsage> => services.seats.usage({ ...scope, sku });
async function seats(): Promise<readonly SeatAssignment[]> {
  const found: SeatAssignment[] = [];
  for await (const page of services.seats.list({ ...scope, sku })) found.push(...page);
  return found;
}
async function holders(): Promise<readonly string[]> {
  const { rows } = await database.pool.query<{ subject_id: string }>(
    `select subject_id from relation_tuple where namespace = 'seat' and object_id = $1
     and relation = 'holder' and subject_namespace = '' order by subject_id`,
    [sku],
  );
  return rows.map((row) => row.subject_id);
}

describe('limits', () => {
  test('none is unlimited, N admits while fewer are used, 0 admits nobody', async () => {
    expect(await usage()).toEqual({ sku, used: 0, limit: undefined });
    expect(await assign('a')).toBe(false);
    expect(await usage()).toEqual({ sku, used: 1, limit: undefined });
    expect(await setLimit(2)).toBe(2);
    expect(await assign('b')).toBe(false);
    await expect(assign('c')).rejects.toMatchObject({
      reason: 'SEATS_EXHAUSTED',
      metadata: { sku },
    });
    expect(await usage()).toEqual({ sku, used: 2, limit: 2 });
    expect(await holders()).toEqual(['a', 'b']);
    expect(await setLimit()).toBeUndefined();
    expect(await assign('c')).toBe(false);
    sku = `${sku}-zero`;
    await setLimit(0);
    await expect(assign('a')).rejects.toMatchObject(refused('SEATS_EXHAUSTED'));
    expect(await usage()).toEqual({ sku, used: 0, limit: 0 });
    expect(await holders()).toEqual([]);
  });

  test('a lowered limit takes no seat away, and denies until enough are revoked (S4)', async () => {
    for (const id of ['a', 'b', 'c']) await assign(id);
    await setLimit(1);
    expect(await usage()).toEqual({ sku, used: 3, limit: 1 });
    expect(await holders()).toEqual(['a', 'b', 'c']);
    for (const id of ['a', 'b']) {
      await expect(assign('d')).rejects.toMatchObject(refused('SEATS_EXHAUSTED'));
      await revoke(id);
    }
    await expect(assign('d')).rejects.toMatchObject(refused('SEATS_EXHAUSTED'));
    // Who has a seat keeps it, even beyond the limit.
    expect(await assign('c')).toBe(true);
    await revoke('c');
    expect(await assign('d')).toBe(false);
  });

  test('each tenant has its own', async () => {
    await setLimit(1);
    await assign('a');
    const elsewhere = { projectId: '', tenantId: 'elsewhere', sku };
    expect(await services.seats.usage(elsewhere)).toEqual({ sku, used: 0, limit: undefined });
    const meta = metaOf('AssignSeat');
    expect(await services.seats.assign({ ...elsewhere, userId: 'a' }, meta)).toBe(false);
    expect(await usage()).toMatchObject({ used: 1 });
  });
});

describe('assigning', () => {
  test('assigning again consumes none, keeps the time and asserts the tuple (S2, S3)', async () => {
    await setLimit(1);
    await assign('again');
    const before = await seats();
    expect(await assign('again')).toBe(true);
    expect(await seats()).toEqual(before);
    expect(await usage()).toMatchObject({ used: 1 });
    const meta = metaOf('DeprovisionUser');
    await services.tuples.deprovisionUser({ projectId: '', userId: 'again', meta });
    expect(await holders()).toEqual([]);
    expect(await usage()).toMatchObject({ used: 1 });
    expect(await assign('again')).toBe(true);
    expect(await holders()).toEqual(['again']);
    expect(services.audited.map(({ rpc }) => rpc)).toEqual([
      'AssignSeat',
      'AssignSeat',
      'DeprovisionUser',
      'AssignSeat',
    ]);
  });

  test('200 at once never pass the limit (S1)', async () => {
    await setLimit(50);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (_, i) => assign(`u${i}`)),
    );
    const taken = outcomes.filter(({ status }) => status === 'fulfilled');
    expect(taken).toHaveLength(50);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') {
        expect(outcome.reason).toMatchObject(refused('SEATS_EXHAUSTED'));
      }
    }
    expect(await usage()).toMatchObject({ used: 50, limit: 50 });
    expect(await seats()).toHaveLength(50);
    expect(await holders()).toHaveLength(50);
  });

  test('two instances with 100 each and half of the users in both never pass it (S1)', async () => {
    const second = await createTestServices(database);
    await setLimit(40);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 200 }, (_, i) => assign(`u${i % 150}`, i % 2 === 0 ? services : second)),
    );
    await second.close();
    const fresh = outcomes.filter((one) => one.status === 'fulfilled' && !one.value);
    expect(fresh).toHaveLength(40);
    expect(await usage()).toMatchObject({ used: 40, limit: 40 });
    expect((await seats()).map(({ userId }) => userId).toSorted()).toEqual(await holders());
  });

  test('the database holds the cap without any of this code', async () => {
    await setLimit(3);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, (_, i) =>
        database.pool.query(
          `insert into seat_assignment (project_id, tenant_id, sku, user_id)
           values ('default', 't', $1, $2)`,
          [sku, `u${i}`],
        ),
      ),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(await usage()).toMatchObject({ used: 3, limit: 3 });
  });

  test('one user assigned by 20 at once has one seat', async () => {
    await setLimit(5);
    const held = await Promise.all(Array.from({ length: 20 }, () => assign('a')));
    expect(held.filter((already) => !already)).toHaveLength(1);
    expect(await usage()).toMatchObject({ used: 1 });
  });

  test('assigning, revoking and limiting at once keep count and tuples', async () => {
    await setLimit(5);
    await Promise.allSettled(
      Array.from({ length: 120 }, (_, i) => {
        if (i % 3 === 0) return revoke(`u${i % 10}`);
        return i % 20 === 7 ? setLimit(3 + (i % 4)) : assign(`u${i % 10}`);
      }),
    );
    const listed = (await seats()).map(({ userId }) => userId).toSorted();
    expect(listed).toEqual(await holders());
    expect((await usage()).used).toBe(listed.length);
    expect(listed.length).toBeLessThanOrEqual(6);
  });
});

describe('revoking and listing', () => {
  test('revoking what is not there is no error and no change', async () => {
    await revoke('nobody');
    expect(await usage()).toEqual({ sku, used: 0, limit: undefined });
    expect(services.audited).toEqual([]);
    await assign('a');
    await revoke('a');
    await revoke('a');
    expect(await holders()).toEqual([]);
    expect(await usage()).toMatchObject({ used: 0 });
    expect(services.audited.map(({ rpc }) => rpc)).toEqual(['AssignSeat', 'RevokeSeat']);
  });

  test('a seat whose user was deprovisioned stays used until it is revoked', async () => {
    await assign('a');
    const meta = metaOf('DeprovisionUser');
    await services.tuples.deprovisionUser({ projectId: '', userId: 'a', meta });
    expect(await usage()).toMatchObject({ used: 1 });
    await revoke('a');
    expect(await usage()).toMatchObject({ used: 0 });
  });

  test('lists come by time, then user', async () => {
    expect(await seats()).toEqual([]);
    for (const id of ['c', 'a', 'b']) await assign(id);
    expect((await seats()).map(({ userId }) => userId)).toEqual(['c', 'a', 'b']);
    await database.pool.query('update seat_assignment set assigned_at = now() where sku = $1', [
      sku,
    ]);
    const listed = await seats();
    expect(listed.map(({ userId }) => userId)).toEqual(['a', 'b', 'c']);
    expect(listed[0]).toMatchObject({ sku, userId: 'a' });
  });

  test('the export names the seat', async () => {
    await assign('exported');
    expect(
      await services.tuples.exportSubjectGrants({ projectId: '', userId: 'exported' }),
    ).toEqual([
      { tenantId: 't', namespace: 'seat', objectId: sku, relation: 'holder', viaGroup: '' },
    ]);
  });
});

test('settings of the project bind: suspension, region', async () => {
  await services.projects.create(
    { id: 'bound', name: 'b', modelJson: '', dataRegion: '', maxCheckReads: 0 },
    'r',
  );
  const plan = { projectId: 'bound', tenantId: '', sku };
  const seat = { ...plan, userId: 'a' };
  const calls = (): Promise<unknown>[] => [
    services.seats.setLimit({ ...plan, limit: 1 }, metaOf('x')),
    services.seats.usage(plan),
    services.seats.assign(seat, metaOf('x')),
    services.seats.revoke(seat, metaOf('x')),
    services.seats.list(plan).next(),
  ];
  const update = {
    id: 'bound',
    name: '',
    status: 0,
    modelJson: '',
    dataRegion: '',
    clearDataRegion: false,
    maxCheckReads: 0,
    clearMaxCheckReads: false,
  };
  await services.projects.update({ ...update, status: 2 }, 'r');
  for (const outcome of await Promise.allSettled(calls())) {
    expect(outcome).toMatchObject({ reason: refused('PROJECT_SUSPENDED') });
  }
  await services.projects.update({ ...update, status: 1, dataRegion: 'us' }, 'r');
  const before = services.regionRefusals.count;
  for (const outcome of await Promise.allSettled(calls())) {
    expect(outcome).toMatchObject({ reason: refused('REGION_REFUSED') });
  }
  expect(services.regionRefusals.count - before).toBe(5);
});

test('fields are checked', async () => {
  const bad = async (fields: object, field: string): Promise<void> => {
    const request = { ...scope, sku: 'ok', userId: 'u', ...fields };
    const meta = metaOf('x');
    const all = [services.seats.assign(request, meta), services.seats.revoke(request, meta)];
    for (const one of all) await expect(one).rejects.toMatchObject({ metadata: { field } });
  };
  for (const wrong of ['', '-a', 'a b', 'é', 'x'.repeat(64)]) await bad({ sku: wrong }, 'sku');
  for (const wrong of ['', '#', '\u0000', 'x'.repeat(257)]) await bad({ userId: wrong }, 'user_id');
  await bad({ tenantId: ' ' }, 'tenant_id');
  for (const limit of [-1, 2 ** 31, 1.5, NaN]) {
    await expect(setLimit(limit)).rejects.toMatchObject({ metadata: { field: 'limit' } });
  }
});
