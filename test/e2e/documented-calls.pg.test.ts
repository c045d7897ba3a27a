/* The calls of docs/queries.md, docs/tuples.md and docs/models.md, made by curl as they are written, and the answers that these show. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { instanceForFile } from '../support/instance.ts';
import { shellBlocks } from '../support/readme.ts';

const { instance } = await instanceForFile({ GATEWAY_SERVICE_AUTH_TOKENS: '' });
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-calls-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** What a script prints, run in the folder of the test against its instance. */
async function printed(script: string): Promise<string> {
  const address = new URL(instance.baseUrl).host;
  const env = { PATH: process.env['PATH'], TOKEN: '', SECRET: instance.adminSecret };
  const { stdout } = await promisify(execFile)(
    'bash',
    ['--norc', '-euo', 'pipefail', '-c', script.replaceAll('localhost:8080', address)],
    { cwd: folder, env, timeout: 60_000 },
  );
  return stdout;
}

/** The answer of a script as JSON, without its token. */
async function answerOf(script: string): Promise<Record<string, unknown>> {
  const { consistency_token: token, ...rest } = JSON.parse(await printed(script)) as Record<
    string,
    unknown
  >;
  expect(token).toMatch(/^[\w-]{40,}$/);
  return rest;
}

/** The answer that a document shows behind "This answers", without its token. */
async function shownBehind(command: string, path: string): Promise<Record<string, unknown>> {
  const [, rest = ''] = (await readFile(path, 'utf8')).split(command);
  const [, inline, block] =
    /This answers[^{]*?(?:`(\{[^`]+\})`|```json\n([^`]+)```)/.exec(rest) ?? [];
  const { consistency_token: _, ...shown } = JSON.parse(inline ?? block ?? '') as Record<
    string,
    unknown
  >;
  return shown;
}

async function call(method: string, body: unknown): Promise<void> {
  const response = await fetch(`${instance.baseUrl}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-admin-secret': instance.adminSecret },
    body: JSON.stringify(body),
  });
  expect(response.status, await response.text()).toBe(200);
}

const tuple = (relation: string, subject: object, of = ['doc', 'plan']): object => ({
  op: 'OP_INSERT',
  tuple: { namespace: of[0], object_id: of[1], relation, subject },
});
const blockOf = (heading: string, path: string): string => shellBlocks(heading, path)[0] ?? '';

test('docs/models.md: a model is written as version 4 under a guard', async () => {
  for (const relation of ['reader', 'writer', 'viewer']) {
    const gate = `namespace doc {\n  relation editor\n  relation ${relation}\n}\n`;
    await call('gatehouse.v1.ModelService/WriteModel', { model: { gate } });
  }
  const blocks = shellBlocks('Tests, history, preview', 'docs/models.md');
  const command = blocks.find((block) => block.includes('WriteModel')) ?? '';
  expect(JSON.parse(await printed(command))).toMatchObject({ version: '4', warnings: [] });
});

test.each(['Contextual tuples', 'What would change', 'Lists'])(
  'docs/queries.md, "%s": the answer is the one that is shown',
  async (heading) => {
    const command = blockOf(heading, 'docs/queries.md');
    expect(await answerOf(command)).toEqual(await shownBehind(command, 'docs/queries.md'));
  },
);

test('docs/queries.md, "Why": the ban is found as shown, and bob gets the two remedies', async () => {
  await call('gatehouse.v1.ModelService/WriteModel', {
    model: {
      gate: 'namespace doc {\n  relation banned\n  relation viewer: this but not banned\n}\n',
    },
  });
  await call('workspace.v1.AuthzService/WriteRelationTuples', {
    updates: [
      tuple('viewer', { set: { namespace: 'group', object_id: 'staff', relation: 'member' } }),
      tuple('member', { user_id: 'mal' }, ['group', 'staff']),
      tuple('banned', { user_id: 'mal' }),
    ],
  });
  const command = blockOf('Why', 'docs/queries.md');
  expect(await answerOf(command)).toMatchObject(await shownBehind(command, 'docs/queries.md'));
  expect(await answerOf(command.replace('mal', 'bob'))).toMatchObject({
    obstacles: [{ kind: 'OBSTACLE_KIND_NO_GRANT' }],
    remedies: [
      { namespace: 'doc', relation: 'viewer' },
      { namespace: 'group', object_id: 'staff', relation: 'member' },
    ],
  });
});

test('docs/tuples.md: a write under a key, an export, its import and a dry run of a delete', async () => {
  const write = blockOf('Writes with preconditions', 'docs/tuples.md');
  expect(await answerOf(write)).toEqual({ replayed: false });
  expect(await answerOf(write)).toEqual({ replayed: true });

  const update = tuple('viewer', { user_id: 'ann' });
  await call('workspace.v1.AuthzService/WriteRelationTuples', {
    tenant_id: 'acme',
    updates: [update],
  });
  expect(await printed(blockOf('Exports', 'docs/tuples.md'))).toBe('');
  const lines = (await readFile(join(folder, 'doc.ndjson'), 'utf8')).trim().split('\n');
  const parsed = lines.map((line) => JSON.parse(line) as object);
  expect(parsed[0]).toMatchObject({ begin: true });
  expect(parsed).toContainEqual(expect.objectContaining({ tuple: expect.anything() }));
  expect(parsed.at(-1)).toMatchObject({ end: true, count: 1 });

  const importing = blockOf('Imports', 'docs/tuples.md');
  const imported = await answerOf(importing);
  expect(imported).toMatchObject({ received: '1', written: '0', unchanged: '1' });
  const shown = await shownBehind(importing, 'docs/tuples.md');
  expect(Object.keys(imported).toSorted()).toEqual(Object.keys(shown).toSorted());
  expect(await answerOf(blockOf('Deletes by filter', 'docs/tuples.md'))).toEqual({ count: '1' });
});
