import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { beforeAll, expect, test } from 'vitest';
import { GroupService } from '../../src/gen/workspace/v1/group_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { type Body, Tenant } from '../support/management.ts';
import { byLength } from '../support/test-length.ts';

/*
 * Lists of groups, their members and seats are ordered and complete when they are long, and a group of
 * that size is deleted in one go. The rows come in by themselves: making them by calls takes long.
 */
const COUNT = byLength(12_000, 100_000);
const MANY = COUNT.toLocaleString('en');
const USER = `'user-' || to_char(i, 'FM000000')`;

const { database, instance } = await instanceForFile();
let tenant: Tenant;
let groupId: string;

beforeAll(async () => {
  tenant = new Tenant(instance, 'long');
  const made = await tenant.call('olga', 'GroupService/CreateGroup', { display_name: 'Many' });
  groupId = (made.body['group'] as { id: string }).id;
  const fill = async (text: string): Promise<void> => {
    await database.pool.query(`${text} from generate_series(1, ${COUNT}) i`);
  };
  await fill(
    `insert into relation_tuple (project_id, tenant_id, namespace, object_id, relation,
       subject_namespace, subject_id, subject_relation, seq)
     select 'default', 'long', 'group', '${groupId}', 'member', '', ${USER}, '', 1`,
  );
  await fill(
    `insert into enrollment (project_id, tenant_id, group_id, member_kind, member_id, state)
     select 'default', 'long', '${groupId}', 1, ${USER}, 2`,
  );
  await fill(
    `insert into user_group (project_id, tenant_id, id, slug, display_name, created_by_user_id)
     select 'default', 'long', 'g' || to_char(i, 'FM000000'), 'many-' || i + 1, 'Many', 'olga'`,
  );
  // The trigger counts one by one, which within one transaction takes very long.
  await database.pool.query('alter table seat_assignment disable trigger user');
  await fill(
    `insert into seat_assignment (project_id, tenant_id, sku, user_id)
     select 'default', 'long', 'pro', ${USER}`,
  );
  await database.pool.query('alter table seat_assignment enable trigger user');
  await database.pool.query('analyze');
}, 120_000);

async function list(method: string, field: string, body: Body): Promise<readonly unknown[]> {
  const startMs = performance.now();
  const answer = await tenant.call('olga', method, body);
  expect(answer.status).toBe(200);
  process.stderr.write(`${method}: ${(performance.now() - startMs).toFixed(0)} ms\n`);
  return answer.body[field] as readonly unknown[];
}
const users = Array.from({ length: COUNT }, (_, i) => `user-${String(i + 1).padStart(6, '0')}`);

test(`${MANY} members, as JSON and as protobuf`, { timeout: 120_000 }, async () => {
  const body = { group_id: groupId };
  const members = await list('GroupService/ListGroupMembers', 'members', body);
  expect(members.map((member) => (member as { user_id: string }).user_id)).toEqual(users);
  const transport = createGrpcTransport({ baseUrl: instance.baseUrl });
  const client = createClient(GroupService, transport);
  const answer = await client.listGroupMembers(
    { actingUserId: 'olga', tenantId: 'long', groupId },
    { headers: { authorization: `Bearer ${instance.token}` } },
  );
  expect(answer.members.map(({ member }) => member.value)).toEqual(users);
  expect(answer.members.every(({ member }) => member.case === 'userId')).toBe(true);
});

test(`${MANY} enrollments`, { timeout: 120_000 }, async () => {
  const body = { group_id: groupId };
  const found = await list('GroupService/ListEnrollments', 'enrollments', body);
  const ids = found.map((row) => (row as { member: { user_id: string } }).member.user_id);
  expect(ids).toEqual(users);
});

test(
  `${MANY} groups, and a slug among as many of the same name`,
  { timeout: 120_000 },
  async () => {
    const groups = (await list('GroupService/ListGroups', 'groups', {})) as { id: string }[];
    expect(groups).toHaveLength(COUNT + 1);
    const ids = groups.map(({ id }) => id);
    expect(ids).toEqual(ids.toSorted());
    const made = await tenant.call('olga', 'GroupService/CreateGroup', { display_name: 'Many' });
    expect(made.body['group']).toMatchObject({ slug: `many-${COUNT + 2}` });
  },
);

test(`${MANY} seats`, { timeout: 120_000 }, async () => {
  const { status, body } = await tenant.call('', 'SeatService/ListSeats', { sku: 'pro' });
  expect(status).toBe(200);
  const seats = body['seats'] as { user_id: string; assigned_at: string }[];
  expect(seats).toHaveLength(COUNT);
  const times = seats.map((seat) => Date.parse(seat.assigned_at));
  expect(times.every((time, i) => i === 0 || time >= (times[i - 1] ?? 0))).toBe(true);
});

test(`a group of ${MANY} members is deleted whole`, { timeout: 120_000 }, async () => {
  const question = { namespace: 'group', object_id: groupId, relation: 'member' };
  const check = async (): Promise<unknown> =>
    (await tenant.call('', 'AuthzService/Check', { ...question, subject_user_id: users[5] })).body;
  expect(await check()).toEqual({ allowed: true });
  const deleted = await tenant.call('olga', 'GroupService/DeleteGroup', { group_id: groupId });
  expect(deleted.status).toBe(200);
  expect(await check()).toEqual({ allowed: false });
  expect(await tenant.tuples()).toEqual([]);
});
