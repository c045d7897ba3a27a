import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import type { WriteMeta } from '../ports.ts';
import type { RawMember } from './group-input.ts';
import type { Enrollment, GroupMember } from './group-member-service.ts';

let database: TestDatabase;
let services: TestServices;
let groupId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  services = await createTestServices(database);
});
afterAll(async () => {
  await services.close();
  await database.drop();
});

const metaOf = (rpc = 'Test'): WriteMeta => ({
  rpc,
  actingUserId: 'ann',
  requestId: 'r1',
  deadlineMs: Infinity,
});
const scope = { actingUserId: 'ann', projectId: '', tenantId: '' };
const user = (value: string): RawMember => ({ case: 'userId', value });
const group = (value: string): RawMember => ({ case: 'groupId', value });
const refused = (reason: string): object => ({ reason });
const [WAITLISTED, ENROLLED, ACTIVE, COMPLETED, DROPPED] = [1, 2, 3, 4, 5] as const;

async function createGroup(displayName = 'G'): Promise<string> {
  const request = { ...scope, displayName, slug: '', workspaceId: '' };
  return (await services.groups.create(request, metaOf())).id;
}
const add = (member: RawMember, id = groupId): Promise<void> =>
  services.groupMembers.add(
    { ...scope, groupId: id, member: { member } },
    metaOf('AddGroupMember'),
  );
const remove = (member: RawMember, id = groupId): Promise<void> =>
  services.groupMembers.remove(
    { ...scope, groupId: id, member: { member } },
    metaOf('RemoveGroupMember'),
  );
const set = (member: RawMember, state: number, id = groupId): Promise<Enrollment> =>
  services.groupMembers.setState(
    { ...scope, groupId: id, member: { member }, state },
    metaOf('SetEnrollmentState'),
  );
async function members(id = groupId): Promise<readonly GroupMember[]> {
  const found: GroupMember[] = [];
  const pages = services.groupMembers.listMembers({ ...scope, groupId: id });
  for await (const page of pages) found.push(...page);
  return found;
}
async function enrollments(id = groupId): Promise<readonly Enrollment[]> {
  const found: Enrollment[] = [];
  const pages = services.groupMembers.listEnrollments({ ...scope, groupId: id });
  for await (const page of pages) found.push(...page);
  return found;
}
const ids = async (): Promise<readonly string[]> => (await members()).map(({ id }) => id);
const states = async (): Promise<Readonly<Record<string, number>>> =>
  Object.fromEntries((await enrollments()).map(({ member, state }) => [member.id, state]));
async function raw(op: 1 | 2, subject: object, rest: object = {}): Promise<void> {
  const tuple = {
    projectId: '',
    tenantId: '',
    namespace: 'group',
    objectId: groupId,
    relation: 'member',
  };
  await services.tuples.write({
    projectId: '',
    tenantId: '',
    meta: metaOf('WriteRelationTuples'),
    updates: [{ op, tuple: { ...tuple, subject: { kind: subject as never }, ...rest } }],
  });
}

beforeEach(async () => {
  groupId = await createGroup();
  services.audited.length = 0;
});

describe('plain membership', () => {
  test('is added once, and makes no row (E5)', async () => {
    const inner = await createGroup('Inner');
    await add(user('b'));
    await add(user('a'));
    await add(group(inner));
    expect(await members()).toEqual([
      { kind: 'user', id: 'a' },
      { kind: 'user', id: 'b' },
      { kind: 'group', id: inner },
    ]);
    expect(await enrollments()).toEqual([]);
    const entries = services.audited.length;
    expect(services.audited[0]).toMatchObject({
      rpc: 'AddGroupMember',
      actingUserId: 'ann',
      requestId: 'r1',
    });
    await add(user('a'));
    // Nothing had to change: no record.
    expect(services.audited).toHaveLength(entries);
    await remove(user('a'));
    await remove(group(inner));
    expect(await ids()).toEqual(['b']);
    await expect(remove(user('a'))).rejects.toMatchObject(refused('MEMBER_UNKNOWN'));
    await expect(remove(group(inner))).rejects.toMatchObject(refused('MEMBER_UNKNOWN'));
    await expect(remove(group('nothing'))).rejects.toMatchObject(refused('MEMBER_UNKNOWN'));
  });

  test('a user and a group of the same id are two members', async () => {
    const inner = await createGroup('Inner');
    await add(user(inner));
    await add(group(inner));
    await remove(user(inner));
    expect(await members()).toEqual([{ kind: 'group', id: inner }]);
  });

  test('a group does not contain itself, but may in a circle', async () => {
    const inner = await createGroup('Inner');
    const itself = { reason: 'FIELD_INVALID', metadata: { field: 'member.group_id' } };
    await expect(add(group(groupId))).rejects.toMatchObject(itself);
    await expect(set(group(groupId), ENROLLED)).rejects.toMatchObject(itself);
    await add(group(inner));
    await add(group(groupId), inner);
    expect(await members(inner)).toEqual([{ kind: 'group', id: groupId }]);
  });

  test('a member group must exist in the same tenant', async () => {
    const foreign = await services.groups.create(
      { ...scope, tenantId: 'foreign', displayName: 'F', slug: '', workspaceId: '' },
      metaOf(),
    );
    for (const id of ['nothing', foreign.id]) {
      await expect(add(group(id))).rejects.toMatchObject({
        reason: 'GROUP_UNKNOWN',
        metadata: { field: 'member.group_id' },
      });
      await expect(set(group(id), WAITLISTED)).rejects.toMatchObject(refused('GROUP_UNKNOWN'));
    }
    expect(await enrollments()).toEqual([]);
  });
});

