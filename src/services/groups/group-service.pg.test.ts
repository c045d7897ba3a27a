import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import { insertWorkspaceRows } from '../../../test/support/workspace-rows.ts';
import type { WriteMeta } from '../ports.ts';
import type { RawMember } from './group-input.ts';
import type { Group } from './group-service.ts';

let database: TestDatabase;
let services: TestServices;

const T = { projectId: 'default', tenantId: 't' };
const STRANGER = 'stranger';

beforeAll(async () => {
  database = await createTestDatabase();
  services = await createTestServices(database);
  await insertWorkspaceRows(database.pool, T, 'ws', 'owner', [
    ['admin', 2, 1],
    ['member', 3, 1],
    ['guest', 4, 1],
    ['suspended', 2, 3],
    ['invited', 2, 2],
    ['leaver', 2, 1],
  ]);
  await insertWorkspaceRows(database.pool, T, 'other', 'elsewhere');
});
afterAll(async () => {
  await services.close();
  await database.drop();
});

const metaOf = (actingUserId: string, rpc = 'Test'): WriteMeta => ({
  rpc,
  actingUserId,
  requestId: 'r1',
  deadlineMs: Infinity,
});
const by = (
  actingUserId: string,
): { actingUserId: string; projectId: string; tenantId: string } => ({
  actingUserId,
  projectId: '',
  tenantId: 't',
});
function create(
  actingUserId: string,
  displayName: string,
  workspaceId = '',
  slug = '',
): Promise<Group> {
  const request = { ...by(actingUserId), displayName, slug, workspaceId };
  return services.groups.create(request, metaOf(actingUserId, 'CreateGroup'));
}
const get = (user: string, groupId: string): Promise<Group> =>
  services.groups.get({ ...by(user), groupId });
const remove = (user: string, groupId: string): Promise<void> =>
  services.groups.delete({ ...by(user), groupId }, metaOf(user, 'DeleteGroup'));
async function list(user: string, workspaceId = ''): Promise<readonly Group[]> {
  const found: Group[] = [];
  for await (const page of services.groups.list({ ...by(user), workspaceId })) found.push(...page);
  return found;
}
const add = (user: string, groupId: string, member: RawMember): Promise<void> =>
  services.groupMembers.add({ ...by(user), groupId, member: { member } }, metaOf(user));
const user = (value: string): RawMember => ({ case: 'userId', value });
const group = (value: string): RawMember => ({ case: 'groupId', value });
async function tuplesNaming(id: string): Promise<number> {
  const { rowCount } = await database.pool.query(
    'select 1 from relation_tuple where object_id = $1 or subject_id = $1',
    [id],
  );
  return rowCount ?? 0;
}
const refused = (reason: string): object => ({ reason });

