import { describe, expect, test } from 'vitest';
import { Tenant } from '../support/management.ts';
import { newProject, sharedInstance } from '../support/shared-instance.ts';

const instance = await sharedInstance();
let tenants = 0;

/** A tenant of the test's own. */
const fresh = (): Tenant => new Tenant(instance, `t${++tenants}`);

type Workspace = {
  id: string;
  slug: string;
  type: string;
  display_name: string;
  owner_user_id: string;
};
const listOf = async (tenant: Tenant, user: string): Promise<Workspace[]> =>
  (await tenant.do(user, 'ListWorkspaces'))['workspaces'] as Workspace[];
const slugOf = async (tenant: Tenant, displayName: string, slug = ''): Promise<string> => {
  const body = { display_name: displayName, slug };
  return ((await tenant.do('olga', 'CreateWorkspace', body))['workspace'] as Workspace).slug;
};

describe('a workspace', () => {
  test('is created with its owner as a member, and every field is answered', async () => {
    const tenant = fresh();
    const { workspace } = await tenant.do('olga', 'CreateWorkspace', {
      display_name: '  Ünïcode Straße 7 ',
    });
    expect(workspace).toEqual({
      id: expect.stringMatching(
        /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ) as string,
      project_id: instance.projectId,
      tenant_id: tenant.scope.tenant_id,
      slug: 'unicode-strasse-7',
      display_name: 'Ünïcode Straße 7',
      type: 'WORKSPACE_TYPE_TEAM',
      owner_user_id: 'olga',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      updated_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
    });
    const { id } = workspace as Workspace;
    expect(await tenant.do('olga', 'GetWorkspace', { workspace_id: id })).toEqual({ workspace });
    expect((await tenant.do('olga', 'ListMembers', { workspace_id: id }))['members']).toEqual([
      {
        workspace_id: id,
        user_id: 'olga',
        role: 'ROLE_OWNER',
        status: 'MEMBERSHIP_STATUS_ACTIVE',
        created_at: expect.any(String) as string,
        updated_at: expect.any(String) as string,
        tenant_id: tenant.scope.tenant_id,
      },
    ]);
    expect(await tenant.tuples()).toEqual([`workspace:${id}#owner@olga`]);
    for (const relation of ['owner', 'admin', 'member', 'guest']) {
      expect(await tenant.holds('olga', id, relation)).toBe(true);
      expect(await tenant.holds('eve', id, relation)).toBe(false);
    }
  });

  test('has a slug: derived, numbered when taken, its own of each tenant', async () => {
    const tenant = fresh();
    expect(await slugOf(tenant, 'My Team')).toBe('my-team');
    expect(await slugOf(tenant, 'my  team!')).toBe('my-team-2');
    expect(await slugOf(tenant, 'MY TEAM')).toBe('my-team-3');
    expect(await slugOf(tenant, '日本')).toBe('team');
    expect(await slugOf(tenant, 'Named', 'a-b-c')).toBe('a-b-c');
    expect(await slugOf(fresh(), 'My Team')).toBe('my-team');
    const long = await slugOf(tenant, 'x'.repeat(200));
    expect(long).toBe('x'.repeat(63));
    expect(await slugOf(tenant, 'x'.repeat(200))).toBe(`${'x'.repeat(61)}-2`);
    const taken = { display_name: 'n', slug: 'a-b-c' };
    expect(await tenant.refusal('p', 'CreateWorkspace', taken)).toBe('already_exists SLUG_TAKEN');
  });

  test('is renamed by an admin; the slug stays', async () => {
    const tenant = fresh();
    const id = await tenant.team('olga');
    const body = { workspace_id: id, display_name: ' New name ' };
    const { workspace } = await tenant.do('olga', 'UpdateWorkspace', body);
    expect(workspace).toMatchObject({ id, display_name: 'New name', slug: 'team' });
  });

  test('is deleted with everything that names it', async () => {
    const tenant = fresh();
    const id = await tenant.team('olga');
    const other = await tenant.team('olga', 'Other');
    await tenant.do('olga', 'AddMember', { workspace_id: id, user_id: 'ada', role: 'ROLE_ADMIN' });
    const invite = { workspace_id: id, email: 'x@y.example', role: 'ROLE_GUEST' };
    const { invitation } = await tenant.do('olga', 'CreateInvitation', invite);
    const made = await tenant.call('ada', 'GroupService/CreateGroup', {
      display_name: 'g',
      workspace_id: id,
    });
    const { id: groupId } = made.body['group'] as { id: string };
    await tenant.call('ada', 'GroupService/AddGroupMember', {
      group_id: groupId,
      member: { user_id: 'bob' },
    });
    await tenant.write(
      `workspace:${id}#member@hand`,
      `workspace:${id}#viewer@group:far#member`,
      `resource:r#parent@workspace:${id}`,
      `resource:r#viewer@workspace:${id}#member`,
      `resource:r#viewer@group:${groupId}#member`,
      `resource:r#viewer@workspace:${other}#member`,
      'resource:r#viewer@bob',
    );
    await tenant.do('olga', 'DeleteWorkspace', { workspace_id: id });
    expect(await tenant.tuples()).toEqual(
      [
        'resource:r#viewer@bob',
        `resource:r#viewer@workspace:${other}#member`,
        `workspace:${other}#owner@olga`,
      ].sort(),
    );
    expect(await tenant.holds('ada', id, 'admin')).toBe(false);
    expect(await tenant.refusal('olga', 'GetWorkspace', { workspace_id: id })).toBe(
      'not_found WORKSPACE_UNKNOWN',
    );
    const { token } = invitation as { token: string };
    expect(await tenant.refusal('zoe', 'AcceptInvitation', { token })).toBe(
      'not_found INVITATION_UNKNOWN',
    );
    expect((await listOf(tenant, 'ada')).map((workspace) => workspace.type)).toEqual([
      'WORKSPACE_TYPE_PERSONAL',
    ]);
  });
});

