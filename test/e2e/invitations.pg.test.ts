import { describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { Tenant } from '../support/management.ts';

/** Hours: invitations of the second instance live for a tenth of a second. */
const SHORT_TTL = '0.00003';

const { database, instance } = await instanceForFile();
const { instance: shortLived } = await instanceForFile({ GATEWAY_INVITATION_TTL_HOURS: SHORT_TTL });
let tenants = 0;

const fresh = (): Tenant => new Tenant(instance, `t${++tenants}`);

type Invitation = {
  id: string;
  token: string;
  status: string;
  expires_at: string;
  created_at: string;
};
const invite = async (
  tenant: Tenant,
  workspace_id: string,
  role = 'ROLE_MEMBER',
): Promise<Invitation> => {
  const body = { workspace_id, email: 'zoe@mail.example', role };
  return (await tenant.do('olga', 'CreateInvitation', body))['invitation'] as Invitation;
};
const statuses = async (tenant: Tenant, workspace_id: string): Promise<string[]> => {
  const { invitations } = await tenant.do('olga', 'ListInvitations', { workspace_id });
  return (invitations as Invitation[]).map(({ status }) => status);
};

describe('an invitation', () => {
  test('V3: is answered with its token once; the token is stored nowhere', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const invitation = await invite(tenant, workspace_id, 'ROLE_ADMIN');
    expect(invitation).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      workspace_id,
      email: 'zoe@mail.example',
      role: 'ROLE_ADMIN',
      status: 'INVITATION_STATUS_PENDING',
      invited_by_user_id: 'olga',
      created_at: expect.any(String) as string,
      expires_at: expect.any(String) as string,
      token: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/) as string,
      tenant_id: tenant.scope.tenant_id,
    });
    const lifeMs = Date.parse(invitation.expires_at) - Date.parse(invitation.created_at);
    expect(lifeMs).toBe(7 * 24 * 3_600_000);
    const { token, ...listed } = invitation;
    expect(await tenant.do('olga', 'ListInvitations', { workspace_id })).toEqual({
      invitations: [listed],
    });
    const { rows } = await database.pool.query<{ row: string }>(
      'select i::text as row from invitation i where tenant_id = $1',
      [tenant.scope.tenant_id],
    );
    expect(rows).toHaveLength(1);
    expect(rows[0]?.row).not.toContain(token);
    expect(rows[0]?.row).not.toContain(Buffer.from(token).toString('hex'));
    expect(rows[0]?.row).not.toContain(Buffer.from(token, 'base64url').toString('hex'));
  });

  test('is accepted once, with its role; Check sees it', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const { token } = await invite(tenant, workspace_id);
    expect(await tenant.holds('zoe', workspace_id, 'member')).toBe(false);
    const { membership } = await tenant.do('zoe', 'AcceptInvitation', { token });
    expect(membership).toMatchObject({
      workspace_id,
      user_id: 'zoe',
      role: 'ROLE_MEMBER',
      status: 'MEMBERSHIP_STATUS_ACTIVE',
    });
    expect(await tenant.holds('zoe', workspace_id, 'member')).toBe(true);
    expect(await tenant.holds('zoe', workspace_id, 'admin')).toBe(false);
    const again = 'failed_precondition INVITATION_STATE';
    expect(await tenant.refusal('zoe', 'AcceptInvitation', { token })).toBe(again);
    expect(await tenant.refusal('other', 'AcceptInvitation', { token })).toBe(again);
    expect(await statuses(tenant, workspace_id)).toEqual(['INVITATION_STATUS_ACCEPTED']);
  });

  test('V1: accepted by 20 at once makes one member', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const { token } = await invite(tenant, workspace_id);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        tenant.refusal(`user${i}`, 'AcceptInvitation', { token }),
      ),
    );
    expect(answers.filter((answer) => answer === 'ok')).toHaveLength(1);
    expect(answers.filter((answer) => answer !== 'ok')).toEqual(
      Array.from({ length: 19 }, () => 'failed_precondition INVITATION_STATE'),
    );
    const { members } = await tenant.do('olga', 'ListMembers', { workspace_id });
    expect(members).toHaveLength(2);
    expect(await tenant.tuples()).toHaveLength(2);
  });

  test('V4: stays pending when a member accepts it', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const { token } = await invite(tenant, workspace_id);
    expect(await tenant.refusal('olga', 'AcceptInvitation', { token })).toBe(
      'already_exists ALREADY_MEMBER',
    );
    await tenant.do('olga', 'AddMember', { workspace_id, user_id: 'zoe', role: 'ROLE_GUEST' });
    await tenant.do('olga', 'SuspendMember', { workspace_id, user_id: 'zoe' });
    expect(await tenant.refusal('zoe', 'AcceptInvitation', { token })).toBe(
      'already_exists ALREADY_MEMBER',
    );
    expect(await statuses(tenant, workspace_id)).toEqual(['INVITATION_STATUS_PENDING']);
    await tenant.do('yan', 'AcceptInvitation', { token });
  });

  test('V2: revoked is not accepted; revoking again is no error; an accepted one stays', async () => {
    const tenant = fresh();
    const workspace_id = await tenant.team('olga');
    const { id: invitation_id, token } = await invite(tenant, workspace_id);
    for (const _ of [1, 2])
      expect(await tenant.do('olga', 'RevokeInvitation', { invitation_id })).toEqual({});
    const refused = 'failed_precondition INVITATION_STATE';
    expect(await tenant.refusal('zoe', 'AcceptInvitation', { token })).toBe(refused);
    expect(await tenant.refusal('olga', 'AcceptInvitation', { token })).toBe(refused);
    const second = await invite(tenant, workspace_id);
    await tenant.do('zoe', 'AcceptInvitation', { token: second.token });
    expect(await tenant.refusal('olga', 'RevokeInvitation', { invitation_id: second.id })).toBe(
      refused,
    );
    expect(await statuses(tenant, workspace_id)).toEqual([
      'INVITATION_STATUS_REVOKED',
      'INVITATION_STATUS_ACCEPTED',
    ]);
    const unknown = { invitation_id: 'none' };
    expect(await tenant.refusal('olga', 'RevokeInvitation', unknown)).toBe(
      'not_found INVITATION_UNKNOWN',
    );
    expect(await tenant.refusal('olga', 'AcceptInvitation', { token: 'none' })).toBe(
      'not_found INVITATION_UNKNOWN',
    );
    const far = new Tenant(instance, 'elsewhere');
    expect(await far.refusal('yan', 'AcceptInvitation', { token })).toBe(
      'not_found INVITATION_UNKNOWN',
    );
  });

  test('V2: expires after the configured time, and can then be revoked', async () => {
    const tenant = new Tenant(shortLived, `t${++tenants}`);
    const workspace_id = await tenant.team('olga');
    const { id: invitation_id, token } = await invite(tenant, workspace_id);
    await expect.poll(() => statuses(tenant, workspace_id)).toEqual(['INVITATION_STATUS_EXPIRED']);
    expect(await tenant.refusal('zoe', 'AcceptInvitation', { token })).toBe(
      'failed_precondition INVITATION_STATE',
    );
    expect(await tenant.refusal('olga', 'AcceptInvitation', { token })).toBe(
      'failed_precondition INVITATION_STATE',
    );
    await tenant.do('olga', 'RevokeInvitation', { invitation_id });
    expect(await statuses(tenant, workspace_id)).toEqual(['INVITATION_STATUS_REVOKED']);
  });
});

