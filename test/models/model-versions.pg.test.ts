import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { type ScriptResult, scriptInProcess } from '../support/script-in-process.ts';
import { call } from '../support/service.ts';
import { newProject, sharedInstance } from '../support/shared-instance.ts';

/* `gatehouse model diff`, `apply`, `history`, `show` and `roll-back`, with a real service. */
const instance = await sharedInstance();
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-versions-'));
afterAll(() => rmSync(folder, { recursive: true }));
const BIN = resolve('bin/gatehouse');
const SCRIPT = resolve('src/gatehouse.ts');
const ENVIRONMENT = {
  XDG_CONFIG_HOME: folder,
  GATEHOUSE_URL: instance.baseUrl,
  GATEHOUSE_TOKEN: instance.token,
  GATEHOUSE_ADMIN_SECRET: instance.adminSecret,
};

beforeEach(() => {
  for (const [name, value] of Object.entries(ENVIRONMENT)) vi.stubEnv(name, value);
  return () => void vi.unstubAllEnvs();
});

const model = async (...args: readonly string[]): Promise<ScriptResult> =>
  await scriptInProcess(SCRIPT, ['model', ...args], folder);

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return name;
}

const SLOW = 'condition slow(d: duration) {\n  d > duration("5s")\n}\n';
const OLD = `// Files.\n${SLOW}\nnamespace doc {\n  relation owner: [user]\n  relation viewer: [user, user with slow] or owner\n}\n`;
const NEW = `condition late(t: timestamp) {
  t > timestamp("2026-01-01T00:00:00Z")
}

open namespace doc {
  relation editor: owner but not barred
  relation barred
  relation owner: [user]
  relation viewer: owner or [user]
}

namespace folder {
  relation viewer
}
`;
const old = file('old.gate', OLD);
file('new.gate', NEW);
// The same with its subjects and operands in another order.
file(
  'turned.gate',
  OLD.replace('[user, user with slow] or owner', 'owner or [user with slow, user]'),
);

const CHANGES = `- condition slow(d: duration) { d > duration("5s") }
+ condition late(t: timestamp) { t > timestamp("2026-01-01T00:00:00Z") }
~ open namespace doc (was namespace doc)
+ doc#barred
+ doc#editor: owner but not barred
~ doc#viewer: owner or [user] (was doc#viewer: [user, user with slow] or owner)
+ namespace folder
+ folder#viewer
`;

test('diff of two files', async () => {
  const same = { code: 0, out: '', err: '' };
  expect(await model('diff', old, old)).toEqual(same);
  expect(await model('diff', old, 'turned.gate')).toEqual(same);
  expect(await model('diff', old, 'new.gate')).toEqual({ code: 1, out: CHANGES, err: '' });
  const json = await model('convert', old, '--out', 'old.json');
  expect(json.code).toBe(0);
  expect(await model('diff', old, 'old.json')).toEqual(same);
  const back = await model('diff', '--json', 'new.gate', old);
  expect(back.code).toBe(1);
  expect(JSON.parse(back.out)).toContainEqual({
    change: 'removed',
    name: 'doc#editor',
    before: 'doc#editor: owner but not barred',
  });
  expect(await model('diff', '--json', old, old)).toEqual({ code: 0, out: '[]\n', err: '' });
});