describe('the personal workspace', () => {
  test('M5: is made by the first list, once, and has its rules', async () => {
    const tenant = fresh();
    const lists = await Promise.all(
      Array.from({ length: 50 }, () => listOf(tenant, 'anne.b@mail.example')),
    );
    const [personal] = lists[0] ?? [];
    for (const list of lists) expect(list).toEqual([personal]);
    expect(personal).toMatchObject({
      type: 'WORKSPACE_TYPE_PERSONAL',
      display_name: 'anne.b',
      slug: 'anne-b',
      owner_user_id: 'anne.b@mail.example',
    });
    const anne = 'anne.b@mail.example';
    const workspace_id = personal?.id ?? '';
    expect(await tenant.tuples()).toEqual([`workspace:${workspace_id}#owner@${anne}`]);
    const personalOnly = 'failed_precondition PERSONAL_WORKSPACE';
    const member = { workspace_id, user_id: 'bob', role: 'ROLE_GUEST' };
    const invite = { workspace_id, email: 'x@y.example', role: 'ROLE_GUEST' };
    const transfer = { workspace_id, new_owner_user_id: 'bob' };
    const self = { workspace_id, user_id: anne };
    expect(await tenant.refusal(anne, 'AddMember', member)).toBe(personalOnly);
    expect(await tenant.refusal(anne, 'CreateInvitation', invite)).toBe(personalOnly);
    expect(await tenant.refusal(anne, 'TransferOwnership', transfer)).toBe(personalOnly);
    expect(await tenant.refusal(anne, 'DeleteWorkspace', { workspace_id })).toBe(personalOnly);
    expect(await tenant.refusal(anne, 'RemoveMember', self)).toBe(
      'failed_precondition OWNER_FIXED',
    );
    expect(await tenant.refusal('bob', 'AddMember', member)).toBe(
      'permission_denied ACTION_FORBIDDEN',
    );
  });

  test('is called Personal where the user id is no address; lists are in the order of making', async () => {
    const tenant = fresh();
    const first = await tenant.team('u1', 'First');
    expect((await listOf(tenant, 'u1')).map(({ id, slug }) => [id === first, slug])).toEqual([
      [true, 'first'],
      [false, 'personal'],
    ]);
    expect((await listOf(tenant, 'u2')).map((w) => [w.display_name, w.slug])).toEqual([
      ['Personal', 'personal-2'],
    ]);
  });
});

