import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { docModel, modelCall } from '../support/model-calls.ts';
import { call } from '../support/service.ts';

const { database, instance } = await instanceForFile();

const PLAIN = docModel({ viewer: {}, editor: {} });
const EDITORS_VIEW = docModel({
  viewer: { union: [{ this: {} }, { computed: 'editor' }] },
  editor: {},
});

async function makeProject(id: string, modelJson = ''): Promise<string> {
  const body = { id, name: id, model_json: modelJson };
  expect(await call(instance, 'AdminService/CreateProject', body)).toMatchObject({ status: 200 });
  return id;
}

function write(projectId: string, json: string, fields: Record<string, unknown> = {}) {
  return modelCall(instance, 'WriteModel', { project_id: projectId, model: { json }, ...fields });
}

function rollBack(projectId: string, fields: Record<string, unknown> = {}) {
  return modelCall(instance, 'RollBackModel', { project_id: projectId, ...fields });
}

async function versionsOf(projectId: string): Promise<Record<string, unknown>[]> {
  const { body } = await modelCall(instance, 'ListModelVersions', { project_id: projectId });
  return body['versions'] as Record<string, unknown>[];
}

async function mayView(projectId: string, user: string): Promise<unknown> {
  const { body } = await call(instance, 'AuthzService/Check', {
    project_id: projectId,
    namespace: 'doc',
    object_id: 'd',
    relation: 'viewer',
    subject_user_id: user,
  });
  return body['allowed'];
}

async function makeEditor(projectId: string, user: string): Promise<void> {
  const tuple = {
    namespace: 'doc',
    object_id: 'd',
    relation: 'editor',
    subject: { user_id: user },
  };
  const body = { project_id: projectId, updates: [{ op: 'OP_INSERT', tuple }] };
  const answer = await call(instance, 'AuthzService/WriteRelationTuples', body);
  expect(answer).toMatchObject({ status: 200 });
}

describe('every write makes a version', () => {
  test('by CreateProject, UpdateProject, WriteModel and RollBackModel, with who, when and why', async () => {
    const id = await makeProject('ways', PLAIN);
    const before = Date.now();
    await call(instance, 'AdminService/UpdateProject', { id, model_json: EDITORS_VIEW });
    await call(instance, 'AdminService/UpdateProject', { id, name: 'another name' });
    const requestId = '0f0e0d0c-0000-4000-8000-000000000001';
    const comment = 'nobody views by editing any more';
    const headers = { 'x-request-id': requestId };
    const body = { project_id: id, model: { json: PLAIN }, comment };
    expect(await modelCall(instance, 'WriteModel', body, headers)).toMatchObject({
      status: 200,
      body: { version: '3', activation: { state: 'MODEL_ACTIVATION_STATE_ACTIVE', version: '3' } },
    });
    expect(await rollBack(id, { comment: 'they do' })).toMatchObject({ body: { version: '4' } });
    const versions = await versionsOf(id);
    expect(versions.map(({ version, rpc, state }) => [version, rpc, state])).toEqual([
      ['4', 'RollBackModel', 'MODEL_ACTIVATION_STATE_ACTIVE'],
      ['3', 'WriteModel', 'MODEL_ACTIVATION_STATE_REPLACED'],
      ['2', 'UpdateProject', 'MODEL_ACTIVATION_STATE_REPLACED'],
      ['1', 'CreateProject', 'MODEL_ACTIVATION_STATE_REPLACED'],
    ]);
    expect(versions[0]).toMatchObject({ rolled_back_to: '2', comment: 'they do' });
    const sha256 = createHash('sha256').update(PLAIN).digest('hex');
    expect(versions[1]).toMatchObject({ request_id: requestId, comment, model_sha256: sha256 });
    const [{ created_at: at, created_by: by }] = versions as [
      { created_at: string; created_by: string },
    ];
    expect(Date.parse(at)).toBeGreaterThanOrEqual(before - 60_000);
    expect(by).toMatch(/^operator:[0-9a-f]{12}$/);
    expect(new Set(versions.map((version) => version['created_by'])).size).toBe(1);
  });

  test('also of what is put into the table without one', async () => {
    const id = await makeProject('by-hand', PLAIN);
    await database.pool.query(
      'update project set model_json = $2, version = version + 1 where id = $1',
      [id, EDITORS_VIEW],
    );
    await database.pool.query(
      `insert into project (id, name, model_json) values ('by-hand-2', 'n', $1)`,
      [PLAIN],
    );
    expect(await versionsOf(id)).toMatchObject([
      { version: '2', rpc: '', created_by: '', state: 'MODEL_ACTIVATION_STATE_ACTIVE' },
      { version: '1', rpc: 'CreateProject' },
    ]);
    expect(await versionsOf('by-hand-2')).toMatchObject([{ version: '1', rpc: '' }]);
  });

  test('a project id that is taken makes none', async () => {
    const id = await makeProject('taken', PLAIN);
    const again = { id, name: 'n', model_json: EDITORS_VIEW };
    expect(await call(instance, 'AdminService/CreateProject', again)).toMatchObject({
      status: 409,
    });
    expect(await versionsOf(id)).toHaveLength(1);
  });
});

