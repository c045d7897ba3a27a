import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import { AppError } from '../../shared/app-error.ts';
import type { ManagementCall } from '../projects/management-call.ts';
import { ADMIN, MEMBER } from '../rules/roles.ts';
import type { Membership, Workspace } from './workspace-model.ts';

/*
 * Two instances' services on one database, each with its own queues: what holds here is held by the
 * database and not by one process.
 */
let database: TestDatabase;
let instances: readonly TestServices[];
let tenants = 0;

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 30 });
  instances = [await createTestServices(database), await createTestServices(database)];
});
afterAll(async () => {
  for (const services of instances) await services.close();
  await database.drop();
});

type As = (user: string) => ManagementCall;
function newTenant(): As {
  const tenantId = `t${++tenants}`;
  return (actingUserId) => ({
    projectId: '',
    tenantId,
    actingUserId,
    meta: { rpc: 'Test', actingUserId, requestId: 'r', deadlineMs: Infinity },
  });
}
const on = (index: number): TestServices => instances[index % instances.length] as TestServices;

async function collect<T>(pages: Promise<AsyncIterable<readonly T[]>>): Promise<T[]> {
  const all: T[] = [];
  for await (const page of await pages) all.push(...page);
  return all;
}
/** 'ok', or the reason of the refusal. */
async function outcome(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'ok',
    (error: unknown) => (error instanceof AppError ? error.reason : String(error)),
  );
}
const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));
async function team(as: As, owner: string, ...admins: string[]): Promise<string> {
  const { id } = await on(0).workspaces.create({ ...as(owner), displayName: 'Team', slug: '' });
  for (const userId of admins) {
    await on(0).members.add({ ...as(owner), workspaceId: id, userId, role: ADMIN });
  }
  return id;
}
async function tuplesOn(workspaceId: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ tuple: string }>(
    `select relation || '@' || subject_id as tuple from relation_tuple
     where namespace = 'workspace' and object_id = $1 order by 1`,
    [workspaceId],
  );
  return rows.map(({ tuple }) => tuple);
}

test('M5: 50 first lists make one PERSONAL workspace', async () => {
  const as = newTenant();
  const lists = await times(50, (i) => collect<Workspace>(on(i).workspaces.list(as('anne'))));
  const [first] = lists;
  expect(first).toHaveLength(1);
  for (const list of lists) expect(list).toEqual(first);
  expect(await tuplesOn(first?.[0]?.id ?? '')).toEqual(['owner@anne']);
});

test('M5: the database refuses a second PERSONAL workspace by itself', async () => {
  const insert = `insert into workspace (project_id, tenant_id, id, slug, display_name, type, owner_user_id)
    values ('p', 't', $1, $1, 'n', 1, 'u')`;
  const client = await database.pool.connect();
  try {
    await client.query('begin');
    await client.query(insert, ['w1']);
    await expect(client.query(insert, ['w2'])).rejects.toMatchObject({
      constraint: 'workspace_personal',
    });
  } finally {
    await client.query('rollback');
    client.release();
  }
});

test('M2: the database refuses a second owner, none, a suspended one, and another than is named', async () => {
  const as = newTenant();
  const id = await team(as, 'olga', 'bob');
  const refused = async (text: string, constraint: string): Promise<void> => {
    await expect(database.pool.query(text, [id])).rejects.toMatchObject({ constraint });
  };
  const where = 'where workspace_id = $1 and user_id =';
  await refused(`update membership set role = 1 ${where} 'bob'`, 'membership_owner');
  await refused(`update membership set role = 2 ${where} 'olga'`, 'workspace_owner');
  await refused(`delete from membership ${where} 'olga'`, 'workspace_owner');
  await refused(`update membership set status = 3 ${where} 'olga'`, 'membership_owner_active');
  await refused(`update workspace set owner_user_id = 'bob' where id = $1`, 'workspace_owner');
});

test('V1: one invitation accepted by 20 callers makes one member', async () => {
  const as = newTenant();
  const id = await team(as, 'olga');
  const { token = '' } = await on(0).invitations.create({
    ...as('olga'),
    workspaceId: id,
    email: 'a@b',
    role: MEMBER,
  });
  const outcomes = await times(20, (i) =>
    outcome(on(i).invitations.accept({ ...as(`user${i}`), token })),
  );
  expect(outcomes.filter((each) => each === 'ok')).toHaveLength(1);
  expect(new Set(outcomes)).toEqual(new Set(['ok', 'INVITATION_STATE']));
  const members = await collect<Membership>(on(1).members.list({ ...as('olga'), workspaceId: id }));
  expect(members).toHaveLength(2);
  expect(await tuplesOn(id)).toHaveLength(2);
});