describe('roles', () => {
  const users = ['owner', 'admin', 'member', 'guest', 'suspended', 'stranger'] as const;
  type User = (typeof users)[number];
  const FROM: Readonly<Record<User, number>> = {
    owner: 0,
    admin: 1,
    member: 2,
    guest: 3,
    suspended: 9,
    stranger: 9,
  };
  /** Method, body beside the workspace, and the lowest role that may. */
  const MATRIX: readonly (readonly [string, Record<string, unknown>, number])[] = [
    ['GetWorkspace', {}, 3],
    ['ListMembers', {}, 3],
    ['ListInvitations', {}, 1],
    ['UpdateWorkspace', { display_name: 'n' }, 1],
    ['AddMember', { user_id: 'new', role: 'ROLE_GUEST' }, 1],
    ['UpdateMemberRole', { user_id: 'target', role: 'ROLE_MEMBER' }, 1],
    ['SuspendMember', { user_id: 'target' }, 1],
    ['ReinstateMember', { user_id: 'asleep' }, 1],
    ['RemoveMember', { user_id: 'target' }, 1],
    ['CreateInvitation', { email: 'a@b', role: 'ROLE_GUEST' }, 1],
    ['RevokeInvitation', {}, 1],
    ['TransferOwnership', { new_owner_user_id: 'target' }, 0],
    ['DeleteWorkspace', {}, 0],
  ];

  test.each(MATRIX)('%s asks for its role', async (method, body, needed) => {
    const tenant = fresh();
    const make = async (): Promise<Record<string, unknown>> => {
      const workspace_id = await tenant.team('owner');
      const add = (user_id: string, role: string): Promise<unknown> =>
        tenant.do('owner', 'AddMember', { workspace_id, user_id, role });
      await add('admin', 'ROLE_ADMIN');
      await add('member', 'ROLE_MEMBER');
      await add('guest', 'ROLE_GUEST');
      await add('suspended', 'ROLE_ADMIN');
      await add('target', 'ROLE_GUEST');
      await add('asleep', 'ROLE_GUEST');
      await tenant.do('owner', 'SuspendMember', { workspace_id, user_id: 'suspended' });
      await tenant.do('owner', 'SuspendMember', { workspace_id, user_id: 'asleep' });
      const invite = { workspace_id, email: 'a@b', role: 'ROLE_GUEST' };
      const { invitation } = await tenant.do('owner', 'CreateInvitation', invite);
      return method === 'RevokeInvitation'
        ? { invitation_id: (invitation as { id: string }).id }
        : { workspace_id, ...body };
    };
    const isRead = /^(?:Get|List)/.test(method);
    // Those who are refused come first, and leave what they asked about as it is.
    let target: Record<string, unknown> | undefined;
    for (const user of users.toReversed()) {
      target ??= await make();
      expect([user, await tenant.refusal(user, method, target)]).toEqual([
        user,
        FROM[user] <= needed ? 'ok' : 'permission_denied ACTION_FORBIDDEN',
      ]);
      if (FROM[user] <= needed && !isRead) target = undefined;
    }
  });

  test('nobody but a transfer touches the owner', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('owner');
    await tenant.do('owner', 'AddMember', { workspace_id, user_id: 'admin', role: 'ROLE_ADMIN' });
    for (const method of ['UpdateMemberRole', 'SuspendMember', 'RemoveMember']) {
      const role = method === 'UpdateMemberRole' ? { role: 'ROLE_ADMIN' } : {};
      const body = { workspace_id, user_id: 'owner', ...role };
      expect(await tenant.refusal('admin', method, body)).toBe(
        'permission_denied ACTION_FORBIDDEN',
      );
      expect(await tenant.refusal('owner', method, body)).toBe('failed_precondition OWNER_FIXED');
    }
    const reinstate = { workspace_id, user_id: 'owner' };
    expect(await tenant.refusal('admin', 'ReinstateMember', reinstate)).toBe(
      'failed_precondition MEMBERSHIP_STATE',
    );
  });

  test('what does not exist is not found, for whoever may ask', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('owner');
    for (const method of ['SuspendMember', 'ReinstateMember', 'RemoveMember']) {
      const body = { workspace_id, user_id: 'nobody' };
      expect(await tenant.refusal('owner', method, body)).toBe('not_found MEMBER_UNKNOWN');
      const elsewhere = { workspace_id: 'none', user_id: 'nobody' };
      expect(await tenant.refusal('owner', method, elsewhere)).toBe('not_found WORKSPACE_UNKNOWN');
    }
    const role = { workspace_id, user_id: 'nobody', role: 'ROLE_GUEST' };
    expect(await tenant.refusal('owner', 'UpdateMemberRole', role)).toBe(
      'not_found MEMBER_UNKNOWN',
    );
    const leave = { workspace_id, user_id: 'stranger' };
    expect(await tenant.refusal('stranger', 'RemoveMember', leave)).toBe(
      'permission_denied ACTION_FORBIDDEN',
    );
    const far = new Tenant(instance, 'elsewhere');
    expect(await far.refusal('owner', 'GetWorkspace', { workspace_id })).toBe(
      'not_found WORKSPACE_UNKNOWN',
    );
  });
});

