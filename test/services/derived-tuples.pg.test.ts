import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RawMember } from '../../src/services/groups/group-input.ts';
import type { ManagementCall } from '../../src/services/management-call.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { type TestDatabase, createTestDatabase } from '../support/postgres.ts';
import { type TestServices, createTestServices } from '../support/services.ts';

/*
 * M1 E1 S3: after any sequence of operations of workspaces, groups and seats, on two instances in
 * turn, the tuples that exist are exactly those derived from the rows, and the changelog replays to
 * them. A plain member of a group is a tuple and no row: those come from the model here.
 */
const RUNS = 12 * Number(process.env['FUZZ_RUNS'] ?? 1);
const USERS = ['anne', 'bob', 'cleo', 'dan'];
const SKUS = ['pro', 'max'];

let database: TestDatabase;
let instances: readonly TestServices[];
let tenants = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  instances = [await createTestServices(database), await createTestServices(database)];
});
afterAll(async () => {
  for (const services of instances) await services.close();
  await database.drop();
});

/** Numbers that pick the operation's user, target and so on from what there is. */
type Step = {
  readonly operation: number;
  readonly instance: number;
  readonly a: number;
  readonly b: number;
  readonly c: number;
};

const step: fc.Arbitrary<Step> = fc.record({
  operation: fc.nat(999),
  instance: fc.nat(1),
  a: fc.nat(99),
  b: fc.nat(99),
  c: fc.nat(99),
});

class World {
  readonly tenantId = `t${++tenants}`;
  readonly workspaces: string[] = [];
  readonly groups: string[] = [];
  readonly tokens: string[] = [];
  readonly invitations: string[] = [];
  /** Members without a row: `group member`. */
  readonly plain = new Set<string>();
  readonly done: string[] = [];
}

type Run = (world: World, services: TestServices, step: Step) => Promise<unknown>;

const pick = (list: readonly string[], at: number): string => list[at % list.length] ?? 'none';
const user = (at: number): string => pick(USERS, at);
const call = (world: World, actingUserId: string): ManagementCall => ({
  projectId: '',
  tenantId: world.tenantId,
  actingUserId,
  meta: { rpc: 'Test', actingUserId, requestId: 'r', deadlineMs: Infinity },
});
const ofWorkspace = (world: World, { a, b }: Step): ManagementCall & { workspaceId: string } => ({
  ...call(world, user(a)),
  workspaceId: pick(world.workspaces, b),
});
const ofGroup = (world: World, { a, b }: Step): ManagementCall & { groupId: string } => ({
  ...call(world, user(a)),
  groupId: pick(world.groups, b),
});
const memberOf = (world: World, { c }: Step): RawMember =>
  c % 3 === 0
    ? { case: 'groupId', value: pick(world.groups, c) }
    : { case: 'userId', value: user(c) };