test('V1: the same caller 20 times is one member, and the others are told', async () => {
  const as = newTenant();
  const id = await team(as, 'olga');
  const make = { ...as('olga'), workspaceId: id, email: 'a@b', role: MEMBER };
  const { token = '' } = await on(0).invitations.create(make);
  const outcomes = await times(20, (i) =>
    outcome(on(i).invitations.accept({ ...as('zoe'), token })),
  );
  expect(outcomes.filter((each) => each === 'ok')).toHaveLength(1);
  expect(await tuplesOn(id)).toEqual(['member@zoe', 'owner@olga']);
});

test('M2: transfers, suspensions and removals racing leave exactly one owner', async () => {
  for (let round = 0; round < 5; round++) {
    const as = newTenant();
    const id = await team(as, 'olga', 'ann', 'bob', 'cy');
    const of = (user: string): ManagementCall & { workspaceId: string } => ({
      ...as(user),
      workspaceId: id,
    });
    const work: Promise<unknown>[] = [];
    ['ann', 'bob', 'cy'].forEach((user, i) => {
      const { workspaces, members } = on(i + round);
      const other = on(i + round + 1).members;
      work.push(
        outcome(workspaces.transferOwnership({ ...of('olga'), newOwnerUserId: user })),
        outcome(other.suspend({ ...of('olga'), userId: user })),
        outcome(members.suspend({ ...of(user), userId: 'olga' })),
        outcome(other.remove({ ...of(user), userId: 'olga' })),
        outcome(members.remove({ ...of('olga'), userId: user })),
        outcome(other.updateRole({ ...of(user), userId: 'olga', role: MEMBER })),
      );
    });
    await Promise.all(work);
    const { rows } = await database.pool.query<{ user_id: string; role: number; status: number }>(
      'select user_id, role, status from membership where workspace_id = $1',
      [id],
    );
    const owners = rows.filter(({ role }) => role === 1);
    expect(owners).toMatchObject([{ status: 1 }]);
    const named = await database.pool.query<{ owner_user_id: string }>(
      'select owner_user_id from workspace where id = $1',
      [id],
    );
    expect(named.rows[0]?.owner_user_id).toBe(owners[0]?.user_id);
    const relation = ['owner', 'admin', 'member', 'guest'];
    expect(await tuplesOn(id)).toEqual(
      rows
        .filter(({ status }) => status === 1)
        .map(({ user_id: user, role }) => `${relation[role - 1]}@${user}`)
        .sort(),
    );
  }
});

test('slugs stay unique: derived ones are numbered without a gap, an explicit one is had once', async () => {
  const as = newTenant();
  const made = await times(40, (i) =>
    on(i).workspaces.create({ ...as(`u${i}`), displayName: 'Same name', slug: '' }),
  );
  expect(new Set(made.map(({ slug }) => slug))).toEqual(
    new Set(Array.from({ length: 40 }, (_, i) => (i === 0 ? 'same-name' : `same-name-${i + 1}`))),
  );
  const outcomes = await times(10, (i) =>
    outcome(on(i).workspaces.create({ ...as('u'), displayName: 'n', slug: 'mine' })),
  );
  expect(outcomes.sort()).toEqual([...Array.from({ length: 9 }, () => 'SLUG_TAKEN'), 'ok'].sort());
});

test('a failure in the middle leaves neither row nor tuple', async () => {
  const as = newTenant();
  const id = await team(as, 'olga');
  await database.pool.query(
    `create function fail_now() returns trigger language plpgsql as
       $$ begin raise exception 'not now'; end $$`,
  );
  await database.pool.query(
    `create trigger fail_now before insert on relation_tuple for each row
       when (new.subject_id = 'unlucky') execute function fail_now()`,
  );
  try {
    const add = { ...as('olga'), workspaceId: id, userId: 'unlucky', role: MEMBER };
    await expect(on(0).members.add(add)).rejects.toThrow('not now');
    await expect(on(0).workspaces.list(as('unlucky'))).rejects.toThrow('not now');
  } finally {
    await database.pool.query('drop trigger fail_now on relation_tuple');
    await database.pool.query('drop function fail_now');
  }
  const { rowCount } = await database.pool.query(
    `select 1 from membership where user_id = 'unlucky'
     union all select 1 from workspace where owner_user_id = 'unlucky'`,
  );
  expect(rowCount).toBe(0);
  await on(1).members.add({ ...as('olga'), workspaceId: id, userId: 'unlucky', role: MEMBER });
  expect(await tuplesOn(id)).toEqual(['member@unlucky', 'owner@olga']);
});

test('changes are audited and handed on with the acting user', async () => {
  const as = newTenant();
  const services = on(0);
  const before = services.audited.length;
  const id = await team(as, 'olga', 'ann');
  const [created, added] = services.audited.slice(before);
  expect([created, added]).toMatchObject([
    { tenantId: as('x').tenantId, actingUserId: 'olga', revision: 1 },
    { tenantId: as('x').tenantId, actingUserId: 'olga', revision: 2 },
  ]);
  expect(added?.changes).toContain(id);
  expect(services.committed.at(-1)).toMatchObject({ tenantId: as('x').tenantId, revision: 2 });
});