describe('members', () => {
  test('M1: roles are tuples; a change leaves exactly the new one', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const of = { workspace_id, user_id: 'bob' };
    const { membership } = await tenant.do('olga', 'AddMember', { ...of, role: 'ROLE_MEMBER' });
    expect(membership).toMatchObject({
      role: 'ROLE_MEMBER',
      status: 'MEMBERSHIP_STATUS_ACTIVE',
      user_id: 'bob',
    });
    expect(await tenant.holds('bob', workspace_id, 'member')).toBe(true);
    expect(await tenant.holds('bob', workspace_id, 'admin')).toBe(false);
    expect(await tenant.refusal('olga', 'AddMember', { ...of, role: 'ROLE_GUEST' })).toBe(
      'already_exists ALREADY_MEMBER',
    );
    await tenant.write(
      `workspace:${workspace_id}#owner@bob`,
      `workspace:${workspace_id}#guest@bob`,
    );
    await tenant.do('olga', 'UpdateMemberRole', { ...of, role: 'ROLE_ADMIN' });
    expect(await tenant.tuples({ subject_user_id: 'bob' })).toEqual([
      `workspace:${workspace_id}#admin@bob`,
    ]);
    await tenant.write(`workspace:${workspace_id}#guest@bob`);
    await tenant.do('olga', 'RemoveMember', of);
    expect(await tenant.tuples({ subject_user_id: 'bob' })).toEqual([]);
    expect(await tenant.holds('bob', workspace_id, 'guest')).toBe(false);
  });

  test('M3, M4: suspension denies at once; reinstatement restores exactly', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const of = { workspace_id, user_id: 'bob' };
    await tenant.do('olga', 'AddMember', { ...of, role: 'ROLE_ADMIN' });
    await tenant.write(`resource:doc#parent@workspace:${workspace_id}`);
    const before = await tenant.tuples();
    const { membership } = await tenant.do('olga', 'SuspendMember', of);
    expect(membership).toMatchObject({ role: 'ROLE_ADMIN', status: 'MEMBERSHIP_STATUS_SUSPENDED' });
    expect(await tenant.holds('bob', workspace_id, 'guest')).toBe(false);
    const edit = {
      namespace: 'resource',
      object_id: 'doc',
      relation: 'editor',
      subject_user_id: 'bob',
    };
    expect((await tenant.call('', 'AuthzService/Check', edit)).body).toEqual({ allowed: false });
    expect(await tenant.refusal('olga', 'SuspendMember', of)).toBe(
      'failed_precondition MEMBERSHIP_STATE',
    );
    expect(await tenant.refusal('bob', 'GetWorkspace', { workspace_id })).toBe(
      'permission_denied ACTION_FORBIDDEN',
    );
    expect((await listOf(tenant, 'bob')).map(({ type }) => type)).toEqual([
      'WORKSPACE_TYPE_PERSONAL',
    ]);
    const { membership: back } = await tenant.do('olga', 'ReinstateMember', of);
    expect(back).toMatchObject({ role: 'ROLE_ADMIN', status: 'MEMBERSHIP_STATUS_ACTIVE' });
    expect(await tenant.tuples({ namespace: 'workspace', object_id: workspace_id })).toEqual(
      before.filter((tuple) => tuple.startsWith('workspace:')),
    );
    expect((await tenant.call('', 'AuthzService/Check', edit)).body).toEqual({ allowed: true });
    expect(await tenant.refusal('olga', 'ReinstateMember', of)).toBe(
      'failed_precondition MEMBERSHIP_STATE',
    );
  });

  test('a role changed while suspended has no tuple before reinstatement', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const of = { workspace_id, user_id: 'bob' };
    await tenant.do('olga', 'AddMember', { ...of, role: 'ROLE_ADMIN' });
    await tenant.do('olga', 'SuspendMember', of);
    const { membership } = await tenant.do('olga', 'UpdateMemberRole', {
      ...of,
      role: 'ROLE_GUEST',
    });
    expect(membership).toMatchObject({ role: 'ROLE_GUEST', status: 'MEMBERSHIP_STATUS_SUSPENDED' });
    expect(await tenant.tuples({ subject_user_id: 'bob' })).toEqual([]);
    await tenant.do('olga', 'ReinstateMember', of);
    expect(await tenant.tuples({ subject_user_id: 'bob' })).toEqual([
      `workspace:${workspace_id}#guest@bob`,
    ]);
  });

  test('a member leaves by itself, also while suspended; an admin cannot suspend itself', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    for (const [user_id, role] of [
      ['guest', 'ROLE_GUEST'],
      ['asleep', 'ROLE_ADMIN'],
      ['admin', 'ROLE_ADMIN'],
    ]) {
      await tenant.do('olga', 'AddMember', { workspace_id, user_id, role });
    }
    await tenant.do('olga', 'SuspendMember', { workspace_id, user_id: 'asleep' });
    const suspend = { workspace_id, user_id: 'admin' };
    expect(await tenant.refusal('admin', 'SuspendMember', suspend)).toBe(
      'failed_precondition MEMBERSHIP_STATE',
    );
    const guest = { workspace_id, user_id: 'guest' };
    expect(await tenant.refusal('guest', 'SuspendMember', guest)).toBe(
      'permission_denied ACTION_FORBIDDEN',
    );
    for (const user_id of ['guest', 'asleep', 'admin']) {
      await tenant.do(user_id, 'RemoveMember', { workspace_id, user_id });
    }
    expect(await tenant.tuples()).toContain(`workspace:${workspace_id}#owner@olga`);
    const { members } = await tenant.do('olga', 'ListMembers', { workspace_id });
    expect(members).toHaveLength(1);
  });

  test('M2: ownership moves; the former owner stays as an admin', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    await tenant.do('olga', 'AddMember', { workspace_id, user_id: 'bob', role: 'ROLE_GUEST' });
    const transfer = async (from: string, to: string): Promise<void> => {
      const body = { workspace_id, new_owner_user_id: to };
      const { workspace } = await tenant.do(from, 'TransferOwnership', body);
      expect(workspace).toMatchObject({ owner_user_id: to });
    };
    await transfer('olga', 'bob');
    await transfer('bob', 'new');
    expect(await tenant.tuples({ namespace: 'workspace', object_id: workspace_id })).toEqual([
      `workspace:${workspace_id}#admin@bob`,
      `workspace:${workspace_id}#admin@olga`,
      `workspace:${workspace_id}#owner@new`,
    ]);
    const to = (user: string) => ({ workspace_id, new_owner_user_id: user });
    expect(await tenant.refusal('bob', 'TransferOwnership', to('bob'))).toBe(
      'permission_denied ACTION_FORBIDDEN',
    );
    expect(await tenant.refusal('new', 'TransferOwnership', to('new'))).toBe(
      'failed_precondition OWNER_FIXED',
    );
    await tenant.do('new', 'SuspendMember', { workspace_id, user_id: 'bob' });
    expect(await tenant.refusal('new', 'TransferOwnership', to('bob'))).toBe(
      'failed_precondition MEMBERSHIP_STATE',
    );
  });
});

