/** Actions from real git repositories, over files and over HTTP. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, normalize } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isBuiltIn } from '../../../src/runner/execution/built-ins/built-in-inputs.ts';
import { ActionLibrary } from '../../../src/runner/host/actions/action-library.ts';
import type { ActionUses } from '../../../src/runner/model/ports.ts';
import { runJob, temporaryDir, writeFiles } from '../../support/job-harness.ts';

type Hosted = { readonly url: string; readonly dir: string };

function git(dir: string, ...args: readonly string[]): string {
  const options = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'init.defaultBranch=main'];
  return execFileSync('git', [...options, ...args], { cwd: dir, encoding: 'utf8' }).trim();
}

/** Bare repositories below one folder, as a code host has them. */
function hostWith(
  repositories: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Hosted {
  const dir = temporaryDir();
  for (const [name, files] of Object.entries(repositories)) {
    const repository = join(dir, name);
    mkdirSync(repository, { recursive: true });
    git(repository, 'init', '--quiet');
    commit(repository, files, 'v1');
  }
  return { url: `file://${dir}`, dir };
}

/** Commits `files`; the tag names the new commit. */
function commit(repository: string, files: Readonly<Record<string, string>>, tag: string): string {
  writeFiles(repository, files);
  git(repository, 'add', '--all');
  git(repository, 'commit', '--quiet', '--message', 'x');
  git(repository, 'tag', '--force', tag);
  return git(repository, 'rev-parse', 'HEAD');
}

/** The same over HTTP as plain files, which git calls the dumb protocol. */
async function overHttp({ dir }: Hosted): Promise<string> {
  for (const owner of readdirSync(dir)) {
    for (const name of readdirSync(join(dir, owner)))
      git(join(dir, owner, name), 'update-server-info');
  }
  const server = createServer((request, response) => {
    const [path = ''] = (request.url ?? '').split('?');
    const [, owner = '', name = '', ...rest] = path.split('/');
    const file = normalize(join(dir, owner, name, '.git', ...rest));
    if (!file.startsWith(dir) || !existsSync(file)) response.writeHead(404).end();
    else response.end(readFileSync(file));
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  onTestFinished(() => void server.close());
  await promise;
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function composite(...uses: readonly string[]): string {
  const steps = uses.map((one) => `{ uses: '${one}' }`).concat('{ run: echo done, shell: bash }');
  return `name: x\nruns: { using: composite, steps: [${steps.join(', ')}] }\n`;
}

function libraryOf(project: string, url: string, mirror?: string): ActionLibrary {
  const stateDir = join(project, '.runner');
  mkdirSync(stateDir, { recursive: true });
  return new ActionLibrary({ stateDir, mirror, origin: { url }, fetchesInRuns: true, isBuiltIn });
}

function neededBy(...uses: readonly string[]): ActionUses[] {
  return [{ uses, path: '.github/workflows/ci.yml' }];
}

const TREE = {
  'o/outer': {
    'action.yml': composite('o/inner/sub@v1', '$/own', 'actions/checkout@v4'),
    'own/action.yml': composite('o/leaf@main'),
  },
  'o/inner': { 'sub/action.yml': composite() },
  'o/leaf': { 'action.yml': composite() },
};

describe('what workflows use', () => {
  test('is listed with all that it uses in turn, and what is missing', async () => {
    const project = temporaryDir();
    writeFiles(project, {
      'local/action.yml': composite('o/outer@v1'),
      '.runner/actions/o/outer@v1/action.yml': composite('o/inner/sub@v1'),
    });
    const library = libraryOf(project, 'file:///nowhere');
    const needed = neededBy('./local', 'actions/cache@v4', 'docker://alpine');
    const { actions, problems } = await library.collect(needed, project, 'none');
    expect(actions).toEqual([
      { name: 'actions/cache@v4', source: 'built-in' },
      { name: 'o/inner@v1', source: 'missing' },
      { name: 'o/outer@v1', source: 'placed' },
    ]);
    expect(problems).toEqual([]);
  });

  test('what cannot be read is told, and keeps nothing else from being found', async () => {
    const project = temporaryDir();
    writeFiles(project, {
      'huge/action.yml': composite('o/in-huge@v1'),
      'fine/action.yml': composite('o/inner@v1'),
    });
    truncateSync(join(project, 'huge/action.yml'), 5 * 1024 ** 3);
    symlinkSync('loop', join(project, 'loop'));
    const long = 'a'.repeat(5_000);
    const library = libraryOf(project, 'file:///nowhere');
    const needed = neededBy('./huge', './loop', `./${long}`, './fine');
    const { actions, problems } = await library.collect(needed, project, 'none');
    expect(actions).toEqual([{ name: 'o/inner@v1', source: 'missing' }]);
    expect(problems).toEqual([
      './huge: larger than 524288 bytes',
      './loop: ELOOP',
      `./${'a'.repeat(198)}: ENAMETOOLONG`,
    ]);
  });

  test('more than are followed are not left out without a word', async () => {
    const project = temporaryDir();
    const many = Array.from({ length: 1_001 }, (_, index) => `o/a${index}@v1`);
    const library = libraryOf(project, 'file:///nowhere');
    const { actions, problems } = await library.collect(neededBy(...many), project, 'none');
    expect(actions).toHaveLength(1_000);
    expect(problems).toEqual([expect.stringContaining('beyond 1000 actions')]);
  });

  test.each(['files', 'HTTP'])(
    'is fetched over %s, nested ones too, each at its commit',
    async (how) => {
      const host = hostWith(TREE);
      const project = temporaryDir();
      const library = libraryOf(project, how === 'HTTP' ? await overHttp(host) : host.url);
      const { actions, problems } = await library.collect(
        neededBy('o/outer@v1'),
        project,
        'missing',
      );
      expect(problems).toEqual([]);
      const head = (name: string): string => git(join(host.dir, name), 'rev-parse', 'HEAD');
      expect(actions).toEqual([
        { name: 'actions/checkout@v4', source: 'built-in' },
        { name: 'o/inner@v1', source: 'fetched', commit: head('o/inner') },
        { name: 'o/leaf@main', source: 'fetched', commit: head('o/leaf') },
        { name: 'o/outer@v1', source: 'fetched', commit: head('o/outer') },
      ]);
      const lock = JSON.parse(readFileSync(join(project, '.runner/actions.lock'), 'utf8')) as {
        readonly actions: Readonly<Record<string, { readonly commit: string }>>;
      };
      expect(lock.actions['o/leaf@main']?.commit).toBe(head('o/leaf'));
      // The files alone, without a repository.
      expect(readdirSync(join(project, '.runner/actions/o/outer@v1')).toSorted()).toEqual([
        'action.yml',
        'own',
      ]);
    },
  );
});

describe('a commit that is pinned', () => {
  test('stays, though the tag moves, until it is asked for again', async () => {
    const host = hostWith(TREE);
    const project = temporaryDir();
    const library = libraryOf(project, host.url);
    const collect = async (fetching: 'missing' | 'all') =>
      (await library.collect(neededBy('o/leaf@v1'), project, fetching)).actions[0]?.commit;
    const first = await collect('missing');
    const second = commit(join(host.dir, 'o/leaf'), { file: 'new' }, 'v1');
    expect(await collect('missing')).toBe(first);
    // A fresh clone of the project that has the lock alone.
    rmSync(join(project, '.runner/actions'), { recursive: true });
    expect(await collect('missing')).toBe(first);
    expect(existsSync(join(project, '.runner/actions/o/leaf@v1/file'))).toBe(false);
    expect(await collect('all')).toBe(second);
    expect(existsSync(join(project, '.runner/actions/o/leaf@v1/file'))).toBe(true);
  });

  test('is a commit when the workflow names one, also one that no branch leads to', async () => {
    const host = hostWith(TREE);
    const repository = join(host.dir, 'o/leaf');
    const first = git(repository, 'rev-parse', 'HEAD');
    commit(repository, { file: 'new' }, 'v2');
    const project = temporaryDir();
    const library = libraryOf(project, host.url);
    const { actions } = await library.collect(neededBy(`o/leaf@${first}`), project, 'missing');
    expect(actions[0]).toMatchObject({ source: 'fetched', commit: first });
    const never = 'f'.repeat(40);
    const none = await library.collect(neededBy(`o/leaf@${never}`), project, 'missing');
    expect(none.actions[0]?.source).toBe('missing');
    expect(none.problems[0]).toContain(never);
  });

  test('is not what changed since: the step fails instead of running it', async () => {
    const host = hostWith(TREE);
    const project = temporaryDir();
    const library = libraryOf(project, host.url);
    await library.collect(neededBy('o/leaf@v1'), project, 'missing');
    const good = await runJob('- uses: o/leaf@v1', { projectDir: project });
    expect(good.outcome.conclusion).toBe('success');
    writeFileSync(
      join(project, '.runner/actions/o/leaf@v1/action.yml'),
      composite().replace('done', 'evil'),
    );
    const bad = await runJob('- uses: o/leaf@v1', { projectDir: project });
    expect(bad.outcome.conclusion).toBe('failure');
    expect(bad.text).toContain('were changed since they were fetched');
    expect(bad.text).not.toContain('evil');
    await library.collect(neededBy('o/leaf@v1'), project, 'all');
    expect((await runJob('- uses: o/leaf@v1', { projectDir: project })).outcome.conclusion).toBe(
      'success',
    );
  });
});

describe('what goes wrong', () => {
  test('is told for each, and the others are fetched', async () => {
    const host = hostWith(TREE);
    const project = temporaryDir();
    const library = libraryOf(project, host.url);
    const needed = neededBy('o/leaf@v1', 'o/leaf@v9', 'o/nothing@v1');
    const { actions, problems } = await library.collect(needed, project, 'missing');
    expect(actions.map(({ source }) => source)).toEqual(['fetched', 'missing', 'missing']);
    expect(problems.toSorted()).toEqual([
      expect.stringContaining('o/leaf@v9: there is no such branch, tag or commit'),
      expect.stringContaining('o/nothing'),
    ]);
    const left = readdirSync(join(project, '.runner/actions')).filter((name) => name !== '.lock');
    expect(left).toEqual(['o']);
  });

  test('two at the same time fetch one after the other', async () => {
    const host = hostWith(TREE);
    const project = temporaryDir();
    const both = await Promise.all(
      [1, 2].map(() =>
        libraryOf(project, host.url).collect(neededBy('o/outer@v1'), project, 'missing'),
      ),
    );
    expect(both.map(({ problems }) => problems)).toEqual([[], []]);
    expect(both[0]?.actions).toEqual(both[1]?.actions);
  });

  test('names that lead elsewhere are nobody’s', async () => {
    const library = libraryOf(temporaryDir(), 'file:///nowhere');
    await expect(library.find({ repository: 'o/a', ref: '../../x' })).rejects.toThrow(
      'names no action',
    );
    await expect(library.fetch({ repository: '../x', ref: 'y' }, false)).rejects.toThrow(
      'names no action',
    );
  });
});

test('a mirror folder has what the project has not; what is there goes first', async () => {
  const mirror = temporaryDir();
  const project = temporaryDir();
  writeFiles(mirror, {
    'o/a@v1/action.yml': composite('o/b@v1'),
    'o/b@v1/action.yml': composite(),
  });
  writeFiles(project, { '.runner/actions/o/b@v1/action.yml': composite() });
  const library = libraryOf(project, 'file:///nowhere', mirror);
  const { actions } = await library.collect(neededBy('o/a@v1'), project, 'none');
  expect(actions.map(({ name, source }) => [name, source])).toEqual([
    ['o/a@v1', 'mirror'],
    ['o/b@v1', 'placed'],
  ]);
});

test('prune removes what was fetched and is used no more, and nothing else', async () => {
  const host = hostWith(TREE);
  const project = temporaryDir();
  writeFiles(project, { '.runner/actions/o/mine@v1/action.yml': composite() });
  const library = libraryOf(project, host.url);
  await library.collect(neededBy('o/leaf@v1', 'o/inner/sub@v1'), project, 'missing');
  mkdirSync(join(project, '.runner/actions/.fetch-left'));
  expect(await library.prune(new Set(['o/leaf@v1']))).toEqual(['o/inner@v1']);
  expect(library.list().map(({ name }) => name)).toEqual(['o/leaf@v1', 'o/mine@v1']);
  expect(existsSync(join(project, '.runner/actions/.fetch-left'))).toBe(false);
  renameSync(join(project, '.runner/actions/o/leaf@v1'), join(project, 'gone'));
  expect(library.list().map(({ name }) => name)).toEqual(['o/mine@v1']);
});