const hasRow = async (world: World, groupId: string, memberId: string): Promise<boolean> => {
  const { rowCount } = await database.pool.query(
    'select 1 from enrollment where tenant_id = $1 and group_id = $2 and member_id = $3',
    [world.tenantId, groupId, memberId],
  );
  return (rowCount ?? 0) > 0;
};
/** Deleted objects stay in the lists: what names them must be refused. */
const OPERATIONS: Readonly<Record<string, Run>> = {
  createWorkspace: async (world, { workspaces }, { a }) => {
    const made = { ...call(world, user(a)), displayName: 'team', slug: '' };
    world.workspaces.push((await workspaces.create(made)).id);
  },
  listWorkspaces: async (world, { workspaces }, { a }) => {
    for await (const page of await workspaces.list(call(world, user(a)))) {
      for (const { id } of page) if (!world.workspaces.includes(id)) world.workspaces.push(id);
    }
  },
  deleteWorkspace: async (world, { workspaces }, step) => {
    await workspaces.delete(ofWorkspace(world, step));
  },
  transfer: (world, { workspaces }, step) =>
    workspaces.transferOwnership({ ...ofWorkspace(world, step), newOwnerUserId: user(step.c) }),
  addMember: (world, { members }, step) =>
    members.add({ ...ofWorkspace(world, step), userId: user(step.c), role: 2 + (step.c % 3) }),
  updateRole: (world, { members }, step) =>
    members.updateRole({
      ...ofWorkspace(world, step),
      userId: user(step.c),
      role: 2 + (step.a % 3),
    }),
  removeMember: (world, { members }, step) =>
    members.remove({ ...ofWorkspace(world, step), userId: user(step.c) }),
  suspend: (world, { members }, step) =>
    members.suspend({ ...ofWorkspace(world, step), userId: user(step.c) }),
  reinstate: (world, { members }, step) =>
    members.reinstate({ ...ofWorkspace(world, step), userId: user(step.c) }),
  invite: async (world, { invitations }, step) => {
    const body = { email: 'a@b', role: 2 + (step.c % 3) };
    const made = await invitations.create({ ...ofWorkspace(world, step), ...body });
    world.tokens.push(made.token ?? '');
    world.invitations.push(made.id);
  },
  accept: (world, { invitations }, { a, b }) =>
    invitations.accept({ ...call(world, user(a)), token: pick(world.tokens, b) }),
  revoke: (world, { invitations }, { a, b }) =>
    invitations.revoke({ ...call(world, user(a)), invitationId: pick(world.invitations, b) }),
  createGroup: async (world, { groups }, { a, b, c }) => {
    const workspaceId = c % 2 === 0 ? '' : pick(world.workspaces, b);
    const request = { ...call(world, user(a)), displayName: 'g', slug: '', workspaceId };
    world.groups.push((await groups.create(request, request.meta)).id);
  },
  deleteGroup: async (world, { groups }, step) => {
    const request = ofGroup(world, step);
    await groups.delete(request, request.meta);
  },
  addToGroup: async (world, { groupMembers }, step) => {
    const member = memberOf(world, step);
    const request = { ...ofGroup(world, step), member: { member } };
    await groupMembers.add(request, request.meta);
    const key = `${request.groupId} ${member.value ?? ''}`;
    if (!(await hasRow(world, request.groupId, member.value ?? ''))) world.plain.add(key);
  },
  removeFromGroup: async (world, { groupMembers }, step) => {
    const member = memberOf(world, step);
    const request = { ...ofGroup(world, step), member: { member } };
    await groupMembers.remove(request, request.meta);
    world.plain.delete(`${request.groupId} ${member.value ?? ''}`);
  },
  enroll: async (world, { groupMembers }, step) => {
    const member = memberOf(world, step);
    const request = { ...ofGroup(world, step), member: { member }, state: 1 + (step.a % 5) };
    await groupMembers.setState(request, request.meta);
    world.plain.delete(`${request.groupId} ${member.value ?? ''}`);
  },
  limitSeats: (world, { seats }, { a, b }) => {
    const { meta, ...request } = { ...call(world, 'x'), sku: pick(SKUS, a) };
    return seats.setLimit({ ...request, ...(b % 4 === 0 ? {} : { limit: b % 4 }) }, meta);
  },
  assignSeat: (world, { seats }, { a, b }) => {
    const { meta, ...request } = { ...call(world, 'x'), sku: pick(SKUS, a), userId: user(b) };
    return seats.assign(request, meta);
  },
  revokeSeat: (world, { seats }, { a, b }) => {
    const { meta, ...request } = { ...call(world, 'x'), sku: pick(SKUS, a), userId: user(b) };
    return seats.revoke(request, meta);
  },
};
const NAMES = Object.keys(OPERATIONS);
const EXPECTED = new Set([
  'ACTION_FORBIDDEN',
  'WORKSPACE_UNKNOWN',
  'MEMBER_UNKNOWN',
  'INVITATION_UNKNOWN',
  'GROUP_UNKNOWN',
  'ALREADY_MEMBER',
  'PERSONAL_WORKSPACE',
  'OWNER_FIXED',
  'MEMBERSHIP_STATE',
  'INVITATION_STATE',
  'SEATS_EXHAUSTED',
  'FIELD_INVALID',
  'FIELD_REQUIRED',
]);

