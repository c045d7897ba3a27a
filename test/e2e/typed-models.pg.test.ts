import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ModelActivationState, ModelService } from '../../src/gen/gatehouse/v1/model_service_pb.ts';
import { anyCharacter } from '../support/any-text.ts';
import { instanceForFile } from '../support/instance.ts';
import { docModel, modelCall, modelClient } from '../support/model-calls.ts';
import { call } from '../support/service.ts';

const { database, instance } = await instanceForFile();

const TYPED = docModel({
  banned: { subjects: ['user'] },
  viewer: {
    subjects: ['user', 'group#member'],
    exclusion: { include: { this: {} }, exclude: { computed: 'banned' } },
  },
});
const TYPO = docModel({
  banned: {},
  viewer: { exclusion: { include: {}, exclude: { computed: 'baned' } } },
});

let made = 0;
async function newProject(modelJson = ''): Promise<string> {
  const id = `typed${++made}`;
  const { status } = await call(instance, 'AdminService/CreateProject', {
    id,
    name: id,
    model_json: modelJson,
  });
  expect(status).toBe(200);
  return id;
}

function write(projectId: string, subject: object, relation = 'viewer', objectId = 'a') {
  const tuple = { namespace: 'doc', object_id: objectId, relation, subject };
  const updates = [{ op: 'OP_INSERT', tuple }];
  return call(instance, 'AuthzService/WriteRelationTuples', { project_id: projectId, updates });
}
const group = { set: { namespace: 'group', object_id: 'g', relation: '' } };

describe('ValidateModel', () => {
  test('tells all that is wrong, with paths, and stores nothing', async () => {
    const { body } = await modelCall(instance, 'ValidateModel', { model: { json: TYPO } });
    expect(body).toEqual({
      valid: false,
      errors: [
        {
          path: '$.namespaces.doc.relations.viewer.exclusion.exclude.computed',
          message: 'the namespace "doc" declares no relation "baned"; did you mean "banned"?',
          line: 0,
          column: 0,
        },
      ],
      warnings: [],
      model_json: '',
      model_gate: '',
      typed: false,
    });
  });

  test('gives a model that is right in both forms', async () => {
    const { body } = await modelCall(instance, 'ValidateModel', { model: { json: TYPED } });
    expect(body).toMatchObject({ valid: true, typed: true, errors: [], model_json: TYPED });
    const gate = body['model_gate'] as string;
    expect(gate).toContain('banned');
    const back = await modelCall(instance, 'ValidateModel', { model: { gate } });
    expect(back.body).toMatchObject({ valid: true, typed: true, model_gate: gate });
    expect(JSON.parse(back.body['model_json'] as string)).toMatchObject(
      JSON.parse(TYPED) as object,
    );
  });

  test('places problems of the readable form by line and column', async () => {
    const { body } = await modelCall(instance, 'ValidateModel', { model: { json: TYPED } });
    const gate = (body['model_gate'] as string).replace(
      /(but not|-|except|minus)\s+banned/,
      (text) => text.replace('banned', 'baned'),
    );
    expect(gate).toContain('baned');
    const wrong = await modelCall(instance, 'ValidateModel', { model: { gate } });
    const [error] = wrong.body['errors'] as Record<string, unknown>[];
    expect(error).toMatchObject({
      path: '$.namespaces.doc.relations.viewer.exclusion.exclude.computed',
    });
    const line = gate.split('\n')[Number(error?.['line']) - 1] ?? '';
    expect(line).toContain('baned');
    const broken = await modelCall(instance, 'ValidateModel', {
      model: { gate: `${gate}\n}}} nonsense` },
    });
    expect(broken.body).toMatchObject({ valid: false });
    expect((broken.body['errors'] as Record<string, unknown>[])[0]?.['line']).toBeGreaterThan(0);
  });

  test('needs the operator secret and a model', async () => {
    const without = await modelCall(
      instance,
      'ValidateModel',
      { model: { json: TYPED } },
      { 'x-admin-secret': 'no' },
    );
    expect(without.status).toBe(403);
    for (const body of [{}, { model: {} }, { model: { json: '' } }, { model: { gate: '' } }]) {
      const { status, body: error } = await modelCall(instance, 'ValidateModel', body);
      expect([status, error['code']]).toEqual([400, 'invalid_argument']);
    }
  });

  const json = fc.oneof(
    fc.json(),
    fc.string({ unit: anyCharacter }),
    fc
      .record({
        relation: fc.oneof(
          fc.constantFrom('viewer', 'banned', 'constructor', '__proto__'),
          fc.string(),
        ),
        value: fc.jsonValue(),
        subjects: fc.array(
          fc.oneof(
            fc.constantFrom('user', 'user:*', 'doc', 'doc#viewer', 'group#member', '#', 'a#b#c'),
            fc.jsonValue(),
          ),
        ),
      })
      .map(({ relation, value, subjects }) =>
        docModel({
          [relation]: { subjects, union: [{ computed: relation }, value] },
          banned: { subjects },
        }),
      ),
    fc
      .integer({ min: 1, max: 3_000 })
      .map((depth) => `{"namespaces":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`),
  );
  test('answers whatever it is given, and says true only of what can be written', async () => {
    const given = fc.asyncProperty(json, fc.constantFrom('json', 'gate'), async (text, form) => {
      const answer = await modelCall(instance, 'ValidateModel', { model: { [form]: text } });
      const { status, body } = answer;
      expect([200, 400]).toContain(status);
      if (status === 400) return;
      if (body['valid'] !== true) {
        expect(body['errors']).not.toEqual([]);
        return;
      }
      const project = { id: `fuzz${++made}`, name: 'f', model_json: body['model_json'] };
      expect((await call(instance, 'AdminService/CreateProject', project)).status).toBe(200);
    });
    await fc.assert(given, { numRuns: 150 });
  });
});