describe('GetModel', () => {
  test('gives each version as it was written, in both forms', async () => {
    const id = await makeProject('get', PLAIN);
    const gate = `// who may see\nnamespace doc {\n  relation viewer\n}\n`;
    const probe = await modelCall(instance, 'WriteModel', { project_id: id, model: { gate } });
    expect(probe).toMatchObject({ status: 200 });
    const inForce = await modelCall(instance, 'GetModel', { project_id: id });
    expect(inForce.body).toMatchObject({ version: { version: '2' }, model_gate: gate });
    expect(JSON.parse(inForce.body['model_json'] as string)).toMatchObject({
      namespaces: { doc: { relations: { viewer: {} } } },
    });
    const first = await modelCall(instance, 'GetModel', { project_id: id, version: '1' });
    expect(first.body).toMatchObject({ model_json: PLAIN, version: { version: '1' } });
    expect(first.body['model_gate']).toContain('editor');
  });

  test('a project that never had a model has the built-in one, and no version', async () => {
    const id = await makeProject('built-in');
    const { status, body } = await modelCall(instance, 'GetModel', { project_id: id });
    expect([status, body]).toEqual([200, { model_json: '', model_gate: '' }]);
    expect(await versionsOf(id)).toEqual([]);
    expect(await rollBack(id)).toMatchObject({ status: 404 });
  });

  test.each([
    ['GetModel', { project_id: 'nowhere' }, 404, 'PROJECT_UNKNOWN'],
    ['GetModel', { project_id: 'default', version: '7' }, 404, 'MODEL_VERSION_UNKNOWN'],
    ['GetModel', { version: '-1' }, 400, 'FIELD_INVALID'],
    ['GetModel', { version: '9223372036854775807' }, 400, 'FIELD_INVALID'],
    ['ListModelVersions', { page_size: 1_001 }, 400, 'FIELD_INVALID'],
    ['ListModelVersions', { page_size: -1 }, 400, 'FIELD_INVALID'],
    ['ListModelVersions', { page_token: 'x' }, 400, 'FIELD_INVALID'],
    ['WriteModel', {}, 400, 'FIELD_REQUIRED'],
    ['WriteModel', { model: { json: '' } }, 400, 'FIELD_REQUIRED'],
    ['WriteModel', { model: { json: '{' } }, 400, 'MODEL_INVALID'],
    ['WriteModel', { model: { gate: 'namespace {' } }, 400, 'MODEL_INVALID'],
    ['WriteModel', { model: { json: PLAIN }, comment: 'x'.repeat(1_001) }, 400, 'FIELD_INVALID'],
    ['WriteModel', { model: { json: PLAIN }, expected_version: '-1' }, 400, 'FIELD_INVALID'],
    ['WriteModel', { model: { json: PLAIN }, project_id: 'nowhere' }, 404, 'PROJECT_UNKNOWN'],
    ['RollBackModel', { version: '99' }, 404, 'MODEL_VERSION_UNKNOWN'],
  ])('%s %j is refused', async (method, body, status, reason) => {
    const answer = await modelCall(instance, method, body);
    expect(answer).toMatchObject({ status, body: { details: [{ debug: { reason } }] } });
  });
});

