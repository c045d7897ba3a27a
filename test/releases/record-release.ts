/**
 * Records what a release sends to PostgreSQL while every method is called, as a fixture of
 * previous-release.pg.test.ts. Run it in a checkout of that release, with its own node_modules:
 *   node <here>/test/releases/record-release.ts <checkout> <fixture.json>
 * Needs DATABASE_URL, of an empty database.
 */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { RecordedStatement } from './recorded-statement.ts';

const [checkout = '', fixture = ''] = process.argv.slice(2);
const raw = join(tmpdir(), `statements-${process.pid}.jsonl`);
const recorder = fileURLToPath(new URL('statement-recorder.mjs', import.meta.url));
const child = spawn(process.execPath, ['--import', recorder, 'src/main.ts'], {
  cwd: checkout,
  env: {
    DATABASE_URL: process.env['DATABASE_URL'],
    RECORD_STATEMENTS: raw,
    GATEWAY_CONNECT_PORT: '0',
    GATEWAY_METRICS_PORT: '0',
    GATEWAY_SERVICE_AUTH_TOKENS: 'token',
    GATEWAY_ADMIN_API_SECRET: 'secret',
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_CHANGE_RETENTION_SECONDS: '1',
    GATEWAY_WORKERS: '2',
    GATEWAY_DRAIN_MS: '0',
    PATH: process.env['PATH'],
  },
  stdio: ['ignore', 'ignore', 'pipe'],
});
const ended = new Promise((resolve) => child.once('exit', resolve));
const port = await new Promise<number>((resolve, reject) => {
  child.once('exit', () => reject(new Error('the release ended')));
  createInterface({ input: child.stderr }).on('line', (line) => {
    process.stderr.write(`${line}\n`);
    const entry = line.startsWith('{') ? (JSON.parse(line) as { msg?: string; port?: number }) : {};
    if (entry.msg === 'ready') resolve(entry.port ?? 0);
  });
});

type Body = Record<string, unknown>;

async function call(method: string, body: Body): Promise<Body> {
  return await post(`workspace.v1.${method}`, JSON.stringify({ tenant_id: 't', ...body }));
}

