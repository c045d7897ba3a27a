/* `gatehouse model check --stored`: models that releases before imported, and that decide otherwise than where they came from. */
import { expect, test } from 'vitest';
import { storedModelLines } from '../../src/cli/models/imported-models.ts';
import { OPENFGA_COMMENT } from '../../src/store/sql/projects/openfga-stores.ts';
import { instanceForFile } from '../support/instance.ts';

const { instance } = await instanceForFile({});

async function post(path: string, body: object): Promise<void> {
  const response = await fetch(`${instance.baseUrl}/${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${instance.token}`,
      'x-admin-secret': instance.adminSecret,
    },
    body: JSON.stringify(body),
  });
  expect(await response.text()).not.toContain('"code"');
}

async function write(projectId: string, expression: string, comment: string): Promise<void> {
  const relation = 'relation viewer: [user, user with slow]';
  const gate = `condition slow(d: duration) {\n  ${expression}\n}\n\nnamespace doc {\n  ${relation}\n}\n`;
  const model = { gate };
  await post('gatehouse.v1.ModelService/WriteModel', { project_id: projectId, model, comment });
}

test('names the versions in force, and all of the API of OpenFGA', async () => {
  for (const id of ['store', 'plain', 'clean']) {
    await post('workspace.v1.AdminService/CreateProject', { id, name: id });
  }
  // As a release before wrote it, and then as this one does.
  await write('store', 'string(d) == "1.5s"', `${OPENFGA_COMMENT}01J00000000000000000000000`);
  await write('store', 'goString(d) == "1.5s"', `${OPENFGA_COMMENT}01J00000000000000000000001`);
  await write('plain', 'int(d) > 5', '');
  await write('plain', 'true ||\n  d.getMilliseconds() > 5', 'by hand');
  await write('clean', 'd.goMilliseconds() > 5', '');
  const { baseUrl: url, token, adminSecret } = instance;
  const connection = { url, token, adminSecret, project: '', tenant: '', timeoutMs: 30_000 };
  const at = '$.conditions.slow.expression';
  const inPlain = `project plain, version 2, if it was imported: ${at}: 2:2: getMilliseconds is read otherwise: cel-go counts all milliseconds of a duration: 90500 of 1m30.5s, which are 500 here (import the model again)`;
  const inStore = `project store, version 1, through OpenFGA's API: ${at}: 1:1: string is read otherwise: cel-go writes doubles as 1e+06, timestamps at their own offset, and durations as 1.5s (import the model again)`;
  const lines = await storedModelLines([], connection);
  expect(lines.filter((line) => line.startsWith('project '))).toStrictEqual([inPlain, inStore]);
  expect(lines.at(-1)).toMatch(/^projects looked at: \d, places found: 2$/);
  expect(await storedModelLines(['store'], connection)).toStrictEqual([
    inStore,
    'projects looked at: 1, places found: 1',
  ]);
  await expect(storedModelLines(['nowhere'], connection)).rejects.toThrow('nowhere');
});
