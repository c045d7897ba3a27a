import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readRecord, verifyBinaries } from '../../scripts/supply-chain/verify-binaries.mjs';
import { WITHOUT_GLIBC } from '../support/without-glibc.ts';

const ROOT = join(import.meta.dirname, '../..');
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

let root = '';
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'gatehouse-supply-chain-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Runs a script of a copy below `root`. */
function run(script: string, env = {}): { status: number | null; stderr: string } {
  for (const path of ['supply-chain', 'ensure-installed.mjs', 'link-commands.mjs']) {
    cpSync(join(ROOT, 'scripts', path), join(root, 'scripts', path), { recursive: true });
  }
  const { status, stderr } = spawnSync(process.execPath, [script], {
    cwd: root,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], DATABASE_URL: 'postgres://unused', ...env },
  });
  return { status, stderr };
}

test('an installation that fails says why in one line', () => {
  const error = [
    'code E403',
    '403 403 Forbidden - GET https://registry.example/x',
    '403 In most cases, you or one of your dependencies are requesting',
    'A complete log of this run can be found in: /tmp/x.log',
  ];
  const text = error.map((line) => `npm error ${line}\n`).join('');
  write('npm.cjs', `process.stderr.write(${JSON.stringify(text)}); process.exit(1);`);
  write('package-lock.json', '{"packages":{}}');
  const npm = join(root, 'npm.cjs');
  expect(run('scripts/ensure-installed.mjs', { npm_execpath: npm })).toEqual({
    status: 1,
    stderr:
      'Installing everything, tools of development too, once (node_modules is missing); this takes up to a minute …\n' +
      'npm ci failed: E403: 403 Forbidden - GET https://registry.example/x (its log: /tmp/x.log)\n',
  });
});

test('an installation leaves the module of uWebSockets.js that this Node.js loads, and no other', () => {
  const { files } = readRecord()['uWebSockets.js'] ?? { files: {} };
  const bin = 'node_modules/uWebSockets.js/dist/bin';
  const install = `
    const { mkdirSync, writeFileSync } = require('node:fs');
    mkdirSync('${bin}', { recursive: true });
    for (const file of ${JSON.stringify(Object.keys(files))}) writeFileSync('node_modules/uWebSockets.js/' + file, '');
    writeFileSync('node_modules/.package-lock.json', '{"packages":{}}');`;
  write('npm.cjs', install);
  write('package-lock.json', '{"packages":{}}');
  const npm = join(root, 'npm.cjs');
  expect(run('scripts/ensure-installed.mjs', { npm_execpath: npm }).status).toBe(0);
  const { platform, arch, versions } = process;
  expect(readdirSync(join(root, bin))).toEqual([
    `uws_${platform}_${arch}_${versions.modules}.node`,
  ]);
});

test.runIf(process.platform === 'linux')(
  'a Node.js that does not run, as with musl, is not put before the one of the system',
  () => {
    const { platform, arch, execPath } = process;
    write(`node_modules/node-${platform}-${arch}/bin/node`, '');
    mkdirSync(join(root, 'node_modules/.bin'));
    const link = join(root, 'node_modules/.bin/node');
    expect(run('scripts/link-commands.mjs')).toEqual({ status: 0, stderr: '' });
    expect(readlinkSync(link)).toBe(`../node-${platform}-${arch}/bin/node`);
    // The command takes the one on the PATH then.
    expect(run('scripts/link-commands.mjs', { NODE_OPTIONS: WITHOUT_GLIBC }).stderr).toBe('');
    expect(existsSync(link)).toBe(false);
    cpSync(join(ROOT, 'bin/gatehouse'), join(root, 'bin/gatehouse'));
    write('scripts/gatehouse.mjs', 'process.stdout.write(process.execPath);');
    const env = { PATH: `${dirname(execPath)}:${process.env['PATH']}` };
    const { stdout } = spawnSync(join(root, 'bin/gatehouse'), { encoding: 'utf8', env });
    expect(stdout).toBe(execPath);
  },
);