test('apply, history, show and roll-back of a project', async () => {
  const project = ['-p', await newProject(instance)];
  expect(await model('show', ...project)).toEqual({
    code: 0,
    out: 'built-in\n',
    err: 'the built-in model: the project never had another\n',
  });
  const dry = await model('apply', '--dry-run', ...project, old);
  expect(dry).toEqual({ code: 0, out: 'dry run: it would be in force\n', err: '' });
  // In a process of its own, from the standard input.
  const args = ['model', 'apply', '--comment', 'first', ...project, '-'];
  const environment = { PATH: process.env['PATH'] ?? '', ...ENVIRONMENT };
  const child = spawnSync(BIN, args, { env: environment, input: OLD, encoding: 'utf8' });
  expect([child.status, child.stdout, child.stderr]).toEqual([0, 'version 1 is in force\n', '']);
  expect(await model('diff', ...project, old)).toEqual({ code: 0, out: '', err: '' });
  expect(await model('diff', ...project, 'new.gate')).toEqual({ code: 1, out: CHANGES, err: '' });

  const bad = file('bad.gate', OLD.replace('or owner', 'or onwer'));
  const refused = await model('apply', ...project, bad);
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.err).toMatch(/^bad\.gate:8:46: error: .*"onwer".*"owner"\?.*\(MODEL_INVALID\)\n$/);
  const broken = await model('apply', ...project, file('broken.gate', 'namespace {'));
  expect(broken.err).toMatch(/^broken\.gate:1:11: error: .*expected the name of a namespace/);
  const late = await model('apply', ...project, '--expected-version', '7', 'turned.gate');
  expect(late).toMatchObject({ code: 2, err: expect.stringContaining('the newest is 1, not 7') });

  const odd =
    'namespace doc {\n  relation a: [user]\n  relation b: [group]\n  relation c: a and b\n}\n';
  const warned = await model('apply', '--dry-run', ...project, file('odd.gate', odd));
  expect(warned.code).toBe(0);
  expect(warned.err).toMatch(/^odd\.gate:4:3: warning: can never hold for anybody/);

  const asserted = file('t.yaml', 'tests:\n  - deny: [doc:a#viewer@user:x]\n');
  const written = await model('apply', ...project, '--tests', asserted, '--json', 'turned.gate');
  expect(written.code).toBe(0);
  expect(JSON.parse(written.out)).toMatchObject({
    version: '2',
    activation: { version: '2', state: 'MODEL_ACTIVATION_STATE_ACTIVE' },
  });
  const wrong = file('w.yaml', 'tests:\n  - allow: [doc:a#viewer@user:x]\n');
  const failed = await model('apply', ...project, '--tests', wrong, old);
  expect(failed).toMatchObject({ code: 2, err: expect.stringContaining('(MODEL_TESTS_FAILED)') });

  const back = await model('roll-back', 'previous', '--comment', 'back', ...project);
  expect(back).toEqual({ code: 0, out: 'version 3 is in force\n', err: '' });
  expect((await model('roll-back', '9', ...project)).err).toContain('has no version 9');
  const shown = await model('show', ...project);
  expect(shown).toEqual({ code: 0, out: OLD, err: 'version 3, active\n' });
  expect((await model('show', '2', '--out', 'two.gate', ...project)).code).toBe(0);
  expect(readFileSync(join(folder, 'two.gate'), 'utf8')).toBe(
    readFileSync(join(folder, 'turned.gate'), 'utf8'),
  );
  const history = await model('history', ...project);
  const rows = history.out
    .trimEnd()
    .split('\n')
    .map((row) => row.replace(/ \d{4}-\S+ +operator:\w+/, ' …').replaceAll(/ +/g, ' '));
  expect(rows).toEqual([
    'VERSION STATE CREATED BY CALL COMMENT',
    '3 active … RollBackModel to 1 back',
    '2 replaced … WriteModel',
    '1 replaced … WriteModel first',
  ]);
  const newest = await model('history', '--limit', '2', '--jsonl', ...project);
  expect(
    newest.out
      .trimEnd()
      .split('\n')
      .map((row) => JSON.parse(row).version),
  ).toEqual(['3', '2']);
});

test('a model that stored tuples do not fit is refused, with examples, and comes by --force', async () => {
  const id = await newProject(instance);
  expect((await model('apply', '-p', id, old)).code).toBe(0);
  const tuple = { namespace: 'doc', object_id: 'a', relation: 'viewer', subject: { user_id: 'x' } };
  const updates = [{ op: 'OP_INSERT', tuple }];
  const stored = await call(instance, 'AuthzService/WriteRelationTuples', {
    project_id: id,
    updates,
  });
  expect(stored.status).toBe(200);
  const wider = file(
    'wider.gate',
    OLD.replace('owner: [user]', 'owner: [user] or viewer').replace('] or owner', ']'),
  );
  const guarded = ['apply', '--dry-run', '--sampled', '500', '-p', id, wider];
  const allows = await model('--refuse-new-allows', ...guarded);
  expect(allows).toMatchObject({ code: 2, out: '' });
  expect(allows.err).toMatch(
    /^error: guard: \d+ of 500 answers would become allows: doc:a#owner@user:x .*\(MODEL_GUARD_REFUSED\)\n$/,
  );
  expect((await model('--refuse-new-denies', ...guarded)).code).toBe(0);
  const next = file('next.gate', 'namespace doc {\n  relation viewer: [doc]\n}\n');
  const counts = '1 of 1 stored tuples do not fit\n  doc:a#viewer@user:x: ';
  const dry = await model('apply', '--dry-run', '-p', id, next);
  expect(dry.code).toBe(1);
  expect(dry.out).toContain(`dry run: it would be refused: ${counts}`);
  const refused = await model('apply', '-p', id, next);
  expect(refused.code).toBe(1);
  expect(refused.out).toContain(`version 2 is refused: ${counts}`);
  const forced = await model('apply', '--force', '-p', id, next);
  expect(forced.code).toBe(0);
  expect(forced.out).toContain(`version 3 is in force: ${counts}`);
});

