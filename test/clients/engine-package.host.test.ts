import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { engineApi, recordedApi } from '../../scripts/pack/engine-api.ts';
import { installEngine, PRINTED } from '../support/installed-engine.ts';

/* The package as its user has it: packed, installed into an empty folder without a network, and its examples run there. */

let folder: string;
let installed: string;

beforeAll(async () => {
  folder = await installEngine();
  installed = join(folder, 'node_modules/@gatehouse/engine');
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the example decides in Node.js', () => {
  const run = { cwd: folder, encoding: 'utf8', env: {} } as const;
  expect(execFileSync(process.execPath, ['check.mjs'], run)).toBe(PRINTED);
});

test('its files are those of the interface and what it runs, and name nothing of Node.js', () => {
  const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
  expect(files.filter((name) => name.includes('.test.'))).toEqual([]);
  expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
  const typed = files.filter((name) => name.endsWith('.ts'));
  expect(typed.filter((name) => !name.endsWith('.d.ts'))).toEqual([]);
  expect(typed.map((name) => name.slice('dist/'.length, -'.d.ts'.length)).toSorted()).toEqual([
    'library/engine',
    'library/engine-error',
    'library/engine-options',
    'library/index',
    'library/model',
    'library/run-tests',
    'library/types',
    'shared/json',
  ]);
  const scripts = files.filter((name) => name.endsWith('.js'));
  expect(scripts.length).toBeGreaterThan(100);
  const own = scripts.filter((name) => !name.startsWith('dist/included/'));
  const named = own.filter((name) =>
    /['"]node:|\brequire\(|\bimport\(/.test(readFileSync(join(installed, name), 'utf8')),
  );
  expect(named).toEqual([]);
});

test('its dependencies are what it imports, in the versions that are tested here', () => {
  const read = (path: string) =>
    JSON.parse(readFileSync(path, 'utf8')) as { dependencies: Record<string, string> };
  const { dependencies } = read('clients/engine/package.json');
  const scripts = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.js'),
  );
  const imported = scripts.flatMap((name) =>
    Array.from(
      readFileSync(join(installed, name), 'utf8').matchAll(/from '((?:@[\w-]+\/)?[\w-][\w.-]*)/g),
      ([, found = '']) => found,
    ),
  );
  expect([...new Set(imported)].toSorted()).toEqual(Object.keys(dependencies).toSorted());
  const own = read('package.json').dependencies;
  for (const [name, version] of Object.entries(dependencies)) expect(own[name], name).toBe(version);
});

test('its types are found by a compiler that knows neither Node.js nor this project', () => {
  const source = `
import { Engine, parseModel, type Decision, type Tuple } from '@gatehouse/engine';
const engine = new Engine(parseModel('built-in'), { now: () => 0 });
const tuple: Tuple = { namespace: 'resource', objectId: 'plan', relation: 'viewer', subject: { everyone: true } };
engine.write([tuple, 'resource:plan#viewer@user:ann']);
export const decision: Decision = engine.decide({ ...tuple, subject: 'ann' });
export const right: boolean = engine.check('resource:plan#viewer@user:ann', { context: { ip: '::1' } });
// @ts-expect-error A misspelt member does not compile.
engine.write([{ ...tuple, conditionName: 'x' }]);
// @ts-expect-error Nobody is asked about a wildcard.
engine.check({ ...tuple, subject: { everyone: true } });
`;
  writeFileSync(join(folder, 'typed.mts'), source);
  const words = ['--noEmit', '--strict', '--types', '', '--lib', 'es2022', '--module', 'nodenext'];
  const tsc = resolve('node_modules/.bin/tsc');
  const compile = () =>
    execFileSync(tsc, [...words, '--target', 'es2022', 'typed.mts'], { cwd: folder });
  expect(compile).not.toThrow();
});

test('the interface is as it was recorded', () => {
  const advice = 'a changed interface is recorded by: node scripts/pack/engine-api.ts --write';
  expect(engineApi(installed), advice).toBe(recordedApi());
});