describe('binaries that others packed', () => {
  const FILES = {
    'bin/run': 'a program',
    'lib/one.so': 'a library',
    'share/a': 'text',
    'share/b': 'more text',
  };
  const rest = sha256(`${sha256('text')}  share/a\n${sha256('more text')}  share/b\n`);
  const RECORD = {
    packed: {
      roots: ['bin', 'lib', 'share'],
      files: { 'bin/run': sha256('a program'), 'lib/one.so': sha256('a library') },
      rest,
    },
    listed: { roots: ['dist'], files: { 'dist/x.node': sha256('a module') } },
  };

  beforeEach(() => {
    for (const [path, text] of Object.entries(FILES)) write(`node_modules/packed/${path}`, text);
    write('node_modules/listed/dist/x.node', 'a module');
  });

  test('those that are installed here are what is recorded', () => {
    const names = Object.keys(readRecord());
    expect(names.some((name) => existsSync(join(ROOT, 'node_modules', name)))).toBe(true);
    expect(verifyBinaries(ROOT)).toEqual([]);
  });

  test('what is as recorded is good, and so is what is not installed', () => {
    expect(verifyBinaries(root, RECORD)).toEqual([]);
    rmSync(join(root, 'node_modules/packed'), { recursive: true });
    expect(verifyBinaries(root, RECORD)).toEqual([]);
  });

  test.each<[string, () => void, string]>([
    [
      'a changed program',
      () => write('node_modules/packed/bin/run', 'A program'),
      `packed/bin/run: has SHA-256 ${sha256('A program')}, recorded is ${sha256('a program')}`,
    ],
    [
      'another file that changed',
      () => write('node_modules/packed/share/b', 'less text'),
      'packed/bin, lib, share: its 2 other files are not those that are recorded',
    ],
    [
      'a file that nobody recorded',
      () => write('node_modules/listed/dist/more.node', ''),
      'listed/dist/more.node: is not recorded',
    ],
    [
      'a program that is missing',
      () => rmSync(join(root, 'node_modules/packed/bin/run')),
      'packed/bin/run: is missing',
    ],
    [
      'a link to elsewhere',
      () => symlinkSync('/bin/sh', join(root, 'node_modules/packed/lib/more.so')),
      'packed/lib/more.so: is a link to what is not recorded',
    ],
  ])('%s is told', (_, change, problem) => {
    change();
    expect(verifyBinaries(root, RECORD)).toEqual([problem]);
  });

  test('links of libraries, as the first start makes them, are no fault', () => {
    symlinkSync('one.so', join(root, 'node_modules/packed/lib/one.so.1'));
    expect(verifyBinaries(root, RECORD)).toEqual([]);
  });

  test('what another version of Node.js loads is not compared', () => {
    write('node_modules/listed/dist/y.node', 'a changed module');
    const files = { ...RECORD.listed.files, 'dist/y.node': sha256('another module') };
    const listed = { ...RECORD.listed, files };
    expect(verifyBinaries(root, { listed })[0]).toContain('listed/dist/y.node: has SHA-256');
    expect(verifyBinaries(root, { listed: { ...listed, platformFiles: 'dist/x' } })).toEqual([]);
  });

  test('the script ends with 1 and says what is wrong', () => {
    const script = 'scripts/supply-chain/verify-binaries.mjs';
    expect(run(script)).toEqual({ status: 0, stderr: '' });
    write('node_modules/uWebSockets.js/dist/bin/more.node', '');
    const { status, stderr } = run(script);
    expect(status).toBe(1);
    expect(stderr).toContain('uWebSockets.js/dist/bin/more.node: is not recorded');
  });
});

test('a licence that nobody admitted is found, and one that only development may have', () => {
  write('package-lock.json', readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  expect(run('scripts/supply-chain/check-licences.ts').status).toBe(0);
  const path = join(root, 'package-lock.json');
  const lock = JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, unknown> };
  lock.packages['node_modules/a'] = { version: '1.0.0', license: '(MIT OR GPL-3.0-only)' };
  lock.packages['node_modules/b'] = { version: '1.0.0', license: 'MPL-2.0', dev: true };
  lock.packages['node_modules/c'] = { version: '1.0.0', license: 'MPL-2.0' };
  lock.packages['node_modules/d'] = { version: '1.0.0' };
  writeFileSync(path, JSON.stringify(lock));
  const { status, stderr } = run('scripts/supply-chain/check-licences.ts');
  expect(status).toBe(1);
  expect(stderr.trim().split('\n')).toEqual([
    'a@1.0.0: GPL-3.0-only is not in licences.json',
    'c@1.0.0: MPL-2.0 is admitted only for development, unchanged',
    'd@1.0.0 states no licence',
  ]);
});