describe('the project', () => {
  test('J2: suspended refuses every method; active again it answers', async () => {
    const id = 'frozen';
    const tenant = new Tenant(instance, '', id);
    await tenant.call('', 'AdminService/CreateProject', adminBody({ id, name: id }));
    const workspace_id = await tenant.team('olga');
    const { token, id: invitation_id } = await invite(tenant, workspace_id);
    const calls: readonly (readonly [string, Record<string, unknown>])[] = [
      ['CreateWorkspace', { display_name: 'x' }],
      ['GetWorkspace', { workspace_id }],
      ['ListWorkspaces', {}],
      ['UpdateWorkspace', { workspace_id, display_name: 'x' }],
      ['TransferOwnership', { workspace_id, new_owner_user_id: 'x' }],
      ['DeleteWorkspace', { workspace_id }],
      ['AddMember', { workspace_id, user_id: 'x', role: 'ROLE_GUEST' }],
      ['UpdateMemberRole', { workspace_id, user_id: 'x', role: 'ROLE_GUEST' }],
      ['RemoveMember', { workspace_id, user_id: 'x' }],
      ['SuspendMember', { workspace_id, user_id: 'x' }],
      ['ReinstateMember', { workspace_id, user_id: 'x' }],
      ['ListMembers', { workspace_id }],
      ['CreateInvitation', { workspace_id, email: 'a@b', role: 'ROLE_GUEST' }],
      ['AcceptInvitation', { token }],
      ['ListInvitations', { workspace_id }],
      ['RevokeInvitation', { invitation_id }],
    ];
    const set = async (change: Record<string, unknown>): Promise<void> => {
      const { status } = await tenant.call(
        '',
        'AdminService/UpdateProject',
        adminBody({ id, ...change }),
      );
      expect(status).toBe(200);
    };
    await set({ status: 'PROJECT_STATUS_SUSPENDED' });
    for (const [method, body] of calls) {
      expect([method, await tenant.refusal('olga', method, body)]).toEqual([
        method,
        'failed_precondition PROJECT_SUSPENDED',
      ]);
    }
    await set({ status: 'PROJECT_STATUS_ACTIVE' });
    await tenant.do('olga', 'GetWorkspace', { workspace_id });
    const before = await refusedCount();
    await set({ data_region: 'moon' });
    for (const [method, body] of calls) {
      expect([method, await tenant.refusal('olga', method, body)]).toEqual([
        method,
        'failed_precondition REGION_REFUSED',
      ]);
    }
    expect((await refusedCount()) - before).toBe(calls.length);
    await set({ clear_data_region: true });
    await tenant.do('zoe', 'AcceptInvitation', { token });
    const nowhere = new Tenant(instance, '', 'nowhere');
    expect(await nowhere.refusal('olga', 'ListWorkspaces')).toBe('not_found PROJECT_UNKNOWN');
  });
});

/** Without the scope that other services have. */
function adminBody(fields: Record<string, unknown>): Record<string, unknown> {
  return { project_id: undefined, tenant_id: undefined, ...fields };
}

async function refusedCount(): Promise<number> {
  const text = await instance.renderMetrics();
  return Number(/^authz_region_refused_total(?:\{[^}]*\})? (\d+)/m.exec(text)?.[1] ?? 0);
}
