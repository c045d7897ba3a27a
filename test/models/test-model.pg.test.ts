import { expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { docModel, modelCall } from '../support/model-calls.ts';
import { call } from '../support/service.ts';

const { database, instance } = await instanceForFile();

const PLAIN = docModel({ viewer: {}, editor: {} });
const EDITORS_VIEW = docModel({
  viewer: { union: [{ this: {} }, { computed: 'editor' }] },
  editor: {},
});
const TESTS = `tuples: [doc:a#editor@user:eve]
tests:
  - name: editors view
    allow: [doc:a#viewer@user:eve]
`;

const file = (text: string, name = 'tests.yaml') => ({ name, text });
const run = (body: Record<string, unknown>, headers = {}) =>
  modelCall(instance, 'TestModel', body, headers);
const reasonOf = ({ body }: { body: Record<string, unknown> }) =>
  (body['details'] as { debug: { reason: string } }[])[0]?.debug.reason;

test('files run against the model of the call, else their own, else the one in force', async () => {
  const made = { id: 'tested', name: 'n', model_json: EDITORS_VIEW };
  await call(instance, 'AdminService/CreateProject', made);
  const files = [file(TESTS)];
  const passed = { status: 200, body: { passed: true, assertions: 1, failures: [] } };
  expect(await run({ project_id: 'tested', files })).toEqual(passed);
  expect(await run({ model: { json: EDITORS_VIEW }, files })).toEqual(passed);
  expect(
    await run({
      model: { gate: 'namespace doc {\n relation editor\n relation viewer: this or editor\n}' },
      files,
    }),
  ).toEqual(passed);
  expect(await run({ files: [file(`model: '${EDITORS_VIEW}'\n${TESTS}`)] })).toEqual(passed);
  const failure = {
    file: 'tests.yaml',
    test: 'editors view',
    assertion: 'doc:a#viewer@user:eve',
    expected: 'true',
    actual: 'false',
    line: 4,
  };
  const other = await run({ project_id: 'tested', model: { json: PLAIN }, files });
  expect(other).toEqual({
    status: 200,
    body: { passed: false, assertions: 1, failures: [failure] },
  });
  expect(
    await run({ model: { json: PLAIN }, files: [file(`model: '${EDITORS_VIEW}'\n${TESTS}`)] }),
  ).toMatchObject({
    body: { passed: false },
  });
  const { rows } = await database.pool.query('select from relation_tuple');
  expect(rows).toEqual([]);
});

test.each([
  [{ files: [] }, 'FIELD_REQUIRED', 'files'],
  [
    { files: [file('tests: 5')] },
    'ASSERTIONS_INVALID',
    'files[0].text: line 1, column 8: tests must be a list',
  ],
  [
    { files: [file(TESTS), file(`model_file: x\n${TESTS}`)] },
    'ASSERTIONS_INVALID',
    'files[1].text: line 1, column 1: model_file',
  ],
  [
    { files: [file(`model: 'namespace {'\n${TESTS}`)] },
    'ASSERTIONS_INVALID',
    'files[0].text: line 1',
  ],
  [{ files: [file(TESTS)], model: { json: '{' } }, 'MODEL_INVALID', '$'],
  [{ files: [file(TESTS)], project_id: 'nowhere' }, 'PROJECT_UNKNOWN', 'nowhere'],
  [{ files: Array.from({ length: 101 }, () => file(TESTS)) }, 'FIELD_INVALID', 'files'],
  [{ files: [file(TESTS, 'n'.repeat(501))] }, 'FIELD_INVALID', 'files[0].name'],
  [{ files: [file('a\u0000')] }, 'FIELD_INVALID', 'files[0].text'],
])('%j is refused', async (body, reason, text) => {
  const answer = await run(body);
  expect([answer.status >= 400 && answer.status < 500, reasonOf(answer)]).toEqual([true, reason]);
  expect(answer.body['message']).toContain(text);
});

test('a run ends with its deadline, and with it the thread', async () => {
  const assertions = Array.from(
    { length: 9_000 },
    (_, i) => `      - doc:a#viewer@user:u${i}`,
  ).join('\n');
  const heavy = file(`tuples: [doc:a#editor@user:eve]\ntests:\n  - deny:\n${assertions}\n`);
  const files = Array.from({ length: 20 }, () => heavy);
  const late = await run({ model: { json: EDITORS_VIEW }, files }, { 'connect-timeout-ms': '30' });
  expect([late.status, reasonOf(late)]).toEqual([504, 'DEADLINE_EXCEEDED']);
  expect(await run({ model: { json: EDITORS_VIEW }, files: [file(TESTS)] })).toMatchObject({
    body: { passed: true },
  });
});

test('many calls at once are answered, or told to come again', async () => {
  const body = { model: { json: EDITORS_VIEW }, files: [file(TESTS)] };
  const answers = await Promise.all(Array.from({ length: 30 }, () => run(body)));
  const outcomes = new Set(
    answers.map(({ status, body: { passed } }) => `${status} ${String(passed)}`),
  );
  expect(outcomes.has('200 true')).toBe(true);
  for (const outcome of outcomes) expect(['200 true', '429 undefined']).toContain(outcome);
});

test('WriteModel refuses a model whose tests do not pass, and writes one whose tests do', async () => {
  await call(instance, 'AdminService/CreateProject', { id: 'gated', name: 'n', model_json: PLAIN });
  const write = (json: string) =>
    modelCall(instance, 'WriteModel', {
      project_id: 'gated',
      model: { json },
      tests: [file(TESTS)],
    });
  const refused = await write(PLAIN);
  expect([refused.status, reasonOf(refused)]).toEqual([412, 'MODEL_TESTS_FAILED']);
  expect(refused.body['message']).toContain(
    'tests.yaml:4: editors view: doc:a#viewer@user:eve: expected true, is false',
  );
  expect(await write(EDITORS_VIEW)).toMatchObject({ status: 200, body: { version: '2' } });
});