describe('creating', () => {
  test('a standalone group has all its fields, and its slug from the name', async () => {
    const made = await create('ann', '  Ünïted Readers! ');
    expect(made).toMatchObject({
      projectId: 'default',
      tenantId: 't',
      workspaceId: '',
      slug: 'united-readers',
      displayName: 'Ünïted Readers!',
      createdByUserId: 'ann',
    });
    expect(made.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(made.createdAtUs).toBe(made.updatedAtUs);
    expect(await get('ann', made.id)).toEqual(made);
  });

  test('a derived slug that is taken gets a number, an explicit one is refused', async () => {
    const slugs: string[] = [];
    for (let i = 0; i < 3; i++) slugs.push((await create('ann', 'Twice')).slug);
    expect(slugs).toEqual(['twice', 'twice-2', 'twice-3']);
    await expect(create('bob', 'X', '', 'twice')).rejects.toMatchObject(refused('SLUG_TAKEN'));
    expect((await create('ann', '???')).slug).toBe('group');
    // Per workspace, and standalone ones for themselves.
    expect((await create('owner', 'X', 'ws', 'twice')).slug).toBe('twice');
    expect((await create('elsewhere', 'X', 'other', 'twice')).slug).toBe('twice');
    await expect(create('admin', 'X', 'ws', 'twice')).rejects.toMatchObject(refused('SLUG_TAKEN'));
    await expect(create('ann', 'X', '', 'Not A Slug')).rejects.toMatchObject({
      reason: 'FIELD_INVALID',
      metadata: { field: 'slug' },
    });
  });

  test('slugs are unique when thirty are made at once, by two instances', async () => {
    const second = await createTestServices(database);
    const made = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        (i % 2 === 0 ? services : second).groups.create(
          { ...by('ann'), displayName: 'Race', slug: '', workspaceId: '' },
          metaOf('ann'),
        ),
      ),
    );
    await second.close();
    const slugs = made.map((one) => one.slug);
    expect(new Set(slugs).size).toBe(30);
    expect(new Set(slugs)).toEqual(
      new Set(Array.from({ length: 30 }, (_, i) => (i === 0 ? 'race' : `race-${i + 1}`))),
    );
    const explicit = await Promise.allSettled(
      Array.from({ length: 10 }, () => create('ann', 'X', '', 'only-one')),
    );
    expect(explicit.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('in a workspace it takes an active admin of it', async () => {
    for (const who of ['owner', 'admin']) {
      expect((await create(who, 'Staff', 'ws')).workspaceId).toBe('ws');
    }
    for (const who of ['member', 'guest', 'suspended', 'invited', 'elsewhere', STRANGER]) {
      await expect(create(who, 'Staff', 'ws')).rejects.toMatchObject(refused('ACTION_FORBIDDEN'));
    }
    await expect(create('owner', 'X', 'nowhere')).rejects.toMatchObject(
      refused('WORKSPACE_UNKNOWN'),
    );
    await expect(
      services.groups.create(
        { ...by('owner'), tenantId: 'foreign', displayName: 'X', slug: '', workspaceId: 'ws' },
        metaOf('owner'),
      ),
    ).rejects.toMatchObject(refused('WORKSPACE_UNKNOWN'));
  });
});

describe('who may read and manage', () => {
  let standalone: Group;
  let owned: Group;
  let outer: Group;

  beforeAll(async () => {
    standalone = await create('carl', 'Standalone');
    owned = await create('leaver', 'Owned', 'ws');
    outer = await create('carl', 'Outer');
    await database.pool.query(
      `update membership set role = 3 where workspace_id = 'ws' and user_id = 'leaver'`,
    );
    await add('carl', standalone.id, user('direct'));
    await add('owner', owned.id, user('direct'));
    await add('carl', outer.id, group(standalone.id));
    // Round the corner and back: the look-up ends.
    await add('carl', standalone.id, group(outer.id));
  });

  test('standalone: its creator manages, its members read', async () => {
    for (const who of ['carl', 'direct']) {
      expect((await get(who, standalone.id)).id).toBe(standalone.id);
    }
    for (const who of ['owner', 'admin', STRANGER]) {
      await expect(get(who, standalone.id)).rejects.toMatchObject(refused('ACTION_FORBIDDEN'));
    }
    await expect(add('direct', standalone.id, user('x'))).rejects.toMatchObject(
      refused('ACTION_FORBIDDEN'),
    );
  });

  test('members through a group are members', async () => {
    expect((await get('direct', outer.id)).id).toBe(outer.id);
  });

  test('owned: admins and the creator manage, every active member reads', async () => {
    for (const who of ['owner', 'admin', 'leaver', 'member', 'guest', 'direct']) {
      expect((await get(who, owned.id)).id).toBe(owned.id);
    }
    for (const who of ['suspended', 'invited', 'elsewhere', STRANGER]) {
      await expect(get(who, owned.id)).rejects.toMatchObject(refused('ACTION_FORBIDDEN'));
    }
    for (const who of ['owner', 'admin', 'leaver']) await add(who, owned.id, user(`by-${who}`));
    for (const who of ['member', 'guest', 'suspended', 'invited', 'direct', STRANGER]) {
      await expect(add(who, owned.id, user('x'))).rejects.toMatchObject(
        refused('ACTION_FORBIDDEN'),
      );
      await expect(remove(who, owned.id)).rejects.toMatchObject(refused('ACTION_FORBIDDEN'));
    }
  });

  test('its creator manages it only while an active member of the workspace', async () => {
    const status = (value: number): Promise<unknown> =>
      database.pool.query(
        `update membership set status = ${value} where workspace_id = 'ws' and user_id = 'leaver'`,
      );
    await status(3);
    await expect(get('leaver', owned.id)).rejects.toMatchObject(refused('ACTION_FORBIDDEN'));
    await expect(add('leaver', owned.id, user('x'))).rejects.toMatchObject(
      refused('ACTION_FORBIDDEN'),
    );
    await status(1);
    await add('leaver', owned.id, user('x'));
  });

  test('unknown groups, and those of another tenant, are not found', async () => {
    await expect(get('carl', 'nothing')).rejects.toMatchObject(refused('GROUP_UNKNOWN'));
    await expect(
      services.groups.get({ ...by('carl'), tenantId: '', groupId: standalone.id }),
    ).rejects.toMatchObject(refused('GROUP_UNKNOWN'));
    await expect(remove('carl', 'nothing')).rejects.toMatchObject(refused('GROUP_UNKNOWN'));
  });

  test('expired and conditional membership does not open a group', async () => {
    const tuple = {
      projectId: '',
      tenantId: '',
      namespace: 'group',
      objectId: standalone.id,
      relation: 'member',
    };
    await services.tuples.write({
      projectId: '',
      tenantId: 't',
      meta: metaOf('raw'),
      updates: [
        {
          op: 1,
          tuple: {
            ...tuple,
            subject: { kind: user('expired') as { case: 'userId'; value: string } },
            expiresAt: { seconds: 1n, nanos: 0 },
          },
        },
        {
          op: 1,
          tuple: {
            ...tuple,
            subject: { kind: user('conditional') as { case: 'userId'; value: string } },
            conditionName: 'consent_granted',
          },
        },
      ],
    });
    for (const who of ['expired', 'conditional']) {
      await expect(get(who, standalone.id)).rejects.toMatchObject(refused('ACTION_FORBIDDEN'));
    }
  });

  test('lists show what may be read, in order of creation', async () => {
    const names = async (who: string, workspaceId = ''): Promise<readonly string[]> =>
      (await list(who, workspaceId)).map((one) => one.displayName);
    expect(await names('carl')).toEqual(['Standalone', 'Outer']);
    expect(await names('direct')).toEqual(['Standalone', 'Owned', 'Outer']);
    expect(await names('guest')).toEqual(await names('guest', 'ws'));
    expect(await names('guest')).toContain('Owned');
    expect(await names(STRANGER)).toEqual([]);
    expect(await names('suspended')).toEqual([]);
    for (const who of ['direct', 'suspended', 'invited', STRANGER]) {
      await expect(names(who, 'ws')).rejects.toMatchObject(refused('ACTION_FORBIDDEN'));
    }
    await expect(names('owner', 'nowhere')).rejects.toMatchObject(refused('WORKSPACE_UNKNOWN'));
    const listed = await list('owner', 'ws');
    expect(listed.map((one) => one.id)).toEqual(listed.map((one) => one.id).toSorted());
  });
});

describe('deleting a group (E3)', () => {
  test('leaves no tuple that names it and no enrollment of it elsewhere', async () => {
    const doomed = await create('dora', 'Doomed');
    const parent = await create('dora', 'Parent');
    await add('dora', doomed.id, user('x'));
    await add('dora', parent.id, group(doomed.id));
    await services.groupMembers.setState(
      { ...by('dora'), groupId: parent.id, member: { member: group(doomed.id) }, state: 1 },
      metaOf('dora'),
    );
    await services.groupMembers.setState(
      { ...by('dora'), groupId: doomed.id, member: { member: user('y') }, state: 3 },
      metaOf('dora'),
    );
    const set = { namespace: 'group', objectId: doomed.id };
    const tuple = {
      projectId: '',
      tenantId: '',
      namespace: 'doc',
      objectId: 'd',
      relation: 'viewer',
    };
    await services.tuples.write({
      projectId: '',
      tenantId: 't',
      meta: metaOf('raw'),
      updates: ['member', '', 'other'].map((relation) => ({
        op: 1,
        tuple: { ...tuple, subject: { kind: { case: 'set', value: { ...set, relation } } } },
      })),
    });
    expect(await tuplesNaming(doomed.id)).toBe(5);
    services.audited.length = 0;
    await remove('dora', doomed.id);
    expect(await tuplesNaming(doomed.id)).toBe(0);
    expect(await tuplesNaming(parent.id)).toBe(0);
    expect(services.audited).toHaveLength(1);
    expect(services.audited[0]).toMatchObject({
      rpc: 'DeleteGroup',
      actingUserId: 'dora',
      requestId: 'r1',
      tenantId: 't',
    });
    expect(services.committed.at(-1)?.revision).toBe(services.audited[0]?.revision);
    const left = await database.pool.query(
      'select 1 from enrollment where group_id = $1 or member_id = $1',
      [doomed.id],
    );
    expect(left.rowCount).toBe(0);
    await expect(remove('dora', doomed.id)).rejects.toMatchObject(refused('GROUP_UNKNOWN'));
    expect((await get('dora', parent.id)).id).toBe(parent.id);
  });

  test('racing with additions leaves nothing, whoever is first', async () => {
    for (let round = 0; round < 5; round++) {
      const doomed = await create('dora', 'Race');
      const outcomes = await Promise.allSettled([
        ...Array.from({ length: 4 }, (_, i) => add('dora', doomed.id, user(`u${i}`))),
        remove('dora', doomed.id),
        ...Array.from({ length: 4 }, (_, i) => add('dora', doomed.id, user(`v${i}`))),
      ]);
      expect(outcomes[4]?.status).toBe('fulfilled');
      expect(await tuplesNaming(doomed.id)).toBe(0);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') {
          expect(outcome.reason).toMatchObject(refused('GROUP_UNKNOWN'));
        }
      }
    }
  });
});

