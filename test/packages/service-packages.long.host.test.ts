import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { packClient } from '../../scripts/pack/pack-client.ts';
import { packServices } from '../../scripts/pack/pack-services.ts';
import { freePorts } from '../rollout/balancer.ts';
import { folderForPackages, installPackage, lend } from '../support/installed-package.ts';
import { shellBlocks } from '../support/readme.ts';
import { startProcess } from '../support/runner-process.ts';
import { type Service, startService } from '../support/service.ts';

/* The packages as their users have them: installed from their tarballs into an empty folder, without checkout or network. */

const packed = folderForPackages();
const folders = new Map<string, string>();
const folderOf = (name: string): string => folders.get(name) ?? '';

beforeAll(async () => {
  packServices(packed);
  packClient(packed);
  for (const name of ['gatehouse', 'gatehouse-runner']) {
    folders.set(name, await installPackage(join(packed, `${name}-0.1.0.tgz`)));
  }
}, 180_000);
afterAll(() => {
  for (const folder of [packed, ...folders.values()])
    rmSync(folder, { recursive: true, force: true });
});

/** Runs the commands of a README, but the installation, as they stand there. */
async function typed(script: string, cwd: string, env: Record<string, string> = {}) {
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: cwd, ...env },
  });
  return stdout;
}

describe('gatehouse', () => {
  const folder = (): string => folderOf('gatehouse');
  const readme = (): string => join(folder(), 'node_modules/gatehouse/README.md');
  let service: Service;

  beforeAll(async () => {
    service = await startService({
      dataDir: join(folder(), '.data'),
      launcher: {
        command: [join(folder(), 'node_modules/.bin/gatehouse'), 'serve'],
        cwd: folder(),
      },
    });
  });
  const asUser = (): Record<string, string> => ({
    GATEHOUSE_URL: service.baseUrl,
    GATEHOUSE_TOKEN: service.token,
    GATEHOUSE_ADMIN_SECRET: service.adminSecret,
  });

  test('the service migrated a PostgreSQL of its own, and the first example prints what it says', async () => {
    const migrated = service.log.filter(({ msg }) => msg === 'schema_migrated');
    const files = readdirSync('migrations').filter((name) => name.endsWith('.sql'));
    expect(migrated.map(({ migration }) => `${String(migration)}.sql`)).toEqual(files.toSorted());
    const [install, ask = ''] = shellBlocks('A first check', readme());
    expect(install).toBe('npm install ./gatehouse-0.1.0.tgz\nnpx gatehouse serve\n');
    // The last one, as a deny, ends with 1.
    const printed = await typed(`${ask}true`, folder(), asUser());
    expect(printed).toMatch(
      /^wrote 1 tuple; .*\nallow\ndeny\ndeny resource:plan#editor@user:anne\n/,
    );
  });

  test('from a model over its types to a guard and an explained deny', async () => {
    const [prepare = '', ask = ''] = shellBlocks('Guard a program', readme());
    const [install = '', ...rest] = prepare.split(/(?<=\n)/);
    expect(install).toBe('npm install ./gatehouse-client-0.1.0.tgz express\n');
    await installPackage(join(packed, 'gatehouse-client-0.1.0.tgz'), folder());
    lend(folder(), 'express');
    const text = readFileSync(readme(), 'utf8');
    const [, typedNeed = ''] = /```ts\n([^]*?)```/.exec(text) ?? [];
    const [, program = ''] = /```js\n([^]*?)```/.exec(text) ?? [];
    const [port] = await freePorts(1);
    writeFileSync(join(folder(), 'viewer.mts'), typedNeed);
    writeFileSync(join(folder(), 'server.mjs'), program.replace('3000', String(port)));
    const script = `trap 'kill %1' EXIT\n${rest.join('')}${ask.replaceAll(':3000', `:${port}`)}true`;
    const printed = await typed(script, folder(), asUser());
    const lines = printed.split('\n').filter((line) => !/^(?:wrote 1 tuple|version )/.test(line));
    expect(lines.join('\n')).toBe(`{"doc":"plan"}403deny doc:plan#viewer@user:ben
  no grant: no tuple leads from doc:plan#viewer to user:ben
  any of these would allow it:
    doc:plan#viewer@user:ben
    doc:plan#owner@user:ben
`);
    const compiles = (source: string): boolean => {
      writeFileSync(join(folder(), 'typed.ts'), source);
      const words = [
        '--noEmit',
        '--strict',
        '--allowImportingTsExtensions',
        '--module',
        'nodenext',
      ];
      const tsc = resolve('node_modules/.bin/tsc');
      return spawnSync(tsc, [...words, '--types', '', 'typed.ts'], { cwd: folder() }).status === 0;
    };
    expect(compiles(typedNeed)).toBe(true);
    expect(compiles(typedNeed.replace("relation: 'viewer'", "relation: 'viewr'"))).toBe(false);
  }, 120_000);

  test('it stops in order', async () => {
    expect(await service.stop()).toBe(0);
  });
});

test('what is packed and installed is as large as README.md says', () => {
  const megabytes = (path: string): number =>
    Number(execFileSync('du', ['-sk', path], { encoding: 'utf8' }).split('\t')[0]) / 1024;
  const readme = readFileSync('README.md', 'utf8');
  for (const name of ['gatehouse', 'gatehouse-runner']) {
    const row = new RegExp(`^\\| \`${name}\` .*\\| ([\\d.]+) MB \\| (\\d+) MB`, 'm').exec(readme);
    const [, tarball, installed] = (row ?? []).map(Number);
    const sizes = [
      [megabytes(join(packed, `${name}-0.1.0.tgz`)), tarball],
      [megabytes(join(folderOf(name), 'node_modules')), installed],
    ];
    for (const [size, said] of sizes) expect(size).toBeLessThan((said ?? 0) * 1.1);
  }
});

test('gatehouse-runner: its first example runs, and PostgreSQL and uWebSockets.js are not there', async () => {
  const folder = folderOf('gatehouse-runner');
  const readme = join(folder, 'node_modules/gatehouse-runner/README.md');
  const workflow = /```yaml\n([^]*?)```/.exec(readFileSync(readme, 'utf8'))?.[1] ?? '';
  mkdirSync(join(folder, '.github/workflows'), { recursive: true });
  writeFileSync(join(folder, '.github/workflows/hello.yml'), workflow);
  writeFileSync(join(folder, 'README.md'), '');
  execFileSync('git', ['init', '-q'], { cwd: folder });
  const [script = ''] = shellBlocks('Run a workflow', readme);
  const printed = await typed(
    script.replace('npm install ./gatehouse-runner-0.1.0.tgz\n', ''),
    folder,
  );
  expect(printed).toContain('hello │ README.md\n');
  expect(printed).toContain('hello ✓ hello success');
  // Nobody is warned of what the package leaves out.
  const command = [join(folder, 'node_modules/.bin/gatehouse-runner'), 'serve'] as const;
  const served = await startProcess(folder, {}, undefined, onTestFinished, {
    command,
    cwd: folder,
  });
  expect((await fetch(served.url)).status).toBe(200);
  expect(served.log()).not.toContain('http1_on_node');
  const installed = readdirSync(join(folder, 'node_modules'));
  expect(installed.filter((name) => /^pg|postgres|uws|uwebsockets/i.test(name))).toEqual([]);
}, 120_000);
