/**
 * Leaves the packages that others install as tarballs in dist/: `npm run pack`. Each is built anew in a folder of its
 * own there, as JavaScript with types, since Node.js runs no TypeScript below node_modules.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '..');
const OUT = join(ROOT, 'dist');
/** Messages that the client speaks. Here it imports them from SHARED_TYPES; its package has them in src/gen. */
const GENERATED = ['gatehouse', 'google', 'workspace'];
const SHARED_TYPES = '../../../src/gen/';

function run(cwd: string, command: string, ...words: readonly string[]): void {
  const { status } = spawnSync(command, words, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} failed`);
}

function packClient(): void {
  const from = join(ROOT, 'clients/typescript');
  const stage = join(OUT, 'client');
  rmSync(stage, { recursive: true, force: true });
  cpSync(from, stage, { recursive: true });
  for (const name of readdirSync(join(stage, 'src'))) {
    if (name.endsWith('.ts')) importOwnTypes(join(stage, 'src', name));
  }
  for (const name of GENERATED) {
    cpSync(join(ROOT, 'src/gen', name), join(stage, 'src/gen', name), { recursive: true });
  }
  run(stage, join(ROOT, 'node_modules/.bin/tsc'), '-p', stage);
  cpSync(join(ROOT, 'LICENSE'), join(stage, 'LICENSE'));
  run(stage, 'npm', 'pack', '--silent', '--pack-destination', OUT);
}

function importOwnTypes(path: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`'${SHARED_TYPES}`, "'./gen/"));
}

mkdirSync(OUT, { recursive: true });
packClient();
