import { mkdir, mkdtemp, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createWorkflowCatalog } from './workflow-catalog.ts';

let project: string;
let outside: string;
beforeEach(async () => {
  project = await mkdtemp(join(tmpdir(), 'catalog-'));
  outside = await mkdtemp(join(tmpdir(), 'catalog-outside-'));
  await mkdir(join(project, '.github', 'workflows'), { recursive: true });
});
afterEach(async () => {
  await rm(project, { recursive: true });
  await rm(outside, { recursive: true });
});

const pathOf = (name: string): string => join(project, '.github', 'workflows', name);
const write = async (name: string, text: string): Promise<void> => {
  await writeFile(pathOf(name), text);
};
const workflow = (name?: string): string =>
  `${name === undefined ? '' : `name: ${name}\n`}on: push\njobs: {a: {runs-on: x, steps: [{run: ls}]}}\n`;

test('lists what is readable and what is not, in order of file names', async () => {
  await write('b.yaml', workflow('Second'));
  await write('a.yml', 'name: Broken\non: push\njobs: {a: {}}\n');
  await write('c.yml', 'x: [');
  await write('notes.txt', 'x');
  await mkdir(pathOf('folder.yml'));
  const files = await createWorkflowCatalog(project).list();
  expect(files.map(({ fileName, name, problems }) => [fileName, name, problems.length])).toEqual([
    ['a.yml', 'Broken', 1],
    ['b.yaml', 'Second', 0],
    ['c.yml', 'c.yml', 1],
    ['folder.yml', 'folder.yml', 1],
  ]);
  expect(files[1]?.filePath).toBe(pathOf('b.yaml'));
  expect(files[1]?.document).toEqual({
    name: 'Second',
    on: 'push',
    jobs: { a: { 'runs-on': 'x', steps: [{ run: 'ls' }] } },
  });
  expect(files[2]?.document).toBeUndefined();
});

test('a project without workflows', async () => {
  await rm(join(project, '.github'), { recursive: true });
  expect(await createWorkflowCatalog(project).list()).toEqual([]);
});

test('reads again what changed, and what is called', async () => {
  const catalog = createWorkflowCatalog(project);
  await write('a.yml', workflow('One'));
  await write('caller.yml', 'on: push\njobs: {c: {uses: ./.github/workflows/called.yml}}\n');
  const first = await catalog.list();
  expect(first.map(({ problems, missing = [] }) => problems.length + missing.length)).toEqual([
    0, 1,
  ]);
  expect(first[1]?.problems).toEqual([]);
  const [again] = await catalog.list();
  expect(again).toBe(first[0]);
  await write('a.yml', workflow('Another'));
  await write('called.yml', 'on: workflow_call\njobs: {x: {runs-on: x, steps: [{run: ls}]}}\n');
  expect((await catalog.list()).map(({ name, problems }) => [name, problems.length])).toEqual([
    ['Another', 0],
    ['called.yml', 0],
    ['caller.yml', 0],
  ]);
  await unlink(pathOf('called.yml'));
  const last = await catalog.list();
  expect(last.map(({ missing = [] }) => missing.map(({ message }) => message))).toEqual([
    [],
    ["Unable to find reusable workflow './.github/workflows/called.yml'"],
  ]);
});

test('called workflows of other repositories lie in the cache of actions, and name their own', async () => {
  const cache = join(project, '.runner', 'actions', 'own', 'repo@v1', '.github', 'workflows');
  await mkdir(cache, { recursive: true });
  await writeFile(
    join(cache, 'remote.yml'),
    'on: workflow_call\njobs: {x: {uses: ./.github/workflows/inner.yml}}\n',
  );
  await writeFile(
    join(cache, 'inner.yml'),
    'on: workflow_call\njobs: {y: {runs-on: x, steps: [{run: ls}]}}\n',
  );
  await write('a.yml', 'on: push\njobs: {c: {uses: own/repo/.github/workflows/remote.yml@v1}}\n');
  await write('b.yml', 'on: push\njobs: {c: {uses: own/repo/.github/workflows/remote.yml@v2}}\n');
  await write('c.yml', 'on: push\njobs: {c: {uses: "own/../.github/workflows/remote.yml@v1"}}\n');
  const files = await createWorkflowCatalog(project).list();
  expect(files.map(({ missing = [] }) => missing.length)).toEqual([0, 1, 1]);
  const job = files[0]?.workflow?.jobs.get('c');
  expect(job?.kind === 'call' ? job.called.path : '').toBe(
    'own/repo/.github/workflows/remote.yml@v1',
  );
});

test('links out of the project are refused, those within are followed', async () => {
  await writeFile(join(outside, 'x.yml'), workflow('Outside'));
  await writeFile(join(project, 'real.yml'), workflow('Inside'));
  await symlink(join(outside, 'x.yml'), pathOf('a.yml'));
  await symlink(join(project, 'real.yml'), pathOf('b.yml'));
  await symlink(join(outside, 'nothing.yml'), pathOf('c.yml'));
  const files = await createWorkflowCatalog(project).list();
  expect(files.map(({ name, problems }) => [name, problems[0]?.message])).toEqual([
    ['a.yml', 'The file is a link out of the project'],
    ['Inside', undefined],
    ['c.yml', 'The file cannot be read'],
  ]);
});

test('a file that is too large is not read', async () => {
  await write('a.yml', `#${'x'.repeat(2 * 1024 * 1024)}`);
  await write('b.yml', `#${'x'.repeat(600 * 1024)}`);
  const files = await createWorkflowCatalog(project).list();
  expect(files.map(({ problems }) => problems[0]?.message)).toEqual([
    'The file is too large',
    'The maximum file size of 524288 characters has been exceeded',
  ]);
});

test('finds by file name, then without extension, then by name, then without case', async () => {
  await write('ci.yml', workflow('Build'));
  await write('build.yml', workflow('ci'));
  await write('Deploy.yaml', workflow());
  const catalog = createWorkflowCatalog(project);
  const found = async (name: string): Promise<string> => (await catalog.find(name)).fileName;
  expect(await found('ci.yml')).toBe('ci.yml');
  expect(await found('ci')).toBe('ci.yml');
  expect(await found('Build')).toBe('ci.yml');
  expect(await found('BUILD')).toBe('build.yml');
  expect(await found('deploy.YAML')).toBe('Deploy.yaml');
});

test('says when there is none, several, or the name is a path', async () => {
  await write('ci.yml', workflow('Same'));
  await write('ci.yaml', workflow('Same'));
  const catalog = createWorkflowCatalog(project);
  await expect(catalog.find('nope')).rejects.toMatchObject({ reason: 'WORKFLOW_NOT_FOUND' });
  await expect(catalog.find('')).rejects.toMatchObject({ reason: 'WORKFLOW_NOT_FOUND' });
  for (const name of ['ci', 'Same', 'same']) {
    await expect(catalog.find(name)).rejects.toMatchObject({
      reason: 'AMBIGUOUS_WORKFLOW',
      metadata: { paths: `${pathOf('ci.yaml')}\n${pathOf('ci.yml')}` },
    });
  }
  for (const name of ['../ci.yml', 'a/b', 'a\\b', '..', 'x\0']) {
    await expect(catalog.find(name)).rejects.toMatchObject({ reason: 'INVALID_NAME' });
  }
});