async function derived(world: World): Promise<string[]> {
  const { rows } = await database.pool.query<{ tuple: string }>(
    `select 'workspace:' || workspace_id || '#' || (array['owner','admin','member','guest'])[role]
        || '@' || user_id as tuple
      from membership where tenant_id = $1 and status = 1
     union all
     select 'group:' || group_id || '#member@'
        || case member_kind when 1 then member_id else 'group:' || member_id || '#member' end
      from enrollment where tenant_id = $1 and state in (2, 3)
     union all
     select 'seat:' || sku || '#holder@' || user_id from seat_assignment where tenant_id = $1`,
    [world.tenantId],
  );
  const groups = await database.pool.query<{ id: string }>(
    'select id from user_group where tenant_id = $1',
    [world.tenantId],
  );
  const living = new Set(groups.rows.map(({ id }) => id));
  const plain = [...world.plain].flatMap((entry) => {
    const [groupId = '', member = ''] = entry.split(' ');
    const isGroup = !USERS.includes(member);
    if (!living.has(groupId) || (isGroup && !living.has(member))) return [];
    return [`group:${groupId}#member@${isGroup ? `group:${member}#member` : member}`];
  });
  return [...rows.map(({ tuple }) => tuple), ...plain].sort();
}

async function stored(world: World): Promise<string[]> {
  const { rows } = await database.pool.query<{ tuple: string }>(
    `select namespace || ':' || object_id || '#' || relation || '@' || case subject_namespace
        when '' then subject_id else subject_namespace || ':' || subject_id || '#' || subject_relation
      end as tuple
     from relation_tuple where tenant_id = $1`,
    [world.tenantId],
  );
  return rows.map(({ tuple }) => tuple).sort();
}

/** What the changelog makes, from nothing. */
async function replayed(world: World): Promise<string[]> {
  const { rows } = await database.pool.query<{ changes: string }>(
    'select changes from tuple_change where tenant_id = $1 order by seq',
    [world.tenantId],
  );
  const tuples = new Set<string>();
  for (const { changes } of rows) {
    for (const [op, namespace, id, relation, ns, subject, rel] of JSON.parse(
      changes,
    ) as string[][]) {
      const of = ns === '' ? subject : `${ns}:${subject}#${rel}`;
      const tuple = `${namespace}:${id}#${relation}@${of}`;
      if (Number(op) === 1) tuples.add(tuple);
      else expect(tuples.delete(tuple), `${tuple} was there`).toBe(true);
    }
  }
  return [...tuples].sort();
}

async function badRows(world: World): Promise<unknown[]> {
  const { rows } = await database.pool.query(
    `select w.id, w.type, count(m.user_id) as members,
        array_agg(m.user_id) filter (where m.role = 1 and m.status = 1) as owners
     from workspace w left join membership m on m.tenant_id = w.tenant_id and m.workspace_id = w.id
     where w.tenant_id = $1 group by w.id, w.type, w.owner_user_id
     having coalesce(array_agg(m.user_id) filter (where m.role = 1 and m.status = 1), '{}')
        <> array[w.owner_user_id] or (w.type = 1 and count(m.user_id) <> 1)`,
    [world.tenantId],
  );
  return rows;
}

test('M1 E1 S3 M2 M5: tuples are those of the rows, whatever happened', async () => {
  const counts = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const world = new World();
      // Something to work on in every run.
      const [first] = instances as [TestServices];
      for (const a of [0, 1]) {
        for (const name of ['createWorkspace', 'createGroup']) {
          await OPERATIONS[name]?.(world, first, { operation: 0, instance: 0, a, b: a, c: a });
        }
      }
      for (const one of steps) {
        const name = pick(NAMES, one.operation);
        try {
          await OPERATIONS[name]?.(world, instances[one.instance] as TestServices, one);
          counts.set(name, (counts.get(name) ?? 0) + 1);
        } catch (error) {
          if (!(error instanceof AppError) || !EXPECTED.has(error.reason)) throw error;
        }
      }
      const tuples = await stored(world);
      expect(tuples).toEqual(await derived(world));
      expect(await replayed(world)).toEqual(tuples);
      expect(await badRows(world)).toEqual([]);
    }),
    { numRuns: RUNS },
  );
  // Otherwise the generators miss what they are for.
  expect(NAMES.filter((name) => !counts.has(name))).toEqual([]);
}, 120_000);
