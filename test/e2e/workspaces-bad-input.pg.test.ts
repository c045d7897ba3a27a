import { beforeAll, describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { type Body, Tenant, reasonOf } from '../support/management.ts';
import { call } from '../support/service.ts';
import { sampledBodies } from './sampled-bodies.ts';

/*
 * Every field of every method of WorkspaceService with what it must not hold: refused by its name,
 * never a 500, and nothing is written.
 */
const { database, instance } = await instanceForFile();
let valid: Readonly<Record<string, Body>>;
let before: string;

beforeAll(async () => {
  const tenant = new Tenant(instance, 't');
  const workspace_id = await tenant.team('olga');
  await tenant.do('olga', 'AddMember', { workspace_id, user_id: 'bob', role: 'ROLE_GUEST' });
  const invite = { workspace_id, email: 'a@b', role: 'ROLE_GUEST' };
  const { invitation } = await tenant.do('olga', 'CreateInvitation', invite);
  const { id: invitation_id, token } = invitation as { id: string; token: string };
  const member = { workspace_id, user_id: 'bob' };
  valid = {
    CreateWorkspace: { display_name: 'New' },
    GetWorkspace: { workspace_id },
    ListWorkspaces: {},
    UpdateWorkspace: { workspace_id, display_name: 'New' },
    TransferOwnership: { workspace_id, new_owner_user_id: 'bob' },
    DeleteWorkspace: { workspace_id },
    AddMember: { workspace_id, user_id: 'new', role: 'ROLE_MEMBER' },
    UpdateMemberRole: { ...member, role: 'ROLE_MEMBER' },
    RemoveMember: member,
    SuspendMember: member,
    ReinstateMember: member,
    ListMembers: { workspace_id },
    CreateInvitation: invite,
    AcceptInvitation: { token },
    ListInvitations: { workspace_id },
    RevokeInvitation: { invitation_id },
  };
  before = await everything();
});

/** All rows that the methods write, as text. */
async function everything(): Promise<string> {
  const tables = ['workspace', 'membership', 'invitation', 'relation_tuple', 'tuple_change'];
  const texts: string[] = [];
  for (const table of tables) {
    const { rows } = await database.pool.query(`select t::text as t from ${table} t order by 1`);
    texts.push(JSON.stringify(rows));
  }
  return texts.join('\n');
}

const METHODS = [
  'CreateWorkspace',
  'GetWorkspace',
  'ListWorkspaces',
  'UpdateWorkspace',
  'TransferOwnership',
  'DeleteWorkspace',
  'AddMember',
  'UpdateMemberRole',
  'RemoveMember',
  'SuspendMember',
  'ReinstateMember',
  'ListMembers',
  'CreateInvitation',
  'AcceptInvitation',
  'ListInvitations',
  'RevokeInvitation',
] as const;
const WITHOUT_WORKSPACE: readonly string[] = [
  'CreateWorkspace',
  'ListWorkspaces',
  'AcceptInvitation',
  'RevokeInvitation',
];
const WITH_USER = [
  'AddMember',
  'UpdateMemberRole',
  'RemoveMember',
  'SuspendMember',
  'ReinstateMember',
];
const WITH_ROLE = ['AddMember', 'UpdateMemberRole', 'CreateInvitation'];

const BAD_TEXT = ['\u0000', 'a\u0000b', '\ud800', 'x\udc00y'];
const BAD_ID = [
  '',
  '#',
  'a#b',
  'a\nb',
  '\u0085',
  '\u007f',
  'x'.repeat(257),
  'é'.repeat(129),
  ...BAD_TEXT,
];
const BAD_TENANT = ['a b', 'é', '/', 'x'.repeat(129), ...BAD_TEXT];
const BAD_PROJECT = ['Upper', '_x', 'a b', 'é', 'x'.repeat(64), ...BAD_TEXT];
const BAD_NAME = ['', ' \t ', 'x'.repeat(201), '𝒳'.repeat(201), ...BAD_TEXT];
const BAD_SLUG = ['Upper', '-a', 'a-', 'a--b', 'a b', 'é', 'a_b', 'x'.repeat(64), ' ', ...BAD_TEXT];
const BAD_EMAIL = [
  '',
  'a',
  '@',
  'a@',
  '@b',
  'a@b@c',
  'a b@c',
  'a@b c',
  'a@b\n',
  ' a@b',
  `a@${'b'.repeat(253)}`,
  ...BAD_TEXT,
];
const BAD_ROLE = [
  'ROLE_OWNER',
  'ROLE_UNSPECIFIED',
  'ROLE_KING',
  0,
  1,
  5,
  99,
  -1,
  1.5,
  null,
  {},
  true,
];
const WRONG_TYPES = [1.5, true, [1], { a: 1 }, [[]]];

/** In short each goes to one of four methods that have the field. */
const some = (values: readonly unknown[], at: number): readonly unknown[] =>
  sampledBodies(values, at, 4);

const ROWS: readonly (readonly [string, string, readonly unknown[]])[] = [
  ...METHODS.flatMap((method, at) => [
    [method, 'acting_user_id', some([...BAD_ID, undefined, null, ...WRONG_TYPES], at)] as const,
    [method, 'tenant_id', some([...BAD_TENANT, ...WRONG_TYPES], at)] as const,
    [method, 'project_id', some([...BAD_PROJECT, ...WRONG_TYPES], at)] as const,
  ]),
  ...METHODS.filter((method) => !WITHOUT_WORKSPACE.includes(method)).map(
    (method, at) =>
      [method, 'workspace_id', some([...BAD_ID, undefined, null, ...WRONG_TYPES], at)] as const,
  ),
  ...WITH_USER.map(
    (method) => [method, 'user_id', [...BAD_ID, undefined, ...WRONG_TYPES]] as const,
  ),
  ...WITH_ROLE.map((method) => [method, 'role', [...BAD_ROLE, undefined]] as const),
  ['TransferOwnership', 'new_owner_user_id', [...BAD_ID, undefined, ...WRONG_TYPES]],
  ['CreateWorkspace', 'display_name', [...BAD_NAME, undefined, ...WRONG_TYPES]],
  ['CreateWorkspace', 'slug', [...BAD_SLUG, ...WRONG_TYPES]],
  ['UpdateWorkspace', 'display_name', [...BAD_NAME, undefined, ...WRONG_TYPES]],
  ['CreateInvitation', 'email', [...BAD_EMAIL, undefined, ...WRONG_TYPES]],
  ['AcceptInvitation', 'token', ['', undefined, ...BAD_TEXT, ...WRONG_TYPES]],
  ['RevokeInvitation', 'invitation_id', [...BAD_ID, undefined, ...WRONG_TYPES]],
];

describe('each field is refused by its name', () => {
  test.each(ROWS)('%s %s', async (method, field, values) => {
    for (const value of values) {
      const scope = { acting_user_id: 'olga', tenant_id: 't' };
      const body = { ...scope, ...valid[method], [field]: value };
      const answer = await call(instance, `WorkspaceService/${method}`, body);
      const shown = `${JSON.stringify(value)} → ${answer.status} ${JSON.stringify(answer.body)}`;
      expect(answer.status, shown).toBe(400);
      expect(answer.body['code'], shown).toBe('invalid_argument');
      const reason = reasonOf(answer.body);
      expect(['FIELD_INVALID', 'FIELD_REQUIRED', 'BODY_MALFORMED'], shown).toContain(reason);
      // A lone surrogate is refused before fields are told apart.
      const isNamed = reason !== 'BODY_MALFORMED' || !BAD_TEXT.includes(value as string);
      expect(isNamed ? String(answer.body['message']) : field, shown).toContain(field);
    }
  });

  test('arguments are looked at before the project', async () => {
    const body = { acting_user_id: 'olga', project_id: 'nowhere', workspace_id: '#' };
    const answer = await call(instance, 'WorkspaceService/GetWorkspace', body);
    expect(reasonOf(answer.body)).toBe('FIELD_INVALID');
  });
});

test('nothing of all that has written anything', async () => {
  expect(await everything()).toBe(before);
  const unknown = await call(instance, 'WorkspaceService/ListWorkspaces', {
    acting_user_id: 'olga',
    no_such_field: 1,
  });
  expect([unknown.status, reasonOf(unknown.body)]).toEqual([400, 'BODY_MALFORMED']);
});

describe('whatever a body holds, no method answers 500', () => {
  const FIELDS = [
    'acting_user_id',
    'actingUserId',
    'project_id',
    'tenant_id',
    'workspace_id',
    'user_id',
    'role',
    'display_name',
    'slug',
    'email',
    'token',
    'invitation_id',
    'new_owner_user_id',
    'unknown_field',
    '__proto__',
    'constructor',
  ];
  const VALUES = [...WRONG_TYPES, null, '', 'x', '\u0000', 1e300, -1, '9'.repeat(400), 2 ** 31];
  test.each(METHODS)('%s', async (method) => {
    const bodies: string[] = ['', '{', 'null', '[]', '"x"', '[['.repeat(20_000)];
    for (const field of FIELDS) {
      for (const value of VALUES) {
        bodies.push(`{"${field}":${JSON.stringify(value)}}`);
        const around = JSON.stringify({ tenant_id: 'elsewhere', acting_user_id: '#' }).slice(1);
        bodies.push(`{"${field}":${JSON.stringify(value)},${around}`);
      }
    }
    for (const body of sampledBodies(bodies, METHODS.indexOf(method), METHODS.length)) {
      const answer = await call(instance, `WorkspaceService/${method}`, body);
      const shown = `${body.slice(0, 200)}: ${JSON.stringify(answer.body)}`;
      if (method !== 'ListWorkspaces') expect(answer.status, shown).toBeGreaterThanOrEqual(400);
      expect(answer.status, shown).toBeLessThan(500);
    }
  });
});

test.each([
  ['user:with@all/kinds|of signs', '日本'],
  ['é'.repeat(128), '🦊'.repeat(200)],
  [`${'a'.repeat(250)}@b.c`, "Robert'); drop table workspace;--"],
  ['"\\\'', '"\\\''],
])('unusual but valid: user %s, name %s', async (user, name) => {
  const tenant = new Tenant(instance, 'unusual');
  const { workspace } = await tenant.do(user, 'CreateWorkspace', { display_name: name });
  const { id: workspace_id } = workspace as { id: string };
  expect(workspace).toMatchObject({ display_name: name, owner_user_id: user });
  await tenant.do(user, 'AddMember', {
    workspace_id,
    user_id: `${user.slice(1)}!`,
    role: 'ROLE_GUEST',
  });
  await tenant.do(user, 'ListWorkspaces');
  expect(await tenant.holds(user, workspace_id, 'owner')).toBe(true);
  await tenant.do(user, 'DeleteWorkspace', { workspace_id });
});
