import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { stageServices } from '../../scripts/pack/pack-services.ts';
import { folderForPackages } from '../support/installed-package.ts';
import { modelCall } from '../support/model-calls.ts';
import { startProcess } from '../support/runner-process.ts';
import { makeWorkspace } from '../support/runner.ts';
import { cloneDatabase, call, startService } from '../support/service.ts';

/*
 * The packages as they are staged, below the project's own node_modules: JavaScript in all processes and threads.
 * service-packages.long.host.test.ts installs them.
 */

const packed = folderForPackages();

beforeAll(() => {
  stageServices(packed);
}, 60_000);
afterAll(() => rmSync(packed, { recursive: true, force: true }));

const manifestOf = (name: string): Readonly<Record<string, object>> =>
  JSON.parse(readFileSync(`${packed}/${name}/package.json`, 'utf8')) as Record<string, object>;

test('the service migrates and answers a Check from its package', async () => {
  const database = await cloneDatabase('none');
  const service = await startService({
    env: { DATABASE_URL: database.url, GATEWAY_WORKERS: '1' },
    launcher: {
      command: [process.execPath, '--', join(packed, 'gatehouse/bin/start.mjs'), 'serve'],
    },
  });
  const tuple = {
    namespace: 'resource',
    object_id: 'plan',
    relation: 'viewer',
    subject: { user_id: 'anne' },
  };
  await call(service, 'AuthzService/WriteRelationTuples', {
    updates: [{ op: 'OP_INSERT', tuple }],
  });
  const ask = (user: string): ReturnType<typeof call> =>
    call(service, 'AuthzService/Check', {
      namespace: 'resource',
      object_id: 'plan',
      relation: 'viewer',
      subject_user_id: user,
    });
  expect((await ask('anne')).body['allowed']).toBe(true);
  expect((await ask('ben')).body['allowed']).toBe(false);
  const start = join(packed, 'gatehouse/bin/start.mjs');
  const help = await promisify(execFile)(process.execPath, ['--', start, '--help']);
  expect(help.stdout).toContain('  serve  ');
  // They are programs of a checkout.
  expect(help.stdout).not.toMatch(/^ {2}(?:load|verify) /m);
  // Files of assertions run on a thread that is started by its path.
  const gate = 'namespace doc {\n relation viewer\n}';
  const text = 'tuples: [doc:a#viewer@user:eve]\ntests: [{ allow: [doc:a#viewer@user:eve] }]\n';
  const tested = await modelCall(service, 'TestModel', {
    model: { gate },
    files: [{ name: 'tests.yaml', text }],
  });
  expect(tested.body).toEqual({ passed: true, assertions: 1, failures: [] });
  expect(await service.stop()).toBe(0);
  await database.drop();
});

test('a workflow runs from the package of the runner, with the children that it starts', async () => {
  const workspace = makeWorkspace({
    '.github/workflows/hash.yml': `on: workflow_dispatch
jobs:
  hash:
    runs-on: ubuntu-latest
    steps:
      - run: echo "\${{ hashFiles('*.txt') }}"
      - uses: actions/upload-artifact@v4
        with: { name: text, path: '*.txt' }
`,
    'a.txt': 'a',
  });
  const start = join(packed, 'gatehouse-runner/bin/start.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, ['--', start, 'run', 'hash'], {
    cwd: workspace,
    env: { PATH: process.env['PATH'], HOME: workspace },
  });
  expect(stdout).toContain('hash ✓ hash success');
  expect(stdout).toMatch(/│ [0-9a-f]{64}\n/);
  expect(stdout).toContain('Artifact text: 1 file');
});

test('the page of the runner is served from its package', async () => {
  const workspace = makeWorkspace({});
  const start = join(packed, 'gatehouse-runner/bin/start.mjs');
  const command = [process.execPath, '--', start, 'serve', '-w', workspace] as const;
  const runner = await startProcess(workspace, {}, undefined, onTestFinished, { command });
  const get = async (path: string): Promise<string> => {
    const response = await fetch(new URL(path, runner.url));
    expect([path, response.status]).toEqual([path, 200]);
    return response.text();
  };
  // All that the page loads, whichever module asks for it.
  const waiting = [/src="([^"]+)"/.exec(await get('/'))?.[1] ?? ''];
  const seen = new Set<string>();
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const text = await get(path);
    for (const [, name = ''] of text.matchAll(/from '(\.[^']+)'/g)) {
      waiting.push(new URL(name, new URL(path, runner.url)).pathname);
    }
  }
  expect(seen.size).toBeGreaterThan(20);
  expect([...seen].filter((path) => !path.endsWith('.js'))).toEqual([]);
});

test('a package depends on what its modules import, exactly pinned, and the runner on no PostgreSQL', () => {
  const runner = manifestOf('gatehouse-runner')['dependencies'] ?? {};
  expect(Object.keys(runner).join(' ')).toBe(
    '@actions/expressions @actions/glob @bufbuild/protobuf @noble/ciphers @noble/curves @noble/hashes age-encryption fflate koffi mime-types node-releases pino pino-pretty prom-client semver smol-toml yaml yauzl',
  );
  const all = { ...runner, ...manifestOf('gatehouse')['dependencies'] };
  for (const version of Object.values(all))
    expect(version).toMatch(/^(?:npm:[\w-]+@)?\d+\.\d+\.\d+$/);
  expect(Object.keys(all)).toContain('uWebSockets.js');
});

test('all packages have one version, a licence, a list of files, and are published with their provenance', () => {
  const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
  const { version } = read('package.json') as { version: string };
  const manifests = [
    ...['gatehouse', 'gatehouse-runner'].map((name) => manifestOf(name)),
    ...['typescript', 'engine'].map((name) => read(`clients/${name}/package.json`)),
  ];
  for (const manifest of manifests) {
    expect(manifest).toMatchObject({
      version,
      license: 'Apache-2.0',
      type: 'module',
      files: expect.arrayContaining(['dist']),
      publishConfig: { access: 'public', provenance: true },
    });
    expect(manifest).not.toHaveProperty('private');
  }
});

test.each(['gatehouse', 'gatehouse-runner'])(
  '%s holds JavaScript alone, its licence and its documents',
  (name) => {
    const files = readdirSync(`${packed}/${name}`, { recursive: true, encoding: 'utf8' });
    expect(files.filter((file) => /\.ts$|\.test\.|\/notify\//.test(file))).toEqual([]);
    expect(files).toContain('README.md');
    expect(readFileSync(`${packed}/${name}/LICENSE`, 'utf8')).toBe(readFileSync('LICENSE', 'utf8'));
    expect(existsSync(`${packed}/${name}/docs/configuration.md`)).toBe(true);
  },
);
