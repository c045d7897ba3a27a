import { describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { type Body, Tenant, reasonOf } from '../support/management.ts';
import { call } from '../support/service.ts';

/* Groups and enrollments through HTTP, with the decisions that follow from them. */
const { instance } = await instanceForFile();
let tenants = 0;

const fresh = (): Tenant => new Tenant(instance, `t${++tenants}`);
/** The same tenant, by the gateway without the hot path. */
const elsewhere = (tenant: Tenant): Tenant =>
  new Tenant({ ...instance, baseUrl: instance.generalUrl }, tenant.scope.tenant_id);

async function group(
  tenant: Tenant,
  user: string,
  method: string,
  body: Body = {},
): Promise<Record<string, unknown>> {
  const answer = await tenant.call(user, `GroupService/${method}`, body);
  expect([answer.status, answer.body], method).toEqual([200, answer.body]);
  return answer.body;
}
async function refusal(tenant: Tenant, user: string, method: string, body: Body): Promise<string> {
  const { status, body: error } = await tenant.call(user, `GroupService/${method}`, body);
  return status === 200 ? 'ok' : `${status} ${String(error['code'])} ${reasonOf(error)}`;
}
async function create(tenant: Tenant, user: string, body: Body = {}): Promise<string> {
  const made = await group(tenant, user, 'CreateGroup', { display_name: 'Readers', ...body });
  return (made['group'] as { id: string }).id;
}
async function isMember(tenant: Tenant, groupId: string, user: string): Promise<boolean> {
  const { status, body } = await tenant.call('', 'AuthzService/Check', {
    namespace: 'group',
    object_id: groupId,
    relation: 'member',
    subject_user_id: user,
  });
  expect(status).toBe(200);
  return body['allowed'] as boolean;
}

describe('answers', () => {
  test('a group is answered with every field', async () => {
    const tenant = fresh();
    const workspaceId = await tenant.team('ann');
    const { group: made } = await group(tenant, 'ann', 'CreateGroup', {
      display_name: ' Readers ',
      workspace_id: workspaceId,
    });
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      project_id: 'default',
      workspace_id: workspaceId,
      slug: 'readers',
      display_name: 'Readers',
      created_by_user_id: 'ann',
      created_at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      tenant_id: tenant.scope.tenant_id,
    });
    const { id } = made as { id: string };
    expect(await group(tenant, 'ann', 'GetGroup', { group_id: id })).toEqual({ group: made });
    expect(await group(tenant, 'ann', 'ListGroups')).toEqual({ groups: [made] });
    expect(await group(tenant, 'ann', 'ListGroups', { workspace_id: workspaceId })).toEqual({
      groups: [made],
    });
    expect(await group(tenant, 'ann', 'ListGroupMembers', { group_id: id })).toEqual({
      members: [],
    });
    expect(await group(tenant, 'ann', 'ListEnrollments', { group_id: id })).toEqual({
      enrollments: [],
    });
    const one = { group_id: id, member: { user_id: 'bob' } };
    expect(await group(tenant, 'ann', 'AddGroupMember', one)).toEqual({});
    expect(await group(tenant, 'ann', 'RemoveGroupMember', one)).toEqual({});
    expect(await group(tenant, 'ann', 'DeleteGroup', { group_id: id })).toEqual({});
  });

  test('an enrollment is answered with its member and times', async () => {
    const tenant = fresh();
    const id = await create(tenant, 'ann');
    const inner = await create(tenant, 'ann');
    const { enrollment } = await group(tenant, 'ann', 'SetEnrollmentState', {
      group_id: id,
      member: { group_id: inner },
      state: 'ENROLLMENT_STATE_ENROLLED',
    });
    expect(enrollment).toEqual({
      group_id: id,
      member: { group_id: inner },
      state: 'ENROLLMENT_STATE_ENROLLED',
      created_at: expect.stringMatching(/Z$/) as string,
      updated_at: expect.stringMatching(/Z$/) as string,
    });
    expect(await group(tenant, 'ann', 'ListEnrollments', { group_id: id })).toEqual({
      enrollments: [enrollment],
    });
    expect(await group(tenant, 'ann', 'ListGroupMembers', { group_id: id })).toEqual({
      members: [{ group_id: inner }],
    });
  });

  test('refusals have their codes', async () => {
    const tenant = fresh();
    const id = await create(tenant, 'ann', { slug: 'mine' });
    const member = { user_id: 'bob' };
    const refused = (user: string, method: string, body: Body): Promise<string> =>
      refusal(tenant, user, method, { group_id: id, ...body });
    expect(await refused('eve', 'GetGroup', {})).toBe('403 permission_denied ACTION_FORBIDDEN');
    expect(await refused('eve', 'AddGroupMember', { member })).toBe(
      '403 permission_denied ACTION_FORBIDDEN',
    );
    expect(await refused('ann', 'GetGroup', { group_id: 'x' })).toBe('404 not_found GROUP_UNKNOWN');
    expect(await refused('ann', 'RemoveGroupMember', { member })).toBe(
      '404 not_found MEMBER_UNKNOWN',
    );
    expect(await refused('ann', 'AddGroupMember', { member: { group_id: id } })).toBe(
      '400 invalid_argument FIELD_INVALID',
    );
    expect(await refused('ann', 'AddGroupMember', { member: { group_id: 'x' } })).toBe(
      '404 not_found GROUP_UNKNOWN',
    );
    const named = { display_name: 'X', slug: 'mine' };
    expect(await refusal(tenant, 'ann', 'CreateGroup', named)).toBe(
      '409 already_exists SLUG_TAKEN',
    );
    const nowhere = { display_name: 'X', workspace_id: 'nowhere' };
    expect(await refusal(tenant, 'ann', 'CreateGroup', nowhere)).toBe(
      '404 not_found WORKSPACE_UNKNOWN',
    );
  });
});