describe('a typed model', () => {
  test('is written, in force, and refuses what does not fit by name of the field', async () => {
    const id = await newProject();
    const { status, body } = await modelCall(instance, 'WriteModel', {
      project_id: id,
      model: { json: TYPED },
    });
    expect([status, body['activation']]).toMatchObject([
      200,
      { state: 'MODEL_ACTIVATION_STATE_ACTIVE' },
    ]);
    expect((await write(id, { user_id: 'u' })).status).toBe(200);
    const refused = await write(id, { user_id: 'u' }, 'baned');
    expect(refused.status).toBe(400);
    expect(refused.body['message']).toBe(
      'updates[0].tuple.relation: the model declares no relation "baned" on doc; did you mean "banned"?',
    );
    const misfit = await write(id, group);
    expect(misfit.body['message']).toContain('doc#viewer admits user, group#member, not group');
    expect(await check(id)).toBe(true);
    expect((await write(id, { user_id: 'u' }, 'banned')).status).toBe(200);
    expect(await check(id)).toBe(false);
  });

  async function check(projectId: string): Promise<unknown> {
    const question = { namespace: 'doc', object_id: 'a', relation: 'viewer', subject_user_id: 'u' };
    return (await call(instance, 'AuthzService/Check', { project_id: projectId, ...question }))
      .body['allowed'];
  }

  test('is refused with a count and examples, or forced; UpdateProject goes by the same rules', async () => {
    const id = await newProject();
    for (let i = 0; i < 5; i++)
      expect((await write(id, group, 'viewer', `o${i}`)).status).toBe(200);
    const dry = { project_id: id, model: { json: TYPED }, dry_run: true };
    expect((await modelCall(instance, 'WriteModel', dry)).body).toMatchObject({
      version: '0',
      activation: { version: '0', state: 'MODEL_ACTIVATION_STATE_REFUSED', tuples_refused: '5' },
    });
    const fits = { ...dry, model: { json: docModel({ viewer: { subjects: ['group'] } }) } };
    expect((await modelCall(instance, 'WriteModel', fits)).body).toMatchObject({
      activation: { state: 'MODEL_ACTIVATION_STATE_ACTIVE', tuples_scanned: '5' },
    });
    const refused = await modelCall(instance, 'WriteModel', {
      project_id: id,
      model: { json: TYPED },
    });
    expect(refused.body).toMatchObject({
      version: '1',
      activation: {
        state: 'MODEL_ACTIVATION_STATE_REFUSED',
        tuples_scanned: '5',
        tuples_refused: '5',
      },
    });
    const { activation } = (await modelCall(instance, 'GetModelActivation', { project_id: id }))
      .body as {
      activation: { examples: Record<string, unknown>[] };
    };
    expect(activation.examples).toHaveLength(3);
    expect(activation.examples[0]).toMatchObject({
      tuple: {
        namespace: 'doc',
        object_id: 'o0',
        relation: 'viewer',
        subject: { set: { namespace: 'group' } },
      },
      problem: 'subject: doc#viewer admits user, group#member, not group',
    });
    const updated = await call(instance, 'AdminService/UpdateProject', {
      id,
      name: 'New',
      model_json: TYPED,
    });
    expect([updated.status, updated.body['code']]).toEqual([412, 'failed_precondition']);
    expect(updated.body['message']).toContain('5 of 5 stored tuples do not fit');
    expect((await call(instance, 'AdminService/GetProject', { id })).body['project']).toMatchObject(
      {
        name: 'New',
        model_json: '',
      },
    );
    const forced = await modelCall(instance, 'WriteModel', {
      project_id: id,
      model: { json: TYPED },
      force: true,
    });
    expect(forced.body).toMatchObject({
      activation: { state: 'MODEL_ACTIVATION_STATE_ACTIVE', tuples_refused: '5' },
    });
    expect((await write(id, group)).status).toBe(400);
  });

  test('by gRPC and Connect: pending while a writer is under way, and given up', async () => {
    const projectId = await newProject();
    const writer = await database.pool.connect();
    await writer.query('begin');
    await writer.query(`select 1 from shard for update`);
    const headers = {
      authorization: `Bearer ${instance.token}`,
      'x-admin-secret': instance.adminSecret,
    };
    const grpc = createClient(ModelService, createGrpcTransport({ baseUrl: instance.baseUrl }));
    const model = { form: { case: 'json' as const, value: TYPED } };
    const { activation } = await grpc.writeModel(
      { projectId, model },
      { headers, timeoutMs: 1_000 },
    );
    expect(activation?.state).toBe(ModelActivationState.PENDING);
    const connect = modelClient(instance);
    expect((await connect.getModelActivation({ projectId })).activation?.state).toBe(
      ModelActivationState.PENDING,
    );
    const cancelled = await grpc.cancelModelActivation({ projectId }, { headers });
    expect(cancelled.activation).toMatchObject({
      version: 1n,
      state: ModelActivationState.CANCELLED,
    });
    await expect(connect.cancelModelActivation({ projectId })).rejects.toThrow(
      /no version .* is pending/,
    );
    await writer.query('rollback');
    writer.release();
    expect((await write(projectId, group)).status).toBe(200);
  });

  test('unknown projects and malformed requests', async () => {
    for (const method of ['GetModelActivation', 'CancelModelActivation']) {
      expect((await modelCall(instance, method, { project_id: 'nowhere' })).status).toBe(404);
      expect((await modelCall(instance, method, { project_id: 'NO SUCH' })).status).toBe(400);
      expect((await modelCall(instance, method, { project: 'x' })).status).toBe(400);
      expect((await modelCall(instance, method, {}, { 'x-admin-secret': 'x' })).status).toBe(403);
    }
    const { body } = await modelCall(instance, 'GetModelActivation', {});
    expect(body).toEqual({
      activation: {
        version: '0',
        state: 'MODEL_ACTIVATION_STATE_UNSPECIFIED',
        tuples_scanned: '0',
        tuples_refused: '0',
        examples: [],
        dropped_namespaces: [],
      },
    });
  });
});