test('waits for a version that is pending: until it is in force, in vain, or not at all', async () => {
  const activation = (version: string, state: string) => ({
    version,
    state: `MODEL_ACTIVATION_STATE_${state}`,
    tuples_scanned: '5',
    tuples_refused: '0',
    examples: [],
    dropped_namespaces: [],
  });
  const answers: object[] = [];
  const server = createServer((request, response) => {
    const isWrite = request.url?.endsWith('/WriteModel') === true;
    const later = answers.length > 1 ? answers.shift() : answers[0];
    const body = isWrite
      ? { version: '4', warnings: [], activation: activation('4', 'PENDING') }
      : { activation: later };
    if (isWrite || later !== undefined) response.end(JSON.stringify(body));
    else response.destroy();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  vi.stubEnv('GATEHOUSE_URL', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const pending = 'version 4 is pending\n';
  expect(await model('apply', '--no-wait', old)).toEqual({ code: 0, out: pending, err: '' });
  answers.push(activation('4', 'PENDING'), activation('4', 'ACTIVE'));
  const active = { code: 0, out: 'version 4 is in force\n', err: '' };
  expect(await model('apply', old)).toEqual(active);
  answers.splice(0, Infinity, activation('4', 'CANCELLED'));
  const cancelled = { code: 1, out: 'version 4 is cancelled\n', err: '' };
  expect(await model('apply', old)).toEqual(cancelled);
  answers.splice(0, Infinity, activation('5', 'PENDING'));
  const gone = { code: 1, out: 'version 4 gave way to a newer one\n', err: '' };
  expect(await model('apply', old)).toEqual(gone);
  answers.splice(0, Infinity, activation('4', 'PENDING'));
  const vain =
    'error: version 4 is written, and not in force after 1 s: 5 stored tuples looked at\n';
  expect(await model('apply', '--wait-max', '1', old)).toEqual({ code: 4, out: '', err: vain });
  answers.splice(0, Infinity);
  const lost = await model('apply', old);
  expect(lost).toMatchObject({ code: 4, out: '' });
  expect(lost.err).toMatch(/^error: version 4 is written, and was pending: http:.*fetch failed/);
  server.close();
});

test.each([
  [['diff'], 'one file or two, please'],
  [['diff', 'a', 'b', 'c'], 'one file or two, please'],
  [['diff', '-p', 'x', old, 'new.gate'], '--project: two files need no service'],
  [['diff', 'nowhere.gate', old], 'nowhere.gate: ENOENT'],
  [
    ['diff', old, file('five.json', '{"namespaces":5}')],
    'five.json: model_json: $.namespaces: must',
  ],
  [['diff', old, file('open.json', '{')], 'open.json: Expected property name'],
  [['diff', file('half.gate', 'namespace doc {'), old], 'half.gate: gate: line 1, column 16'],
  [
    ['diff', old, file('twice.json', '{"namespaces":{"a":{"relations":{}},"a":{"relations":{}}}}')],
    'twice.json: $.namespaces: duplicate key "a"',
  ],
  [['apply'], 'one file, please'],
  [['apply', old, '--expected-version', '0'], '--expected-version: must be a whole number from 1'],
  [['apply', old, '--wait-max', 'long'], '--wait-max: must be a whole number from 1'],
  [['apply', old, '--tests', 'nowhere.yaml'], 'nowhere.yaml: ENOENT'],
  [['apply', '-p', 'no-such', old], 'no-such'],
  [['apply', '--sampled', '5', old], '--sampled goes with --refuse-new-allows or'],
  [
    ['apply', '--refuse-new-allows', '--sampled', '100001', old],
    '--sampled: must be a whole number from 1 to 100000',
  ],
  [['history', 'x'], 'takes no words'],
  [['history', '--limit', '0'], '--limit: must be a whole number from 1'],
  [['show', 'three'], 'three: a version is a number from 1'],
  [['show', '1', '2'], 'name one version'],
  [['show', '99'], 'has no version 99'],
  [['roll-back'], 'which version?'],
  [['roll-back', '0'], '0: a version is a number from 1'],
])('%j ends with 2', async (args, message) => {
  const { code, out, err } = await model(...args);
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toContain(message);
});