describe('decisions', () => {
  test('every state is seen at once, on the hot path and the general one', async () => {
    const tenant = fresh();
    const id = await create(tenant, 'ann');
    const states = ['WAITLISTED', 'ENROLLED', 'ACTIVE', 'COMPLETED', 'ACTIVE', 'DROPPED'];
    for (const state of states) {
      await group(tenant, 'ann', 'SetEnrollmentState', {
        group_id: id,
        member: { user_id: 'bob' },
        state: `ENROLLMENT_STATE_${state}`,
      });
      const expected = state === 'ENROLLED' || state === 'ACTIVE';
      expect(await isMember(tenant, id, 'bob'), state).toBe(expected);
      expect(await isMember(elsewhere(tenant), id, 'bob'), state).toBe(expected);
    }
    const body = { group_id: id, member: { user_id: 'bob' } };
    await group(elsewhere(tenant), 'ann', 'AddGroupMember', body);
    expect(await isMember(tenant, id, 'bob')).toBe(true);
    await group(tenant, 'ann', 'RemoveGroupMember', body);
    expect(await isMember(elsewhere(tenant), id, 'bob')).toBe(false);
  });

  test('groups in a circle, referenced from workspaces and resources, until they are deleted', async () => {
    const tenant = fresh();
    const workspaceId = await tenant.team('ann');
    const [inner, outer] = [await create(tenant, 'ann'), await create(tenant, 'ann')];
    await group(tenant, 'ann', 'AddGroupMember', { group_id: inner, member: { user_id: 'bob' } });
    await group(tenant, 'ann', 'AddGroupMember', { group_id: outer, member: { group_id: inner } });
    await group(tenant, 'ann', 'AddGroupMember', { group_id: inner, member: { group_id: outer } });
    await tenant.write(
      `workspace:${workspaceId}#member@group:${outer}#member`,
      `resource:plan#viewer@group:${outer}#member`,
    );
    expect(await isMember(tenant, outer, 'bob')).toBe(true);
    expect(await isMember(tenant, outer, 'eve')).toBe(false);
    expect(await tenant.holds('bob', workspaceId, 'guest')).toBe(true);
    await group(tenant, 'ann', 'DeleteGroup', { group_id: outer });
    expect(await tenant.holds('bob', workspaceId, 'guest')).toBe(false);
    expect(await isMember(elsewhere(tenant), outer, 'bob')).toBe(false);
    expect(await tenant.tuples({ namespace: 'group' })).toEqual([`group:${inner}#member@bob`]);
    expect(await tenant.tuples({ namespace: 'resource' })).toEqual([]);
  });

  test('deleting a workspace deletes its groups with all that names them', async () => {
    const tenant = fresh();
    const workspaceId = await tenant.team('ann');
    const id = await create(tenant, 'ann', { workspace_id: workspaceId });
    const outside = await create(tenant, 'ann');
    await group(tenant, 'ann', 'AddGroupMember', { group_id: id, member: { user_id: 'bob' } });
    await group(tenant, 'ann', 'SetEnrollmentState', {
      group_id: outside,
      member: { group_id: id },
      state: 'ENROLLMENT_STATE_ACTIVE',
    });
    await tenant.do('ann', 'DeleteWorkspace', { workspace_id: workspaceId });
    expect(await tenant.tuples()).toEqual([]);
    expect(await refusal(tenant, 'ann', 'GetGroup', { group_id: id })).toMatch(/^404/);
    expect(await group(tenant, 'ann', 'ListEnrollments', { group_id: outside })).toEqual({
      enrollments: [],
    });
  });

  test('a member who is suspended loses what the workspace gave it over a group', async () => {
    const tenant = fresh();
    const workspaceId = await tenant.team('ann');
    const member = { workspace_id: workspaceId, user_id: 'adm', role: 'ROLE_ADMIN' };
    await tenant.do('ann', 'AddMember', member);
    const id = await create(tenant, 'adm', { workspace_id: workspaceId });
    const { role: _role, ...who } = member;
    await tenant.do('ann', 'SuspendMember', who);
    expect(await refusal(tenant, 'adm', 'GetGroup', { group_id: id })).toMatch(/^403/);
    expect(await group(tenant, 'adm', 'ListGroups')).toEqual({ groups: [] });
    await tenant.do('ann', 'ReinstateMember', who);
    expect(await refusal(tenant, 'adm', 'GetGroup', { group_id: id })).toBe('ok');
  });

  test('what a list has shown, a decision knows', async () => {
    const tenant = fresh();
    const id = await create(tenant, 'ann');
    await isMember(elsewhere(tenant), id, 'u0');
    for (let i = 0; i < 20; i++) {
      const add = group(tenant, 'ann', 'AddGroupMember', {
        group_id: id,
        member: { user_id: `u${i}` },
      });
      const { members } = await group(elsewhere(tenant), 'ann', 'ListGroupMembers', {
        group_id: id,
      });
      for (const { user_id: userId } of members as { user_id: string }[]) {
        expect(await isMember(elsewhere(tenant), id, userId)).toBe(true);
      }
      await add;
    }
  });
});

