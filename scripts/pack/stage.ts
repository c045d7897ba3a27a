import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** The folder of the project, absolute. */
export const ROOT = resolve(import.meta.dirname, '../..');

/** The parts of a package.json that packages take from the project's. */
export type Manifest = {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
};

/** The project's own package.json. */
export function ownManifest(): Manifest {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;
}

/** A folder of `out` in which a package is built, with the licence in it alone. Answers its absolute path. */
export function emptyStage(out: string, name: string): string {
  const stage = resolve(out, name);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  cpSync(join(ROOT, 'LICENSE'), join(stage, 'LICENSE'));
  return stage;
}

/** Writes `value` as JSON, as npm formats it. */
export function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Lets the tsconfig.json of a folder, which extends the project's by a relative path, extend it wherever the folder is. */
export function useOwnConfig(stage: string): void {
  const path = join(stage, 'tsconfig.json');
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace('../../tsconfig.json', join(ROOT, 'tsconfig.json')));
}

/** Compiles the TypeScript of a folder by its tsconfig.json. Throws where the compiler refuses it. */
export function compile(stage: string): void {
  run(stage, join(ROOT, 'node_modules/.bin/tsc'), '-p', stage);
}

/** Leaves the tarball of a package beside its folder. Throws where npm refuses it. */
export function packStage(stage: string): void {
  run(stage, 'npm', 'pack', '--silent', '--pack-destination', dirname(stage));
}

function run(cwd: string, command: string, ...words: readonly string[]): void {
  const { status } = spawnSync(command, words, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${words.join(' ')} failed`);
}