describe('enrollments', () => {
  test('the tuple follows each state (E1), whatever came before', async () => {
    const all = [WAITLISTED, ENROLLED, ACTIVE, COMPLETED, DROPPED];
    for (const from of all) {
      for (const to of all) {
        await set(user('a'), from);
        const row = await set(user('a'), to);
        expect(row).toMatchObject({ groupId, member: { kind: 'user', id: 'a' }, state: to });
        expect(await ids()).toEqual(to === ENROLLED || to === ACTIVE ? ['a'] : []);
        expect(await enrollments()).toEqual([row]);
      }
    }
  });

  test('adding and removing move a row', async () => {
    for (const state of [WAITLISTED, COMPLETED, DROPPED]) {
      await set(user('a'), state);
      await expect(remove(user('a'))).rejects.toMatchObject(refused('MEMBER_UNKNOWN'));
      expect(await states()).toEqual({ a: state });
      await add(user('a'));
      expect(await states()).toEqual({ a: ENROLLED });
      expect(await ids()).toEqual(['a']);
    }
    await set(user('a'), ACTIVE);
    await add(user('a'));
    expect(await states()).toEqual({ a: ACTIVE });
    await remove(user('a'));
    expect(await states()).toEqual({ a: DROPPED });
    expect(await ids()).toEqual([]);
  });

  test('setting a state of a plain member makes its row and moves the tuple', async () => {
    await add(user('a'));
    await set(user('a'), WAITLISTED);
    expect(await ids()).toEqual([]);
    expect(await states()).toEqual({ a: WAITLISTED });
  });

  test('times tell when it was made and when the state last changed', async () => {
    const first = await set(user('a'), ENROLLED);
    expect(first.updatedAtUs).toBe(first.createdAtUs);
    expect(await set(user('a'), ENROLLED)).toEqual(first);
    const moved = await set(user('a'), ACTIVE);
    expect(moved.createdAtUs).toBe(first.createdAtUs);
    expect(moved.updatedAtUs).toBeGreaterThan(first.updatedAtUs);
  });

  test('times go forward where another instance was first while this one waited', async () => {
    const other = await database.pool.connect();
    try {
      await other.query('begin');
      await other.query('select from shard for update');
      const waiting = set(user('a'), ACTIVE);
      await expect
        .poll(async () => {
          const { rowCount } = await database.pool.query(
            `select from pg_locks where not granted and locktype in ('transactionid', 'tuple')`,
          );
          return rowCount;
        })
        .toBe(1);
      await other.query(
        `insert into enrollment
           (project_id, tenant_id, group_id, member_kind, member_id, state, created_at, updated_at)
         values ('default', '', $1, 1, 'a', $2, clock_timestamp(), clock_timestamp())`,
        [groupId, WAITLISTED],
      );
      await other.query('commit');
      const { createdAtUs, updatedAtUs } = await waiting;
      expect(updatedAtUs).toBeGreaterThan(createdAtUs);
    } finally {
      other.release(true);
    }
  });

  test('users come first, then groups, by bytes of their ids', async () => {
    const inner = await createGroup('Inner');
    for (const id of ['é', 'z', 'B', 'a', '😀', '\uffee']) await set(user(id), ENROLLED);
    await set(group(inner), ENROLLED);
    const expected = ['B', 'a', 'z', 'é', '\uffee', '😀', inner];
    expect((await enrollments()).map(({ member }) => member.id)).toEqual(expected);
    expect(await ids()).toEqual(expected);
  });

  test('a refused write leaves neither row nor tuple (E2)', async () => {
    // The change row of the next write clashes after the enrollment was written.
    const { rows } = await database.pool.query<{ seq: string }>(
      `select seq::text as seq from shard where project_id = 'default' and tenant_id = ''`,
    );
    const next = Number(rows[0]?.seq) + 1;
    await database.pool.query(
      `insert into tuple_change (project_id, tenant_id, seq, stamp, commit_id, rpc, request_id, changes)
       values ('default', '', $1, 0, gen_random_uuid(), 'x', 'x', '[]')`,
      [next],
    );
    await expect(set(user('a'), ENROLLED)).rejects.toThrow('tuple_change_pkey');
    await database.pool.query(`delete from tuple_change where tenant_id = '' and seq = $1`, [next]);
    expect(await enrollments()).toEqual([]);
    expect(await ids()).toEqual([]);
    await set(user('a'), ENROLLED);
    expect(await ids()).toEqual(['a']);
  });

  test('many at once on one member end in one of their states, with its tuple', async () => {
    const second = await createTestServices(database);
    for (let round = 0; round < 3; round++) {
      const wanted = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5];
      await Promise.all(
        wanted.map((state, i) =>
          (i % 2 === 0 ? services : second).groupMembers.setState(
            { ...scope, groupId, member: { member: user('a') }, state },
            metaOf(),
          ),
        ),
      );
      const [row] = await enrollments();
      expect(await ids()).toEqual(row?.state === ENROLLED || row?.state === ACTIVE ? ['a'] : []);
    }
    await second.close();
  });
});

