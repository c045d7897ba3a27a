import { afterAll, beforeAll, expect, test } from 'vitest';
import { olderTransaction } from '../../../test/support/older-transaction.ts';
import { type TestDatabase, createTestDatabase } from '../../../test/support/postgres.ts';
import { type TestServices, createTestServices } from '../../../test/support/services.ts';
import type { WriteMeta } from '../ports.ts';
import { ModelHistory } from './model-history.ts';

/* Beside writers, and in the audit log: a model that leaves out a namespace of the one in force. */

let database: TestDatabase;
let services: TestServices;
/** Another instance, which is not notified of anything. */
let other: TestServices;

beforeAll(async () => {
  database = await createTestDatabase();
  services = await createTestServices(database, { activationWaitMs: 0 });
  other = await createTestServices(database);
});
afterAll(async () => {
  await services.close();
  await other.close();
  await database.drop();
});

const LOCKED = '{"namespaces":{"room":{"relations":{"key":{}}},"hall":{"relations":{"key":{}}}}}';
const HALL = '{"namespaces":{"hall":{"relations":{"key":{}}}}}';
const meta: WriteMeta = {
  rpc: 'WriteRelationTuples',
  actingUserId: null,
  requestId: 'r',
  deadlineMs: Infinity,
};
const author = { createdBy: 'ann', rpc: 'WriteModel', requestId: 'r' };

async function newProject(id: string): Promise<void> {
  const fields = { name: id, modelJson: LOCKED, dataRegion: '', maxCheckReads: 0 };
  await services.projects.create({ id, ...fields }, 'r');
}

function write(id: string, namespace: string, by: TestServices, op: 'insert' | 'delete') {
  const subject = { kind: 'user', userId: 'u' } as const;
  const tuple = { namespace, objectId: 'a', relation: 'key', subject };
  return by.writer.write({ projectId: id, tenantId: '' }, [{ op, tuple }], meta);
}

/** By whom it is not awaited that the model is in force. */
async function put(projectId: string, modelJson: string, force = false) {
  const { projects, settingsSource, staged: models } = services;
  const history = new ModelHistory({ pool: database.pool, projects, settingsSource, models });
  const request = { projectId, modelJson, modelGate: '', expectedVersion: null, comment: '' };
  return await history.write({ ...request, force, author, deadlineMs: Infinity });
}

test('while it is pending no tuple comes into the namespace, on any instance; deletes go on', async () => {
  await newProject('beside');
  // Known to the other instance as it was.
  await write('beside', 'hall', other, 'insert');
  const { end } = await olderTransaction(database.pool);
  expect(await put('beside', HALL)).toMatchObject({ activation: { state: 'pending' } });
  for (const by of [services, other]) {
    await expect(write('beside', 'room', by, 'insert')).rejects.toMatchObject({
      reason: 'TUPLE_NOT_ADMITTED',
      message:
        'updates[0].tuple.namespace: "room" is declared by the model in force and left out by the next: ' +
        'its tuples would count without rules (by the model that is pending)',
    });
    await write('beside', 'room', by, 'delete');
    await write('beside', 'hall', by, 'insert');
    await write('beside', 'loose', by, 'insert');
  }
  await end();
  const { staged } = other;
  expect(await staged.settled('beside', 2, Infinity)).toMatchObject({ state: 'active' });
  // Nobody declares it any more: it takes everything.
  for (const by of [services, other]) await write('beside', 'room', by, 'insert');
  expect([...services.activationErrors, ...other.activationErrors]).toEqual([]);
});

test('a tuple of a transaction that was under way is found', async () => {
  await newProject('under-way');
  const client = await database.pool.connect();
  await client.query('begin');
  await client.query(`insert into shard (project_id, tenant_id) values ('under-way', 't')`);
  await client.query(
    `insert into relation_tuple (project_id, tenant_id, namespace, object_id, relation,
       subject_namespace, subject_id, subject_relation, seq)
     values ('under-way', 't', 'room', 'a', 'key', '', 'u', '', 1)`,
  );
  await put('under-way', HALL);
  await services.activations.run(AbortSignal.timeout(300));
  expect(await services.staged.activation('under-way')).toMatchObject({ state: 'pending' });
  await client.query('commit');
  client.release();
  expect(await other.staged.settled('under-way', 2, Infinity)).toMatchObject({
    state: 'refused',
    tuplesRefused: 1,
    droppedNamespaces: ['room'],
  });
});

test('the look goes on over pages: every tuple is counted, and the namespaces stay named', async () => {
  await newProject('pages');
  const updates = Array.from({ length: 25 }, (_, i) => ({
    op: 'insert' as const,
    tuple: {
      namespace: i < 4 ? 'room' : 'hall',
      objectId: String(i),
      relation: 'key',
      subject: { kind: 'user' as const, userId: 'u' },
    },
  }));
  for (const tenantId of ['a', 'b']) {
    await services.writer.write({ projectId: 'pages', tenantId }, updates, meta);
  }
  await put('pages', '{"namespaces":{"lobby":{"relations":{}},"hall":{"relations":{"key":{}}}}}');
  const found = await other.staged.settled('pages', 2, Infinity);
  expect(found).toMatchObject({
    state: 'refused',
    tuplesScanned: 50,
    tuplesRefused: 8,
    droppedNamespaces: ['room'],
  });
  expect(found.examples).toHaveLength(3);
  await put('pages', '{"namespaces":{}}');
  expect(await other.staged.settled('pages', 3, Infinity)).toMatchObject({
    tuplesRefused: 50,
    droppedNamespaces: ['hall', 'room'],
  });
});

test('the audit record of what was forced or refused names the namespaces', async () => {
  await newProject('audited');
  await write('audited', 'room', services, 'insert');
  await put('audited', HALL);
  await other.staged.settled('audited', 2, Infinity);
  await put('audited', HALL, true);
  await other.staged.settled('audited', 3, Infinity);
  const records = [...services.changed, ...other.changed]
    .filter(({ projectId }) => projectId === 'audited')
    .map(({ operation, model }) => [operation, model?.version, model?.droppedNamespaces]);
  expect(records).toEqual(
    expect.arrayContaining([
      ['refuse_model', 2, ['room']],
      ['activate_model', 3, ['room']],
    ]),
  );
  expect(records).toHaveLength(5);
});
