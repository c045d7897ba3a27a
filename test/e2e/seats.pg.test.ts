import { expect, test } from 'vitest';
import { type Body, Tenant, reasonOf } from '../support/management.ts';
import { sharedInstance } from '../support/shared-instance.ts';

/* Seats through HTTP, by the gateways with and without the hot path. */
const instance = await sharedInstance();
let tenants = 0;

/** One tenant by both gateways. */
function fresh(): readonly [Tenant, Tenant] {
  const id = `t${++tenants}`;
  const general = { ...instance, baseUrl: instance.generalUrl };
  return [new Tenant(instance, id), new Tenant(general, id)];
}
type Answer = Awaited<ReturnType<Tenant['call']>>;
const seat = (tenant: Tenant, method: string, body: Body = {}): Promise<Answer> =>
  tenant.call('', `SeatService/${method}`, { sku: 'pro', ...body });
const assign = (tenant: Tenant, userId: string): Promise<Answer> =>
  seat(tenant, 'AssignSeat', { user_id: userId });
async function holds(tenant: Tenant, userId: string): Promise<boolean> {
  const { body } = await tenant.call('', 'AuthzService/Check', {
    namespace: 'seat',
    object_id: 'pro',
    relation: 'holder',
    subject_user_id: userId,
  });
  return body['allowed'] as boolean;
}

test('answers have every field, and the limit only where there is one', async () => {
  const [tenant] = fresh();
  expect((await seat(tenant, 'GetSeatUsage')).body).toEqual({
    sku: 'pro',
    used: 0,
    limit: 0,
    limited: false,
  });
  expect((await seat(tenant, 'SetSeatLimit', { limit: 0 })).body).toEqual({
    limit: { sku: 'pro', limit: 0 },
  });
  const refused = await assign(tenant, 'ann');
  expect([refused.status, refused.body['code'], reasonOf(refused.body)]).toEqual([
    429,
    'resource_exhausted',
    'SEATS_EXHAUSTED',
  ]);
  expect((await seat(tenant, 'SetSeatLimit')).body).toEqual({ limit: { sku: 'pro' } });
  expect((await assign(tenant, 'ann')).body).toEqual({ already_held: false });
  expect((await assign(tenant, 'ann')).body).toEqual({ already_held: true });
  expect((await seat(tenant, 'ListSeats')).body).toEqual({
    seats: [
      { sku: 'pro', user_id: 'ann', assigned_at: expect.stringMatching(/^20.*Z$/) as string },
    ],
  });
  await seat(tenant, 'SetSeatLimit', { limit: 3 });
  expect((await seat(tenant, 'GetSeatUsage')).body).toEqual({
    sku: 'pro',
    used: 1,
    limit: 3,
    limited: true,
  });
  expect((await seat(tenant, 'RevokeSeat', { user_id: 'ann' })).body).toEqual({});
  expect((await seat(tenant, 'RevokeSeat', { user_id: 'ann' })).body).toEqual({});
  expect((await seat(tenant, 'ListSeats')).body).toEqual({ seats: [] });
  expect((await seat(tenant, 'SetSeatLimit', { limit: 2 ** 31 - 1 })).status).toBe(200);
});

test('a decision knows of a seat at once, on both paths', async () => {
  const [here, there] = fresh();
  for (let i = 0; i < 5; i++) {
    await assign(i % 2 === 0 ? here : there, 'ann');
    expect([await holds(here, 'ann'), await holds(there, 'ann')]).toEqual([true, true]);
    await seat(i % 2 === 0 ? there : here, 'RevokeSeat', { user_id: 'ann' });
    expect([await holds(here, 'ann'), await holds(there, 'ann')]).toEqual([false, false]);
  }
});

test('200 at once never pass the cap', async () => {
  const [here, there] = fresh();
  await seat(here, 'SetSeatLimit', { limit: 25 });
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) => assign(i % 2 === 0 ? here : there, `u${i}`)),
  );
  const count = (status: number): number =>
    answers.filter((answer) => answer.status === status).length;
  expect([count(200), count(429)]).toEqual([25, 175]);
  expect((await seat(there, 'GetSeatUsage')).body).toMatchObject({ used: 25, limit: 25 });
  expect(await here.tuples({ namespace: 'seat' })).toHaveLength(25);
  const { seats } = (await seat(there, 'ListSeats')).body as { seats: { user_id: string }[] };
  for (const { user_id: userId } of seats) expect(await holds(there, userId)).toBe(true);
});

test('the namespace is written here only', async () => {
  const [tenant] = fresh();
  await assign(tenant, 'ann');
  for (const op of ['OP_INSERT', 'OP_DELETE']) {
    const tuple = {
      namespace: 'seat',
      object_id: 'pro',
      relation: 'holder',
      subject: { user_id: 'ann' },
    };
    const answer = await tenant.call('', 'AuthzService/WriteRelationTuples', {
      updates: [{ op, tuple }],
    });
    expect([answer.status, reasonOf(answer.body)]).toEqual([400, 'NAMESPACE_RESERVED']);
  }
  expect(await holds(tenant, 'ann')).toBe(true);
});
