import { afterAll, beforeAll, expect, test } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import type { RawSubject, RawTuple, RawUpdate } from '../../model/raw-tuple.ts';
import { silentReport } from '../../shared/loop-report.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { SharedWork } from '../../store/postgres/shared-work.ts';
import type { WriteMeta } from '../ports.ts';
import { ExpiredTuplePurge } from './expired-tuple-purge.ts';
import type { ReadRequest } from './tuple-requests.ts';

let database: TestDatabase;
let services: TestServices;

beforeAll(async () => {
  database = await createTestDatabase();
  services = await createTestServices(database);
  for (const id of ['dep', 'exp', 'purge', 'sus', 'read']) {
    await services.projects.create(
      { id, name: id, modelJson: '', dataRegion: '', maxCheckReads: 0 },
      'r',
    );
  }
});
afterAll(async () => {
  await services.close();
  await database.drop();
});

const meta: WriteMeta = {
  rpc: 'WriteRelationTuples',
  actingUserId: null,
  requestId: 'r',
  deadlineMs: Infinity,
};
const user = (value: string): RawSubject => ({ case: 'userId', value });
const members = (objectId: string): RawSubject => ({
  case: 'set',
  value: { namespace: 'group', objectId, relation: 'member' },
});
function raw(text: string, kind: RawSubject, rest: Partial<RawTuple> = {}): RawTuple {
  const [namespace = '', objectId = '', relation = ''] = text.split(/[:#]/);
  return { projectId: '', tenantId: '', namespace, objectId, relation, subject: { kind }, ...rest };
}
const insert = (tuple: RawTuple): RawUpdate => ({ op: 1, tuple });
const remove = (tuple: RawTuple): RawUpdate => ({ op: 2, tuple });
function write(updates: readonly RawUpdate[], projectId = '', tenantId = ''): Promise<string> {
  return services.tuples.write({ projectId, tenantId, updates, meta });
}
function read(filter: Partial<ReadRequest> = {}): Promise<readonly unknown[]> {
  return services.tuples.read({
    projectId: '',
    tenantId: '',
    namespace: '',
    objectId: '',
    relation: '',
    subjectUserId: '',
    token: '',
    ...filter,
  });
}

const good = raw('doc:d#viewer', user('u'));
const control = '\u0007';
test.each<[string, unknown, string, string]>([
  ['no updates', [], 'FIELD_REQUIRED', 'updates'],
  ['op 0', [{ op: 0, tuple: good }], 'FIELD_INVALID', 'updates[0].op'],
  ['op 3', [{ op: 3, tuple: good }], 'FIELD_INVALID', 'updates[0].op'],
  ['no tuple', [insert(good), { op: 1 }], 'FIELD_REQUIRED', 'updates[1].tuple'],
  [
    'project',
    [insert({ ...good, projectId: 'x' })],
    'FIELD_INVALID',
    'updates[0].tuple.project_id',
  ],
  ['tenant', [insert({ ...good, tenantId: 'x' })], 'FIELD_INVALID', 'updates[0].tuple.tenant_id'],
  [
    'no namespace',
    [insert({ ...good, namespace: '' })],
    'FIELD_REQUIRED',
    'updates[0].tuple.namespace',
  ],
  [
    'namespace',
    [insert({ ...good, namespace: 'Doc' })],
    'FIELD_INVALID',
    'updates[0].tuple.namespace',
  ],
  [
    'seat',
    [remove({ ...good, namespace: 'seat' })],
    'NAMESPACE_RESERVED',
    'updates[0].tuple.namespace',
  ],
  [
    'no object',
    [insert({ ...good, objectId: '' })],
    'FIELD_REQUIRED',
    'updates[0].tuple.object_id',
  ],
  ['object', [insert({ ...good, objectId: 'a#b' })], 'FIELD_INVALID', 'updates[0].tuple.object_id'],
  [
    'control',
    [insert({ ...good, objectId: control })],
    'FIELD_INVALID',
    'updates[0].tuple.object_id',
  ],
  [
    'long',
    [insert({ ...good, objectId: 'é'.repeat(129) })],
    'FIELD_INVALID',
    'updates[0].tuple.object_id',
  ],
  [
    'half',
    [insert({ ...good, objectId: '\ud800' })],
    'FIELD_INVALID',
    'updates[0].tuple.object_id',
  ],
  [
    'relation',
    [insert({ ...good, relation: 'a b' })],
    'FIELD_INVALID',
    'updates[0].tuple.relation',
  ],
  [
    'no subject',
    [insert({ ...good, subject: undefined })],
    'FIELD_REQUIRED',
    'updates[0].tuple.subject',
  ],
  [
    'user',
    [insert(raw('doc:d#v', user('')))],
    'FIELD_REQUIRED',
    'updates[0].tuple.subject.user_id',
  ],
  [
    'set',
    [insert(raw('doc:d#v', members('')))],
    'FIELD_REQUIRED',
    'updates[0].tuple.subject.set.object_id',
  ],
  [
    'wildcard false',
    [insert(raw('doc:d#v', { case: 'wildcard', value: false }))],
    'FIELD_INVALID',
    'updates[0].tuple.subject.wildcard',
  ],
  [
    'params alone',
    [insert({ ...good, conditionParams: {} })],
    'FIELD_INVALID',
    'updates[0].tuple.condition_params',
  ],
  [
    'params NUL',
    [insert({ ...good, conditionName: 'c', conditionParams: { a: [1, 'x\u0000'] } })],
    'FIELD_INVALID',
    'updates[0].tuple.condition_params.a[1]',
  ],
  [
    'params NaN',
    [insert({ ...good, conditionName: 'c', conditionParams: { a: NaN } })],
    'FIELD_INVALID',
    'updates[0].tuple.condition_params.a',
  ],
  [
    'expiry',
    [insert({ ...good, expiresAt: { seconds: 10n ** 12n, nanos: 0 } })],
    'FIELD_INVALID',
    'updates[0].tuple.expires_at',
  ],
  ['twice', [insert(good), remove(good)], 'FIELD_INVALID', 'updates[1].tuple'],
])('write refuses %s', async (_, updates, reason, field) => {
  await expect(write(updates as RawUpdate[])).rejects.toMatchObject({
    reason,
    metadata: { field },
  });
});

test('write refuses too many updates, a bad tenant and an unknown project', async () => {
  const many = Array.from({ length: 1_001 }, (_, i) => insert(raw(`doc:d${i}#v`, user('u'))));
  await expect(write(many)).rejects.toMatchObject({ reason: 'BATCH_TOO_LARGE' });
  await expect(write([insert(good)], '', 'a b')).rejects.toMatchObject({ reason: 'FIELD_INVALID' });
  await expect(write([insert(good)], 'nope')).rejects.toMatchObject({ reason: 'PROJECT_UNKNOWN' });
  await expect(write([insert(good)], 'NOPE')).rejects.toMatchObject({ reason: 'FIELD_INVALID' });
});

test('what was written is read back in order of identity, with what it carries', async () => {
  const expiresAt = { seconds: 1_700_000_000n, nanos: 123_456_789 };
  const conditionParams = { b: 1, a: ['x'] };
  const token = await write(
    [
      insert(raw('doc:é#viewer', user('z'), { expiresAt })),
      insert(raw('doc:a#viewer', { case: 'wildcard', value: true })),
      insert(raw('doc:a#viewer', members('g'))),
      insert(raw('doc:a#viewer', user('y'), { conditionName: 'scope_in', conditionParams })),
      insert({ ...raw('doc:a#owner', user('y')), projectId: 'read', tenantId: 'tt' }),
    ],
    'read',
    'tt',
  );
  const all = { projectId: 'read', tenantId: 'tt' };
  expect(await read({ ...all, token })).toEqual([
    { namespace: 'doc', objectId: 'a', relation: 'owner', subject: { kind: 'user', userId: 'y' } },
    {
      namespace: 'doc',
      objectId: 'a',
      relation: 'viewer',
      subject: { kind: 'user', userId: 'y' },
      conditionName: 'scope_in',
      conditionParams: '{"a":["x"],"b":1}',
    },
    { namespace: 'doc', objectId: 'a', relation: 'viewer', subject: { kind: 'wildcard' } },
    {
      namespace: 'doc',
      objectId: 'a',
      relation: 'viewer',
      subject: { kind: 'set', namespace: 'group', objectId: 'g', relation: 'member' },
    },
    {
      namespace: 'doc',
      objectId: 'é',
      relation: 'viewer',
      subject: { kind: 'user', userId: 'z' },
      expiresAtUs: 1_700_000_000_123_456n,
    },
  ]);
  expect(await read({ ...all, subjectUserId: 'y' })).toHaveLength(2);
  expect(await read({ ...all, subjectUserId: 'y', relation: 'owner' })).toHaveLength(1);
  expect(await read({ ...all, namespace: 'doc', objectId: 'é' })).toHaveLength(1);
  expect(await read({ projectId: 'read', tenantId: 'other' })).toEqual([]);
  await expect(read({ projectId: 'read', tenantId: 'other', token })).rejects.toMatchObject({
    reason: 'TOKEN_INVALID',
  });
});

test('tokens: a no-op returns the head, one beyond the head is refused', async () => {
  const shard = { projectId: 'read', tenantId: 'tokens' };
  const first = await write([insert(good)], 'read', 'tokens');
  expect(await write([remove(raw('doc:no#v', user('x')))], 'read', 'tokens')).toBe(first);
  const { epoch, revision } = services.codec.decode(shard, first);
  expect(revision).toBe(1);
  await expect(
    read({ ...shard, token: services.codec.encode(shard, epoch, 2) }),
  ).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
  await expect(
    read({ ...shard, token: services.codec.encode(shard, epoch + 1, 1) }),
  ).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
});

test.each([1, 300])(
  'a token of history that was lost is refused, whatever was known here before (%i tuples)',
  async (count) => {
    const shard = { projectId: 'read', tenantId: `lost-${count}` };
    const updates = Array.from({ length: count }, (_, i) => insert(raw(`doc:d${i}#v`, user('u'))));
    await write(updates, 'read', shard.tenantId);
    const token = await write([insert(raw('doc:last#v', user('u')))], 'read', shard.tenantId);
    expect(await read({ ...shard, token })).toHaveLength(count + 1);
    const { pool } = database;
    const of = `where project_id = 'read' and tenant_id = '${shard.tenantId}'`;
    // As on a standby that lacked the last write, which serves now.
    await pool.query(`delete from relation_tuple ${of} and object_id = 'last'`);
    await pool.query(`update shard set seq = seq - 1 ${of}`);
    await expect(read({ ...shard, token })).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
    // Another epoch is another history also where it has come as far.
    await pool.query(`update shard set seq = seq + 1, epoch = epoch + 1 ${of}`);
    await expect(read({ ...shard, token })).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
    expect(await read(shard)).toHaveLength(count);
  },
);

test('long lists come in one snapshot; too long ones are refused', async () => {
  const updates = Array.from({ length: 601 }, (_, i) =>
    insert(raw(`doc:d${1000 + i}#v`, user('u'))),
  );
  await write(updates.slice(0, 600), 'read', 'long');
  const all = await read({ projectId: 'read', tenantId: 'long' });
  expect(all.map((one) => (one as { objectId: string }).objectId)).toEqual(
    updates.slice(0, 600).map(({ tuple }) => tuple?.objectId),
  );
  await write(updates.slice(600), 'read', 'long');
  await expect(read({ projectId: 'read', tenantId: 'long' })).rejects.toMatchObject({
    reason: 'RESULT_TOO_LARGE',
  });
});

test('deprovisioning deletes the user in all tenants, a seq each', async () => {
  for (const tenantId of ['', 'a', 'b']) {
    await write(
      [insert(raw('doc:1#v', user('gone'))), insert(raw('doc:2#v', user('stays')))],
      'dep',
      tenantId,
    );
  }
  await write([insert(raw('doc:3#v', user('gone')))], 'dep', 'a');
  await services.index.load('dep', 'a');
  const request = { projectId: 'dep', userId: 'gone', meta: { ...meta, rpc: 'DeprovisionUser' } };
  expect(await services.tuples.deprovisionUser(request)).toBe(4);
  expect(services.headRevisions.peek('dep', 'a')?.minRevision).toBe(3);
  expect(await services.tuples.deprovisionUser(request)).toBe(0);
  expect(await read({ projectId: 'dep', tenantId: 'a' })).toHaveLength(1);
  const told = services.committed.filter(({ projectId }) => projectId === 'dep').slice(-3);
  expect(told.map(({ tenantId, revision }) => [tenantId, revision])).toEqual([
    ['', 2],
    ['a', 3],
    ['b', 2],
  ]);
  expect(JSON.parse(told[1]?.changes ?? '')).toEqual([
    [2, 'doc', '1', 'v', '', 'gone', '', null, null, null],
    [2, 'doc', '3', 'v', '', 'gone', '', null, null, null],
  ]);
});

test('a user with many tuples is deprovisioned in several changes of bounded size', async () => {
  const tuples = Array.from({ length: 7 }, (_, at) => insert(raw(`doc:${at}#v`, user('many'))));
  for (const tenantId of ['x', 'y']) await write(tuples.slice(0, 3), 'dep', tenantId);
  await write(tuples.slice(3), 'dep', 'x');
  const before = services.committed.length;
  const request = { projectId: 'dep', userId: 'many', meta: { ...meta, rpc: 'DeprovisionUser' } };
  expect(await services.tuples.deprovisionUser(request)).toBe(10);
  const sizes = services.committed
    .slice(before)
    .map(({ tenantId, revision, changes }) => [
      tenantId,
      revision,
      (JSON.parse(changes) as unknown[]).length,
    ]);
  expect(sizes).toEqual([
    ['x', 3, 3],
    ['y', 2, 3],
    ['x', 4, 3],
    ['x', 5, 1],
  ]);
  expect(await read({ projectId: 'dep', tenantId: 'x' })).toEqual([]);
});

test('an export lists direct grants and those of groups, nested and in cycles', async () => {
  const past = { seconds: 1n, nanos: 0 };
  await write(
    [
      insert(raw('doc:direct#owner', user('u'))),
      insert(raw('doc:conditional#owner', user('u'), { conditionName: 'scope_in' })),
      insert(raw('doc:expired#owner', user('u'), { expiresAt: past })),
      insert(raw('group:g1#member', user('u'))),
      insert(raw('group:g2#member', members('g1'))),
      insert(raw('group:g1#member', members('g2'))),
      insert(raw('doc:via2#viewer', members('g2'))),
      insert(raw('group:old#member', user('u'), { expiresAt: past })),
      insert(raw('doc:viaold#viewer', members('old'))),
      insert(raw('doc:public#viewer', { case: 'wildcard', value: true })),
    ],
    'exp',
    't1',
  );
  await write([insert(raw('doc:other#viewer', members('g1')))], 'exp', 't2');
  await write([insert(raw('doc:other#owner', user('u')))], 'exp', '');
  const grants = await services.tuples.exportSubjectGrants({ projectId: 'exp', userId: 'u' });
  expect(
    grants.map((g) => `${g.tenantId}/${g.namespace}:${g.objectId}#${g.relation} ${g.viaGroup}`),
  ).toEqual([
    '/doc:other#owner ',
    't1/doc:conditional#owner ',
    't1/doc:direct#owner ',
    't1/doc:via2#viewer g2',
    't1/group:g1#member ',
    't1/group:g1#member g2',
    't1/group:g2#member g1',
  ]);
});

test('ReadRelationTuples goes by the settings of its own snapshot, whoever changed them', async () => {
  const setStatus = (status: number) =>
    database.pool.query('update project set status = $1, version = version + 1 where id = $2', [
      status,
      'read',
    ]);
  await read({ projectId: 'read' });
  await setStatus(2);
  await expect(read({ projectId: 'read' })).rejects.toMatchObject({ reason: 'PROJECT_SUSPENDED' });
  const token = 'x'.repeat(40);
  await expect(read({ projectId: 'read', token })).rejects.toMatchObject({
    reason: 'PROJECT_SUSPENDED',
  });
  await setStatus(1);
  await expect(read({ projectId: 'read' })).resolves.toEqual(expect.any(Array));
  await expect(read({ projectId: 'read', token })).rejects.toMatchObject({
    reason: 'TOKEN_INVALID',
  });
});

test('a suspended project answers only what the subject has a right to', async () => {
  await write([insert(good)], 'sus');
  const change = {
    id: 'sus',
    name: '',
    modelJson: '',
    dataRegion: '',
    clearDataRegion: false,
    maxCheckReads: 0,
    clearMaxCheckReads: false,
  };
  await services.projects.update({ ...change, status: 2 }, 'r');
  await expect(write([insert(good)], 'sus')).rejects.toMatchObject({ reason: 'PROJECT_SUSPENDED' });
  await expect(read({ projectId: 'sus' })).rejects.toMatchObject({ reason: 'PROJECT_SUSPENDED' });
  expect(await services.tuples.exportSubjectGrants({ projectId: 'sus', userId: 'u' })).toHaveLength(
    1,
  );
  expect(await services.tuples.deprovisionUser({ projectId: 'sus', userId: 'u', meta })).toBe(1);
  await services.projects.update({ ...change, status: 1 }, 'r');
  await write([insert(good)], 'sus');
});

test('the purge deletes what expired long enough ago, through the change log', async () => {
  const at = (ms: number): { seconds: bigint; nanos: number } => ({
    seconds: BigInt(Math.floor(ms / 1000)),
    nanos: 0,
  });
  const nowMs = Date.now();
  await write(
    [
      insert(raw('doc:old#v', user('u'), { expiresAt: at(nowMs - 3_600_000) })),
      insert(raw('doc:recent#v', user('u'), { expiresAt: at(nowMs - 10_000) })),
      insert(raw('doc:kept#v', user('u'))),
    ],
    'purge',
  );
  const purge = new ExpiredTuplePurge({
    shared: new SharedWork({ target: database.target }),
    pool: database.pool,
    clock: systemClock,
    writer: services.writer,
    graceMs: 60_000,
    intervalMs: 1_000,
    shardsMax: 10,
    tuplesMax: 10,
    requestId: () => 'purge',
    report: silentReport,
  });
  await purge.run();
  expect(await read({ projectId: 'purge' })).toHaveLength(2);
  const told = services.committed.filter(({ projectId }) => projectId === 'purge');
  expect(told.map(({ revision }) => revision)).toEqual([1, 2]);
  expect(await purge.run()).toBe(0);
});
