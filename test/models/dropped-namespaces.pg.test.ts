import { expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { modelCall } from '../support/model-calls.ts';
import { query } from '../support/query-call.ts';
import { call } from '../support/service.ts';

/* A namespace or relation of the model in force that the next one leaves out does not end its rules while tuples are stored under it. */

const { instance } = await instanceForFile();

/** `wiki` lets everybody read but whom it bars. */
const WIKI =
  'namespace wiki {\n  relation barred: [user]\n  relation reader: [user, user:*] but not barred\n}\n';
const PLAIN_WIKI =
  'namespace wiki {\n  relation barred\n  relation reader: this but not barred\n}\n';
const SHELF = 'namespace shelf {\n  relation reader: [user]\n}\n';
const PLAIN_SHELF = 'namespace shelf {\n  relation reader\n}\n';
const EMPTY = '{"namespaces":{}}';
const NEXT = {
  typed: { gate: SHELF },
  'not typed': { gate: PLAIN_SHELF },
  empty: { json: EMPTY },
  renamed: { gate: WIKI.replace('namespace wiki', 'namespace wikis') },
} as const;

let made = 0;

/** A project with the model, that holds the barred eve. */
async function barring(gate = WIKI, fields: object = {}): Promise<string> {
  const id = `dropped-${String(++made)}`;
  await call(instance, 'AdminService/CreateProject', { id, name: id, ...fields });
  const written = await modelCall(instance, 'WriteModel', { project_id: id, model: { gate } });
  expect(written.body['activation']).toMatchObject({ state: 'MODEL_ACTIVATION_STATE_ACTIVE' });
  await insert(id, ['wiki', 'reader', { wildcard: true }], ['wiki', 'barred', { user_id: 'eve' }]);
  expect(await mayRead(id)).toBe(false);
  return id;
}

type Entry = readonly [namespace: string, relation: string, subject: object];

function updatesOf(entries: readonly Entry[], op: 'OP_INSERT' | 'OP_DELETE'): object[] {
  return entries.map(([namespace, relation, subject]) => ({
    op,
    tuple: { namespace, object_id: 'home', relation, subject },
  }));
}

async function insert(project_id: string, ...entries: readonly Entry[]): Promise<void> {
  const updates = updatesOf(entries, 'OP_INSERT');
  const { status } = await call(instance, 'AuthzService/WriteRelationTuples', {
    project_id,
    updates,
  });
  expect(status).toBe(200);
}

async function mayRead(project_id: string): Promise<unknown> {
  const question = { namespace: 'wiki', object_id: 'home', relation: 'reader' };
  const subject = { user_id: 'eve' };
  const asked = { scope: { project_id }, question: { ...question, subject } };
  return (await query(instance, 'Check', asked)).body['allowed'];
}

const REFUSED = {
  state: 'MODEL_ACTIVATION_STATE_REFUSED',
  tuples_scanned: '2',
  tuples_refused: '2',
  dropped_namespaces: ['wiki'],
};
const PROBLEM =
  'namespace: "wiki" is declared by the model in force and left out by the next: its tuples would count without rules';

test.each(Object.entries(NEXT))('WriteModel, to a model that is %s', async (_name, model) => {
  for (const gate of [WIKI, PLAIN_WIKI]) {
    const project_id = await barring(gate);
    for (const dry_run of [true, false]) {
      const { status, body } = await modelCall(instance, 'WriteModel', {
        project_id,
        model,
        dry_run,
      });
      expect(status).toBe(200);
      expect(body['activation']).toMatchObject({
        ...REFUSED,
        version: dry_run ? '0' : '2',
        examples: [
          {
            tuple: { namespace: 'wiki', relation: 'barred', subject: { user_id: 'eve' } },
            problem: PROBLEM,
          },
          { tuple: { namespace: 'wiki', relation: 'reader' }, problem: PROBLEM },
        ],
      });
      expect(await mayRead(project_id)).toBe(false);
    }
    const found = await modelCall(instance, 'GetModelActivation', { project_id });
    expect(found.body['activation']).toMatchObject({ ...REFUSED, version: '2' });
    // What is written afterwards goes by the model in force alone.
    await insert(project_id, ['wiki', 'barred', { user_id: 'mal' }]);
  }
});

test.each(Object.entries(NEXT))('UpdateProject, to a model that is %s', async (_name, model) => {
  const id = await barring();
  const body = { project_id: id, model, dry_run: true };
  expect((await modelCall(instance, 'WriteModel', body)).status).toBe(200);
  const valid = await modelCall(instance, 'ValidateModel', { model });
  const model_json = valid.body['model_json'];
  const refused = await call(instance, 'AdminService/UpdateProject', { id, model_json });
  expect([refused.status, refused.body['code']]).toEqual([412, 'failed_precondition']);
  expect(JSON.stringify(refused.body)).toContain('MODEL_TUPLES_REFUSED');
  expect(refused.body['message']).toBe(
    `model_json: 2 of 2 stored tuples do not fit; wiki:home#barred of tenant "": ${PROBLEM}; ` +
      `wiki:home#reader of tenant "": ${PROBLEM}`,
  );
  expect(await mayRead(id)).toBe(false);
});

test('RollBackModel, to what was before the namespace', async () => {
  for (const first of [SHELF, PLAIN_SHELF]) {
    const id = `dropped-${String(++made)}`;
    const write = (model: object) => modelCall(instance, 'WriteModel', { project_id: id, model });
    await call(instance, 'AdminService/CreateProject', { id, name: id });
    await write({ gate: first });
    await write({ gate: SHELF + WIKI });
    await insert(
      id,
      ['wiki', 'reader', { wildcard: true }],
      ['wiki', 'barred', { user_id: 'eve' }],
    );
    const back = await modelCall(instance, 'RollBackModel', { project_id: id });
    expect(back.body['activation']).toMatchObject({ ...REFUSED, version: '3' });
    expect(await mayRead(id)).toBe(false);
    const named = { project_id: id, version: '1', force: true };
    const forced = await modelCall(instance, 'RollBackModel', named);
    expect(forced.body['activation']).toMatchObject({
      ...REFUSED,
      state: 'MODEL_ACTIVATION_STATE_ACTIVE',
    });
    expect(await mayRead(id)).toBe(true);
  }
});

test('force: they count as they are stored, and answer and version name the namespace', async () => {
  for (const model of Object.values(NEXT)) {
    const project_id = await barring();
    const body = { project_id, model, force: true };
    const forced = await modelCall(instance, 'WriteModel', body);
    const active = { ...REFUSED, state: 'MODEL_ACTIVATION_STATE_ACTIVE', version: '2' };
    expect(forced.body['activation']).toMatchObject(active);
    const { body: list } = await modelCall(instance, 'ListModelVersions', { project_id });
    expect(list['versions']).toMatchObject([
      { version: '2', forced: true, dropped_namespaces: ['wiki'] },
      { version: '1', forced: false, dropped_namespaces: [] },
    ]);
    const { body: got } = await modelCall(instance, 'GetModel', { project_id });
    expect(got['version']).toMatchObject({ forced: true, dropped_namespaces: ['wiki'] });
    expect(await mayRead(project_id)).toBe(true);
    await insert(project_id, ['wiki', 'reader', { user_id: 'ann' }]);
    // The model in force declares it no more: the next one drops nothing.
    const after = await modelCall(instance, 'WriteModel', { project_id, model });
    expect(after.body['activation']).toMatchObject({
      state: 'MODEL_ACTIVATION_STATE_ACTIVE',
      dropped_namespaces: [],
    });
  }
});

test('a relation that is renamed, in models that are not typed', async () => {
  const renamed = { gate: PLAIN_WIKI.replaceAll('barred', 'banned') };
  for (const gate of [WIKI, PLAIN_WIKI]) {
    const project_id = await barring(gate);
    const problem =
      'relation: "barred" of "wiki" is declared by the model in force and left out by the next: its tuples would count without rules';
    const found = { tuples_scanned: '2', tuples_refused: '1', dropped_namespaces: [] };
    for (const dry_run of [true, false]) {
      const body = { project_id, model: renamed, dry_run };
      const refused = await modelCall(instance, 'WriteModel', body);
      expect(refused.body['activation']).toMatchObject({
        ...found,
        state: 'MODEL_ACTIVATION_STATE_REFUSED',
        examples: [{ tuple: { relation: 'barred', subject: { user_id: 'eve' } }, problem }],
      });
      expect(await mayRead(project_id)).toBe(false);
    }
    const body = { project_id, model: renamed, force: true };
    const forced = await modelCall(instance, 'WriteModel', body);
    expect(forced.body['activation']).toMatchObject({
      ...found,
      state: 'MODEL_ACTIVATION_STATE_ACTIVE',
    });
    expect(await mayRead(project_id)).toBe(true);
  }
  // Without its tuples it goes.
  const project_id = await barring(PLAIN_WIKI);
  const updates = updatesOf([['wiki', 'barred', { user_id: 'eve' }]], 'OP_DELETE');
  await call(instance, 'AuthzService/WriteRelationTuples', { project_id, updates });
  const written = await modelCall(instance, 'WriteModel', { project_id, model: renamed });
  expect(written.body['activation']).toMatchObject({ state: 'MODEL_ACTIVATION_STATE_ACTIVE' });
});

test('a namespace without tuples goes, and one that is declared with fewer rules is none that is dropped', async () => {
  const id = `dropped-${String(++made)}`;
  await call(instance, 'AdminService/CreateProject', { id, name: id });
  const write = async (model: object): Promise<unknown> =>
    (await modelCall(instance, 'WriteModel', { project_id: id, model })).body['activation'];
  const active = { state: 'MODEL_ACTIVATION_STATE_ACTIVE', dropped_namespaces: [] };
  await insert(id, ['resource', 'viewer', { user_id: 'ann' }]);
  // The built-in resource goes with the built-in model, and so does what no model ever declared.
  expect(await write({ gate: SHELF + WIKI })).toMatchObject(active);
  await insert(id, ['shelf', 'reader', { user_id: 'ann' }], ['loose', 'r', { user_id: 'ann' }]);
  expect(await write({ gate: SHELF })).toMatchObject(active);
  expect(await write({ gate: `open ${PLAIN_SHELF}` })).toMatchObject(active);
});

test('a group of the model gives way to the built-in one, but for relations that this has not', async () => {
  const OWN =
    'namespace group {\n  relation left: [user]\n  relation member: [user, group#member] but not left\n}\n';
  const id = `dropped-${String(++made)}`;
  await call(instance, 'AdminService/CreateProject', { id, name: id });
  const write = async (gate: string): Promise<unknown> => {
    const body = { project_id: id, model: { gate } };
    return (await modelCall(instance, 'WriteModel', body)).body['activation'];
  };
  await write(OWN);
  await insert(id, ['group', 'member', { user_id: 'ann' }]);
  expect(await write(PLAIN_SHELF)).toMatchObject({ state: 'MODEL_ACTIVATION_STATE_ACTIVE' });
  await write(OWN);
  await insert(id, ['group', 'left', { user_id: 'ann' }]);
  expect(await write(PLAIN_SHELF)).toMatchObject({
    state: 'MODEL_ACTIVATION_STATE_REFUSED',
    tuples_scanned: '2',
    tuples_refused: '1',
    dropped_namespaces: ['group'],
  });
});