test('suspension of the project binds at once, and a region is counted', async () => {
  const tenant = new Tenant(instance, '', 'bound');
  await call(instance, 'AdminService/CreateProject', { id: 'bound', name: 'Bound' });
  const id = await create(tenant, 'ann');
  const body = { group_id: id };
  await call(instance, 'AdminService/UpdateProject', {
    id: 'bound',
    status: 'PROJECT_STATUS_SUSPENDED',
  });
  expect(await refusal(tenant, 'ann', 'GetGroup', body)).toBe(
    '412 failed_precondition PROJECT_SUSPENDED',
  );
  await call(instance, 'AdminService/UpdateProject', {
    id: 'bound',
    status: 'PROJECT_STATUS_ACTIVE',
    data_region: 'mars',
  });
  const count = async (): Promise<number> =>
    Number(
      /^authz_region_refused_total(?:\{[^}]*\})? (\d+)/m.exec(await instance.renderMetrics())?.[1],
    );
  const before = await count();
  expect(await refusal(tenant, 'ann', 'ListGroups', {})).toBe(
    '412 failed_precondition REGION_REFUSED',
  );
  expect((await tenant.call('', 'SeatService/ListSeats', { sku: 'pro' })).status).toBe(412);
  expect((await count()) - before).toBe(2);
});