test('settings of the project bind: suspension, region', async () => {
  await services.projects.create(
    { id: 'bound', name: 'b', modelJson: '', dataRegion: '', maxCheckReads: 0 },
    'r',
  );
  const scope = { ...by('ann'), projectId: 'bound' };
  const request = { ...scope, displayName: 'X', slug: '', workspaceId: '' };
  const made = await services.groups.create(request, metaOf('ann'));
  const member = { member: user('x') };
  const calls = (): Promise<unknown>[] => [
    services.groups.create(request, metaOf('ann')),
    services.groups.get({ ...scope, groupId: made.id }),
    services.groups.delete({ ...scope, groupId: made.id }, metaOf('ann')),
    services.groups.list({ ...scope, workspaceId: '' }).next(),
    services.groupMembers.add({ ...scope, groupId: made.id, member }, metaOf('ann')),
    services.groupMembers.remove({ ...scope, groupId: made.id, member }, metaOf('ann')),
    services.groupMembers.setState({ ...scope, groupId: made.id, member, state: 1 }, metaOf('ann')),
    services.groupMembers.listMembers({ ...scope, groupId: made.id }).next(),
    services.groupMembers.listEnrollments({ ...scope, groupId: made.id }).next(),
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
  expect(services.regionRefusals.count - before).toBe(9);
  await services.projects.update({ ...update, clearDataRegion: true }, 'r');
  expect((await services.groups.get({ ...scope, groupId: made.id })).id).toBe(made.id);
  await expect(
    services.groups.get({ ...scope, projectId: 'unknown', groupId: made.id }),
  ).rejects.toMatchObject(refused('PROJECT_UNKNOWN'));
});