describe('suspension', () => {
  test('M3: no Check after its acknowledgement allows, on either path, however many are in flight', async () => {
    const tenant = fresh();
    const general = new Tenant(
      { ...instance, baseUrl: instance.generalUrl },
      tenant.scope.tenant_id,
    );
    const workspace_id = await tenant.team('olga');
    const of = { workspace_id, user_id: 'bob' };
    await tenant.do('olga', 'AddMember', { ...of, role: 'ROLE_ADMIN' });
    const ask = async (): Promise<readonly boolean[]> =>
      await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          (i % 2 === 0 ? tenant : general).holds('bob', workspace_id, 'member'),
        ),
      );
    for (let round = 0; round < 5; round++) {
      const noise = ask();
      await tenant.do('olga', 'SuspendMember', of);
      expect(new Set(await ask())).toEqual(new Set([false]));
      const moreNoise = ask();
      await tenant.do('olga', 'ReinstateMember', of);
      expect(new Set(await ask())).toEqual(new Set([true]));
      await Promise.all([noise, moreNoise]);
    }
  });
});

describe('DeprovisionUser and ExportSubjectGrants', () => {
  test('agree with what was written, across tenants', async () => {
    const project = await newProject(instance);
    const first = new Tenant(instance, 'one', project);
    const second = new Tenant(instance, 'two', project);
    const expected: string[] = [];
    const ids: string[] = [];
    for (const tenant of [first, second]) {
      const workspace_id = await tenant.team('olga');
      ids.push(workspace_id);
      await tenant.do('olga', 'AddMember', { workspace_id, user_id: 'bob', role: 'ROLE_ADMIN' });
      const asleep = await tenant.team('olga', 'Asleep');
      const of = { workspace_id: asleep, user_id: 'bob' };
      await tenant.do('olga', 'AddMember', { ...of, role: 'ROLE_MEMBER' });
      await tenant.do('olga', 'SuspendMember', of);
      const [personal] = (await listOf(tenant, 'bob')).filter(
        ({ owner_user_id: o }) => o === 'bob',
      );
      const { tenant_id: at } = tenant.scope;
      expected.push(
        `${at} workspace:${workspace_id}#admin`,
        `${at} workspace:${personal?.id}#owner`,
      );
    }
    const subject = { tenant_id: undefined, user_id: 'bob' };
    const grants = async (): Promise<string[]> => {
      const { body } = await first.call('', 'AuthzService/ExportSubjectGrants', subject);
      return (body['grants'] as Record<string, string>[])
        .map((g) => `${g['tenant_id']} ${g['namespace']}:${g['object_id']}#${g['relation']}`)
        .sort();
    };
    expect(await grants()).toEqual(expected.sort());
    const { body } = await first.call('', 'AuthzService/DeprovisionUser', subject);
    expect(body).toEqual({ deleted_count: '4' });
    expect(await grants()).toEqual([]);
    const [workspace_id = ''] = ids;
    // Rows stay: the next event of the membership asserts its tuple again.
    expect(await first.holds('bob', workspace_id, 'admin')).toBe(false);
    await first.do('bob', 'GetWorkspace', { workspace_id });
    await first.do('olga', 'SuspendMember', { workspace_id, user_id: 'bob' });
    await first.do('olga', 'ReinstateMember', { workspace_id, user_id: 'bob' });
    expect(await grants()).toEqual([`one workspace:${workspace_id}#admin`]);
  });
});
