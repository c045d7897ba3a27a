import { ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { UpdateMode } from '../../src/gen/gatehouse/v1/tuple_service_pb.ts';
import { TupleUpdate_Op as Op } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { modelCall } from '../support/model-calls.ts';
import { call } from '../support/service.ts';
import { threeInstances } from '../support/three-instances.ts';
import { authzOver, exported, type JsonTuple, linesOf, postLines, tuplesOver } from './support.ts';

/* A project that refuses unknown relations refuses them in what gatehouse.v1 inserts and imports, on every instance. */

const three = threeInstances();

const GATE =
  'namespace paper {\n  relation author: [user]\n}\nopen namespace legacy {\n  relation owner: [user]\n}\n';
const STRICT = { refuse_unknown_relations: true };

let made = 0;

async function newProject(fields: object = STRICT, gate = GATE): Promise<string> {
  const id = `unknown-${String(++made)}`;
  const [instance] = three.instances;
  const created = await call(instance, 'AdminService/CreateProject', { id, name: id, ...fields });
  expect(created.status).toBe(200);
  const written = await modelCall(instance, 'WriteModel', { project_id: id, model: { gate } });
  expect(written.body['activation']).toMatchObject({ state: 'MODEL_ACTIVATION_STATE_ACTIVE' });
  return id;
}

const tupleOf = (namespace: string, relation: string): JsonTuple => ({
  namespace,
  object_id: 'a',
  relation,
  subject: { user_id: 'ann' },
});

const update = (op: Op, namespace: string, relation: string) => ({
  op,
  tuple: {
    namespace,
    objectId: 'a',
    relation,
    subject: { kind: { case: 'userId' as const, value: 'ann' } },
  },
});

/** Namespace and relation, the missing part, and the problem of the message. */
const UNKNOWN = [
  ['papers', 'author', 'namespace', 'the model has no namespace "papers"; did you mean "paper"?'],
  [
    'paper',
    'autor',
    'relation',
    'the model has no relation "autor" in the namespace "paper"; did you mean "author"?',
  ],
] as const;

async function failureOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => '',
    (error: unknown) => ConnectError.from(error).message,
  );
}

test.each(UNKNOWN)('an insert on %s#%s', async (namespace, relation, part, problem) => {
  const projectId = await newProject();
  const fine = update(Op.INSERT, 'paper', 'author');
  const updates = [fine, update(Op.INSERT, namespace, relation)];
  const message = `[invalid_argument] updates[1].tuple.${part}: ${problem}`;
  for (const instance of three.instances) {
    for (const wire of ['connect-json', 'connect', 'grpc'] as const) {
      const client = tuplesOver(instance, wire);
      expect(await failureOf(client.writeTuples({ projectId, updates }))).toBe(message);
    }
    const client = tuplesOver(instance);
    const modes = [UpdateMode.ABSENT, UpdateMode.ABSENT];
    const mustNotExist = { case: 'mustNotExist' as const, value: { namespace: 'legacy' } };
    for (const how of [
      { modes },
      { idempotencyKey: 'k' },
      { preconditions: [{ kind: mustNotExist }] },
    ]) {
      expect(await failureOf(client.writeTuples({ projectId, updates, ...how }))).toBe(message);
    }
  }
  expect(await exported(three.instances[0], `?project_id=${projectId}`)).toEqual([]);
  // The key was not used, and what the model has may be written, as may anything in an open namespace.
  const client = tuplesOver(three.instances[1]);
  const known = [fine, update(Op.INSERT, 'legacy', 'any'), update(Op.INSERT, 'group', 'member')];
  const written = await client.writeTuples({ projectId, updates: known, idempotencyKey: 'k' });
  expect(written.replayed).toBe(false);
});

test.each(UNKNOWN)('an import of %s#%s', async (namespace, relation, part, problem) => {
  const projectId = await newProject();
  const tuples = [tupleOf('paper', 'author'), tupleOf(namespace, relation)];
  for (const more of ['', '&dry_run=true', '&import_id=i']) {
    const query = `?project_id=${projectId}${more}`;
    const refused = await postLines(three.instances[2], query, linesOf(tuples));
    expect([refused.status, refused.body['code']]).toEqual([400, 'invalid_argument']);
    expect(refused.body['message']).toBe(`tuples[1].${part}: ${problem}`);
    expect(JSON.stringify(refused.body)).toContain('RELATION_UNKNOWN');
  }
  const client = tuplesOver(three.instances[0], 'grpc');
  const streamed = client.importTuples(
    (async function* parts() {
      await Promise.resolve();
      yield { options: { projectId } };
      yield { tuples: [update(Op.INSERT, namespace, relation).tuple] };
    })(),
  );
  expect(await failureOf(streamed)).toBe(`[invalid_argument] tuples[0].${part}: ${problem}`);
  expect(await exported(three.instances[0], `?project_id=${projectId}`)).toEqual([]);
});

test('deletes never are refused, nor is workspace.v1, nor a project that does not ask for it', async () => {
  const projectId = await newProject();
  const insert = update(Op.INSERT, 'papers', 'author');
  const remove = update(Op.DELETE, 'papers', 'author');
  for (const instance of three.instances) {
    await authzOver(instance).writeRelationTuples({ projectId, updates: [insert] });
    const stored = `?project_id=${projectId}`;
    expect(await exported(instance, stored)).toEqual([tupleOf('papers', 'author')]);
    const gone = [remove, update(Op.DELETE, 'paper', 'autor')];
    await tuplesOver(instance).writeTuples({ projectId, updates: gone });
    expect(await exported(instance, stored)).toEqual([]);
    await authzOver(instance).writeRelationTuples({ projectId, updates: [insert] });
    const filter = { namespace: 'papers', objectId: 'a' };
    expect((await tuplesOver(instance).deleteTuples({ projectId, filter })).count).toBe(1n);
  }
  for (const free of [
    await newProject({}),
    await newProject(STRICT, 'namespace paper {\n  relation author\n}\n'),
  ]) {
    const tuples = [tupleOf('papers', 'author')];
    await tuplesOver(three.instances[1]).writeTuples({ projectId: free, updates: [insert] });
    const { status } = await postLines(three.instances[2], `?project_id=${free}`, linesOf(tuples));
    expect(status).toBe(200);
  }
});

test('the setting holds on every instance at once, and a write that was done is replayed', async () => {
  const projectId = await newProject({});
  const [first, second, third] = three.instances;
  const updates = [update(Op.INSERT, 'papers', 'author')];
  const request = { projectId, updates, idempotencyKey: 'once' };
  for (const instance of three.instances) await tuplesOver(instance).writeTuples(request);
  const body = { id: projectId, ...STRICT };
  expect((await call(first, 'AdminService/UpdateProject', body)).status).toBe(200);
  for (const instance of [second, third]) {
    const refused = tuplesOver(instance).writeTuples({ projectId, updates });
    expect(await failureOf(refused)).toContain('updates[0].tuple.namespace');
    expect((await tuplesOver(instance).writeTuples(request)).replayed).toBe(true);
  }
  const off = { id: projectId, refuse_unknown_relations: false };
  expect((await call(third, 'AdminService/UpdateProject', off)).status).toBe(200);
  for (const instance of [first, second]) {
    await tuplesOver(instance).writeTuples({ projectId, updates });
  }
});