async function post(path: string, body: string): Promise<Body> {
  const response = await fetch(`http://127.0.0.1:${port}/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer token',
      'x-admin-secret': 'secret',
    },
    body,
  });
  const answer = (await response.json()) as Body;
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer;
}

/** A method of gatehouse.v1, of the project whose model is written here. */
async function ask(method: string, body: Body): Promise<Body> {
  return await post(`gatehouse.v1.${method}`, JSON.stringify({ project_id: 'p2', ...body }));
}

const idOf = (answer: Body, what: string): string => (answer[what] as { id: string }).id;
const tuple = (object: string, relation: string, user: string): Body => ({
  namespace: 'document',
  object_id: object,
  relation,
  subject: { user_id: user },
});

const MODEL = `namespace document {
  relation owner: [user]
  relation viewer: [user] or owner
}
`;

/** Models and their way into force, writes with a key, deletes by filter. */
async function callModelsAndTuples(): Promise<void> {
  await ask('ModelService/WriteModel', { model: { gate: MODEL }, comment: 'first' });
  await ask('ModelService/WriteModel', { model: { gate: `${MODEL}// second\n` } });
  await ask('ModelService/GetModel', {});
  await ask('ModelService/ListModelVersions', {});
  await ask('ModelService/RollBackModel', { version: 1 });
  const write = {
    updates: [{ op: 'OP_INSERT', tuple: tuple('d1', 'owner', 'a') }],
    preconditions: [{ must_not_exist: { namespace: 'document', object_id: 'd1' } }],
    idempotency_key: 'once',
  };
  await ask('TupleService/WriteTuples', write);
  await ask('TupleService/WriteTuples', write);
  // Not an import: what it copies in is not recorded.
  for (const user of ['b', 'c']) {
    await ask('TupleService/WriteTuples', {
      updates: [{ op: 'OP_INSERT', tuple: tuple('d2', 'viewer', user) }],
    });
  }
  const scope = { project_id: 'p2' };
  const where = { namespace: 'document', object_id: 'd2', relation: 'viewer' };
  await post('gatehouse.v1.QueryService/ListSubjects', JSON.stringify({ scope, ...where }));
  await ask('ModelService/WriteModel', {
    model: { gate: MODEL.replace('[user] or ', '') },
    force: true,
  });
  await ask('TupleService/DeleteTuples', { filter: { namespace: 'document', object_id: 'd2' } });
}

async function callEverything(): Promise<void> {
  await call('AdminService/CreateProject', { id: 'p2', name: 'two', tenant_id: undefined });
  await call('AdminService/UpdateProject', { id: 'p2', name: 'two!', tenant_id: undefined });
  await call('AdminService/GetProject', { id: 'p2', tenant_id: undefined });
  await call('AdminService/ListProjects', { tenant_id: undefined });
  for (const tenant_id of ['t', 'u']) {
    const updates = ['a', 'b', 'c'].map((user) => ({
      op: 'OP_INSERT',
      tuple: tuple('d1', 'viewer', user),
    }));
    await call('AuthzService/WriteRelationTuples', { tenant_id, updates });
    await call('AuthzService/WriteRelationTuples', {
      tenant_id,
      updates: [
        { op: 'OP_DELETE', tuple: tuple('d1', 'viewer', 'a') },
        {
          op: 'OP_INSERT',
          tuple: { ...tuple('d2', 'viewer', 'a'), expires_at: '2020-01-01T00:00:00Z' },
        },
        { op: 'OP_DELETE', tuple: tuple('d9', 'viewer', 'nobody') },
      ],
    });
    const where = { tenant_id, namespace: 'document', relation: 'viewer' };
    await call('AuthzService/Check', { ...where, object_id: 'd1', subject_user_id: 'b' });
    await call('AuthzService/Expand', { ...where, object_id: 'd1' });
    await call('AuthzService/ListObjects', { ...where, subject_user_id: 'b' });
    await call('AuthzService/ReadRelationTuples', { ...where, object_id: 'd1' });
    await call('AuthzService/ReadRelationTuples', { tenant_id, subject_user_id: 'b' });
    await call('AuthzService/ReadRelationTuples', { tenant_id });
  }
  await call('AuthzService/ExportSubjectGrants', { user_id: 'b', tenant_id: undefined });
  await call('AuthzService/DeprovisionUser', { user_id: 'c', tenant_id: '' });
  await call('AuthzService/DeprovisionUser', { user_id: 'b', tenant_id: 'u' });

  const as = (acting_user_id: string, more: Body = {}): Body => ({ acting_user_id, ...more });
  const team = await call(
    'WorkspaceService/CreateWorkspace',
    as('o', { display_name: 'Team', slug: 'team' }),
  );
  const workspace_id = idOf(team, 'workspace');
  const of = (user: string, more: Body = {}): Body => as(user, { workspace_id, ...more });
  await call('WorkspaceService/GetWorkspace', of('o'));
  await call('WorkspaceService/ListWorkspaces', as('o'));
  await call('WorkspaceService/ListWorkspaces', as('somebody-new'));
  await call('WorkspaceService/UpdateWorkspace', of('o', { display_name: 'Squad' }));
  await call('WorkspaceService/AddMember', of('o', { user_id: 'm', role: 'ROLE_MEMBER' }));
  await call('WorkspaceService/AddMember', of('o', { user_id: 'n', role: 'ROLE_GUEST' }));
  await call('WorkspaceService/UpdateMemberRole', of('o', { user_id: 'm', role: 'ROLE_ADMIN' }));
  await call('WorkspaceService/SuspendMember', of('o', { user_id: 'n' }));
  await call('WorkspaceService/ReinstateMember', of('o', { user_id: 'n' }));
  await call('WorkspaceService/ListMembers', of('o'));
  await call('WorkspaceService/RemoveMember', of('o', { user_id: 'n' }));
  const email = 'guest@example.com';
  const invited = await call(
    'WorkspaceService/CreateInvitation',
    of('o', { email, role: 'ROLE_MEMBER' }),
  );
  await call('WorkspaceService/ListInvitations', of('o'));
  await call(
    'WorkspaceService/AcceptInvitation',
    as('g', { token: (invited['invitation'] as Body)['token'] }),
  );
  const second = await call(
    'WorkspaceService/CreateInvitation',
    of('o', { email: 'other@example.com', role: 'ROLE_GUEST' }),
  );
  await call(
    'WorkspaceService/RevokeInvitation',
    as('o', { invitation_id: idOf(second, 'invitation') }),
  );
  await call('WorkspaceService/TransferOwnership', of('o', { new_owner_user_id: 'm' }));

  const group = await call('GroupService/CreateGroup', of('m', { display_name: 'G', slug: 'g' }));
  const group_id = idOf(group, 'group');
  const inner = idOf(
    await call('GroupService/CreateGroup', of('m', { display_name: 'H', slug: 'h' })),
    'group',
  );
  const inGroup = (more: Body = {}): Body => as('m', { group_id, ...more });
  await call('GroupService/GetGroup', inGroup());
  await call('GroupService/ListGroups', of('m'));
  for (const member of [{ user_id: 'g' }, { group_id: inner }]) {
    await call('GroupService/AddGroupMember', inGroup({ member }));
    await call('GroupService/ListGroupMembers', inGroup());
  }
  const member = { user_id: 'g' };
  for (const state of ['ENROLLMENT_STATE_WAITLISTED', 'ENROLLMENT_STATE_ACTIVE']) {
    await call('GroupService/SetEnrollmentState', inGroup({ member, state }));
  }
  await call('GroupService/ListEnrollments', inGroup());
  await call('GroupService/RemoveGroupMember', inGroup({ member }));
  await call('GroupService/DeleteGroup', as('m', { group_id: inner }));

  const sku = 'pro';
  await call('SeatService/SetSeatLimit', { sku, limit: 2 });
  await call('SeatService/AssignSeat', { sku, user_id: 'g' });
  await call('SeatService/AssignSeat', { sku, user_id: 'm' });
  await call('SeatService/GetSeatUsage', { sku });
  await call('SeatService/ListSeats', { sku });
  await call('SeatService/RevokeSeat', { sku, user_id: 'g' });
  await call('WorkspaceService/DeleteWorkspace', of('m'));
  await callModelsAndTuples();
}

function tell(error: unknown): void {
  process.stderr.write(`${String(error)}\n`);
}

await callEverything().catch((error: unknown) => {
  child.kill();
  throw error;
});
// Pruning and the poll.
await new Promise((resolve) => setTimeout(resolve, 2_500));
child.kill('SIGTERM');
await ended;
const recorded = readFileSync(raw, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as RecordedStatement)
  .toSorted((a, b) => Number(BigInt(a.at) - BigInt(b.at)));
// The connection that migrates: what it finds is not a matter of the schema.
const migrating = new Set(
  recorded
    .filter(({ text }) => text.includes('schema_migration'))
    .map(({ connection }) => connection),
);
const statements = recorded.filter(({ connection }) => !migrating.has(connection));
rmSync(raw);
writeFileSync(fixture, `[\n${statements.map((one) => JSON.stringify(one)).join(',\n')}\n]\n`);
tell(`${statements.length} statements`);
