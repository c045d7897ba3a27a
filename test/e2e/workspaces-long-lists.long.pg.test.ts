import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { beforeAll, expect, test } from 'vitest';
import { WorkspaceService } from '../../src/gen/workspace/v1/workspace_service_pb.ts';
import { instanceForFile } from '../support/instance.ts';
import { Tenant } from '../support/management.ts';

/*
 * Lists are read from one snapshot page by page and encoded as they come: they are ordered, complete,
 * and hold a page of rows and the bytes of the answer in memory.
 */
const MEMBERS = 100_000;
const PLAIN = 2_000;

const { database, instance } = await instanceForFile();
let tenant: Tenant;
let workspace_id: string;

beforeAll(async () => {
  tenant = new Tenant(instance, 'long');
  workspace_id = await tenant.team('olga');
  const scope = ['default', 'long', workspace_id];
  await database.pool.query(
    `insert into membership (project_id, tenant_id, workspace_id, user_id, role, status)
     select $1, $2, $3, 'user-' || to_char(i, 'FM000000'), 3, 1 from generate_series(1, $4::int) i`,
    [...scope, MEMBERS],
  );
  await database.pool.query(
    `insert into relation_tuple (project_id, tenant_id, namespace, object_id, relation,
       subject_namespace, subject_id, subject_relation, seq)
     select $1, $2, 'workspace', $3, 'member', '', 'user-' || to_char(i, 'FM000000'), '', 1
     from generate_series(1, $4::int) i`,
    [...scope, MEMBERS],
  );
  await database.pool.query(
    `insert into invitation (project_id, tenant_id, id, workspace_id, email, role, status,
       invited_by_user_id, token_hash, expires_at)
     select $1, $2, 'i' || to_char(i, 'FM000000'), $3, 'a@b', 3, 1, 'olga',
       sha256(i::text::bytea), now() + interval '1 day' from generate_series(1, $4::int) i`,
    [...scope, PLAIN],
  );
  await database.pool.query('analyze');
}, 120_000);

test(
  '100,000 members are listed in order, as JSON and as protobuf',
  { timeout: 120_000 },
  async () => {
    const startMs = performance.now();
    const { members } = await tenant.do('olga', 'ListMembers', { workspace_id });
    const jsonMs = performance.now() - startMs;
    const ids = (members as { user_id: string }[]).map((member) => member.user_id);
    expect(ids).toHaveLength(MEMBERS + 1);
    expect(ids).toEqual([...ids].sort());
    expect(ids[0]).toBe('olga');
    expect(ids.at(-1)).toBe(`user-${MEMBERS}`);
    const transport = createGrpcTransport({ baseUrl: instance.generalUrl });
    const client = createClient(WorkspaceService, transport);
    const headers = { authorization: `Bearer ${instance.token}` };
    const request = { actingUserId: 'olga', tenantId: 'long', workspaceId: workspace_id };
    const grpcStartMs = performance.now();
    const answer = await client.listMembers(request, { headers });
    const grpcMs = performance.now() - grpcStartMs;
    expect(answer.members.map((member) => member.userId)).toEqual(ids);
    process.stderr.write(
      `100,000 members: JSON ${jsonMs.toFixed(0)} ms, gRPC ${grpcMs.toFixed(0)} ms\n`,
    );
  },
);

test('others are answered while long lists are made', { timeout: 120_000 }, async () => {
  const lists = Promise.all(
    [1, 2, 3].map(() => tenant.do('olga', 'ListMembers', { workspace_id })),
  );
  let isDone = false;
  void lists.finally(() => (isDone = true));
  let answered = 0;
  while (!isDone) {
    await tenant.holds('olga', workspace_id, 'owner');
    answered++;
  }
  for (const { members } of await lists) expect(members).toHaveLength(MEMBERS + 1);
  expect(answered).toBeGreaterThan(10);
});

test('invitations are listed in the order of their making', async () => {
  const { invitations } = await tenant.do('olga', 'ListInvitations', { workspace_id });
  const ids = (invitations as { id: string }[]).map(({ id }) => id);
  expect(ids).toHaveLength(PLAIN);
  expect(ids).toEqual([...ids].sort());
});

test('a caller that goes away gives its connection back', async () => {
  const abort = new AbortController();
  const body = JSON.stringify({ ...tenant.scope, acting_user_id: 'olga', workspace_id });
  const started = fetch(`${instance.baseUrl}/workspace.v1.WorkspaceService/ListMembers`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${instance.token}` },
    body,
    signal: abort.signal,
  });
  setTimeout(() => abort.abort(), 100);
  await expect(started).rejects.toThrow('abort');
  const { rows: none } = await database.pool.query('select 1');
  expect(none).toHaveLength(1);
  await expect
    .poll(async () => {
      const { rows } = await database.pool.query<{ count: string }>(
        `select count(*) as count from pg_stat_activity
         where datname = current_database() and state like 'idle in transaction%'`,
      );
      return Number(rows[0]?.count);
    })
    .toBe(0);
});

test('a workspace of 100,000 members is deleted whole', { timeout: 120_000 }, async () => {
  expect(await tenant.holds('user-000007', workspace_id, 'member')).toBe(true);
  const startMs = performance.now();
  await tenant.do('olga', 'DeleteWorkspace', { workspace_id });
  const tookMs = performance.now() - startMs;
  process.stderr.write(`delete of 100,000 members: ${tookMs.toFixed(0)} ms\n`);
  expect(await tenant.tuples()).toEqual([]);
  expect(await tenant.holds('user-000007', workspace_id, 'member')).toBe(false);
});
