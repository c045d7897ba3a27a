import { afterAll, expect, test } from 'vitest';
import { type Instance, startInstance } from '../support/instance.ts';
import { docModel, modelCall, modelClient } from '../support/model-calls.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { call } from '../support/service.ts';

const database = await createTestDatabase();
const first = await startInstance(database);
const second = await startInstance(database);
const third = await startInstance(database);
afterAll(async () => {
  await first.stop();
  await second.stop();
  await third.stop();
  await database.drop();
  expect([first.failures, second.failures, third.failures]).toEqual([[], [], []]);
});

const PLAIN = docModel({ viewer: {}, editor: {} });
const EDITORS_VIEW = docModel({
  viewer: { union: [{ this: {} }, { computed: 'editor' }] },
  editor: {},
});

const write = (instance: Instance, json: string, expected: string) =>
  modelCall(instance, 'WriteModel', { model: { json }, expected_version: expected });

async function mayView(instance: Instance, user: string): Promise<unknown> {
  const asked = { namespace: 'doc', object_id: 'd', relation: 'viewer', subject_user_id: user };
  const { body } = await call(instance, 'AuthzService/Check', asked);
  return body['allowed'];
}

/** Answers about eve that would become a deny under this model. */
async function newDenies(instance: Instance, json: string): Promise<number> {
  const asked = { namespace: 'doc', objectId: 'd', relation: 'viewer', subjectUserId: 'eve' };
  const model = { form: { case: 'json' as const, value: json } };
  let changes = 0;
  for await (const answer of modelClient(instance).previewModel({
    model,
    questions: { given: [asked] },
  })) {
    for (const { allowedBefore, allowedAfter } of answer.changes) {
      if (allowedBefore && !allowedAfter) changes++;
    }
  }
  return changes;
}

test('of writers on three instances that expect the same version exactly one wins, each time', async () => {
  await write(first, PLAIN, '0');
  for (let version = 1; version < 6; version++) {
    const answers = await Promise.all(
      [first, second, third, first].map((instance, index) =>
        write(instance, index % 2 === 0 ? PLAIN : EDITORS_VIEW, String(version)),
      ),
    );
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect([version, statuses]).toEqual([version, [200, 412, 412, 412]]);
  }
  for (const instance of [first, second, third]) {
    const { body } = await modelCall(instance, 'ListModelVersions', {});
    const versions = (body['versions'] as { version: string; state: string }[]).map(
      ({ version, state }) => `${version} ${state.slice('MODEL_ACTIVATION_STATE_'.length)}`,
    );
    expect(versions).toEqual([
      '6 ACTIVE',
      '5 REPLACED',
      '4 REPLACED',
      '3 REPLACED',
      '2 REPLACED',
      '1 REPLACED',
    ]);
  }
});

test('what one instance wrote or rolled back decides on the others at once, and is what they preview against', async () => {
  const tuple = {
    namespace: 'doc',
    object_id: 'd',
    relation: 'editor',
    subject: { user_id: 'eve' },
  };
  await call(first, 'AuthzService/WriteRelationTuples', { updates: [{ op: 'OP_INSERT', tuple }] });
  await write(first, EDITORS_VIEW, '0');
  expect(await mayView(second, 'eve')).toBe(true);
  expect(await mayView(third, 'eve')).toBe(true);
  expect(await newDenies(third, PLAIN)).toBe(1);
  await write(second, PLAIN, '0');
  expect(await mayView(third, 'eve')).toBe(false);
  expect(await newDenies(first, PLAIN)).toBe(0);
  await modelCall(first, 'RollBackModel', {});
  expect(await mayView(second, 'eve')).toBe(true);
  expect(await newDenies(third, PLAIN)).toBe(1);
  expect(await newDenies(second, PLAIN)).toBe(1);
});