test('pages of versions follow each other without a gap, and belong to their project', async () => {
  const id = await makeProject('pages', PLAIN);
  for (let i = 0; i < 6; i++) await write(id, i % 2 === 0 ? EDITORS_VIEW : PLAIN);
  const seen: unknown[] = [];
  let token = '';
  do {
    const body = { project_id: id, page_size: 3, page_token: token };
    const page = await modelCall(instance, 'ListModelVersions', body);
    seen.push(...(page.body['versions'] as { version: string }[]).map(({ version }) => version));
    token = page.body['next_page_token'] as string;
  } while (token !== '');
  expect(seen).toEqual(['7', '6', '5', '4', '3', '2', '1']);
  const first = await modelCall(instance, 'ListModelVersions', { project_id: id, page_size: 1 });
  const foreign = { project_id: 'default', page_token: first.body['next_page_token'] };
  expect(await modelCall(instance, 'ListModelVersions', foreign)).toMatchObject({ status: 400 });
});

test('a version that is expected and not the newest refuses the write, and changes nothing', async () => {
  const id = await makeProject('expected', PLAIN);
  expect(await write(id, EDITORS_VIEW, { expected_version: '2' })).toMatchObject({
    status: 412,
    body: { details: [{ debug: { reason: 'MODEL_VERSION_CHANGED', metadata: { version: '1' } } }] },
  });
  expect(await versionsOf(id)).toHaveLength(1);
  expect(await write(id, EDITORS_VIEW, { expected_version: '1' })).toMatchObject({ status: 200 });
});

test('of writers that expect the same version exactly one wins', async () => {
  const id = await makeProject('race', PLAIN);
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => write(id, EDITORS_VIEW, { expected_version: '1' })),
  );
  const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
  expect(statuses).toEqual([200, ...Array.from({ length: 7 }, () => 412)]);
  expect(await versionsOf(id)).toHaveLength(2);
});

test('a roll back restores decisions, and can itself be rolled back', async () => {
  const id = await makeProject('decisions', EDITORS_VIEW);
  await makeEditor(id, 'eve');
  expect(await mayView(id, 'eve')).toBe(true);
  await write(id, PLAIN);
  expect(await mayView(id, 'eve')).toBe(false);
  expect(await rollBack(id)).toMatchObject({ body: { version: '3' } });
  expect(await mayView(id, 'eve')).toBe(true);
  expect(await rollBack(id)).toMatchObject({ body: { version: '4' } });
  expect(await mayView(id, 'eve')).toBe(false);
  expect(await rollBack(id, { version: '1', expected_version: '3' })).toMatchObject({
    status: 412,
  });
  await rollBack(id, { version: '1', expected_version: '4' });
  expect(await mayView(id, 'eve')).toBe(true);
});

test('a dry run says what would be, and changes nothing', async () => {
  const id = await makeProject('dry', PLAIN);
  const dry = { dry_run: true };
  expect(await write(id, EDITORS_VIEW, dry)).toMatchObject({ status: 200, body: { version: '0' } });
  expect(await write(id, '{', dry)).toMatchObject({ status: 400 });
  expect(await write(id, PLAIN, { ...dry, expected_version: '4' })).toMatchObject({ status: 412 });
  expect(await versionsOf(id)).toHaveLength(1);
});

test('a connection that is lost between version and project leaves neither', async () => {
  const id = await makeProject('crash', PLAIN);
  await database.pool.query(`
    create function crash() returns trigger language plpgsql as $$
      begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
    create trigger crash before update of model_json on project
      for each row when (new.id = 'crash') execute function crash();`);
  expect(await write(id, EDITORS_VIEW)).toMatchObject({ status: 503 });
  expect(await rollBack(id, { version: '1' })).toMatchObject({ status: 503 });
  await database.pool.query('drop trigger crash on project');
  expect(await versionsOf(id)).toHaveLength(1);
  const { body } = await modelCall(instance, 'GetModel', { project_id: id });
  expect(body).toMatchObject({ model_json: PLAIN, version: { version: '1' } });
  expect(await call(instance, 'AdminService/GetProject', { id })).toMatchObject({
    body: { project: { model_json: PLAIN } },
  });
  expect(await write(id, EDITORS_VIEW)).toMatchObject({ status: 200, body: { version: '2' } });
});

test('without the operator secret nothing is read or written', async () => {
  for (const method of [
    'GetModel',
    'ListModelVersions',
    'RollBackModel',
    'TestModel',
    'WriteModel',
  ]) {
    const answer = await modelCall(instance, method, {}, { 'x-admin-secret': 'wrong' });
    expect([method, answer.status]).toEqual([method, 403]);
  }
});