describe('raw tuples (E6)', () => {
  test('written around, they do not move a row; the next event asserts it', async () => {
    await set(user('a'), WAITLISTED);
    await raw(1, user('a'));
    expect(await ids()).toEqual(['a']);
    expect(await states()).toEqual({ a: WAITLISTED });
    await set(user('a'), WAITLISTED);
    expect(await ids()).toEqual([]);
    await set(user('a'), ACTIVE);
    await raw(2, user('a'));
    expect(await ids()).toEqual([]);
    await set(user('a'), ACTIVE);
    expect(await ids()).toEqual(['a']);
  });

  test('one that was written by hand is removed though the row has no access', async () => {
    await set(user('a'), COMPLETED);
    await raw(1, user('a'));
    await remove(user('a'));
    expect(await states()).toEqual({ a: COMPLETED });
    expect(await ids()).toEqual([]);
  });

  test('adding makes a conditional or expiring one plain', async () => {
    const expires = BigInt(Math.floor(Date.now() / 1000) + 1_000);
    await raw(1, user('a'), { expiresAt: { seconds: expires, nanos: 0 } });
    await raw(1, user('b'), { conditionName: 'consent_granted' });
    await add(user('a'));
    await add(user('b'));
    const { rows } = await database.pool.query(
      `select 1 from relation_tuple where object_id = $1
       and expires_at_us is null and condition_name is null`,
      [groupId],
    );
    expect(rows).toHaveLength(2);
  });

  test('expired ones, wildcards and other usersets are no members to list', async () => {
    await raw(1, user('gone'), { expiresAt: { seconds: 1n, nanos: 0 } });
    await raw(1, { case: 'wildcard', value: true });
    for (const relation of ['', 'admin']) {
      await raw(1, { case: 'set', value: { namespace: 'group', objectId: 'x', relation } });
    }
    await raw(1, { case: 'set', value: { namespace: 'team', objectId: 'x', relation: 'member' } });
    await add(user('a'));
    expect(await ids()).toEqual(['a']);
    // It is stored all the same, so that it can be removed.
    await remove(user('gone'));
  });
});

test('DeprovisionUser takes the tuples and leaves the rows; the export tells the same', async () => {
  const outer = await createGroup('Outer');
  await add(group(groupId), outer);
  await add(user('dan'), outer);
  await set(user('dan'), ACTIVE);
  const exported = async (): Promise<readonly string[]> =>
    (await services.tuples.exportSubjectGrants({ projectId: '', userId: 'dan' })).map(
      ({ objectId, viaGroup }) => `${objectId}<${viaGroup}`,
    );
  expect((await exported()).toSorted()).toEqual(
    [`${groupId}<`, `${outer}<`, `${outer}<${groupId}`].toSorted(),
  );
  const meta = { ...metaOf('DeprovisionUser'), actingUserId: null };
  expect(await services.tuples.deprovisionUser({ projectId: '', userId: 'dan', meta })).toBe(2);
  expect(await exported()).toEqual([]);
  expect(await states()).toEqual({ dan: ACTIVE });
  await expect(remove(user('dan'), outer)).rejects.toMatchObject(refused('MEMBER_UNKNOWN'));
  // The row still says that there is access to end.
  await remove(user('dan'));
  expect(await states()).toEqual({ dan: DROPPED });
});

test('long lists come in pages from one snapshot, and give their connection back', async () => {
  await database.pool.query(
    `insert into relation_tuple select 'default', '', 'group', $1, 'member', '',
       'u' || lpad(i::text, 6, '0'), '', null, null, null, 1 from generate_series(1, 1000) i`,
    [groupId],
  );
  const busy = (): number => database.pool.totalCount - database.pool.idleCount;
  const before = busy();
  const pages = services.groupMembers.listMembers({ ...scope, groupId });
  const first = await pages.next();
  expect(first.value).toHaveLength(256);
  await database.pool.query('delete from relation_tuple where object_id = $1', [groupId]);
  let count = 256;
  for await (const page of pages) count += page.length;
  expect(count).toBe(1_000);
  for (let i = 0; i < 30; i++) {
    const some = services.groupMembers.listMembers({ ...scope, groupId });
    await some.next();
    await some.return();
  }
  expect(busy()).toBe(before);
});
