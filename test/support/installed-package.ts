import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');

type Manifest = { readonly dependencies?: Readonly<Record<string, string>> };

/**
 * An empty folder with a package that `npm run pack` left, installed as its user would, but without a network: what
 * it depends on comes as tarballs, too, of what is installed here. The caller removes it.
 */
export function installPackage(stage: string, tarball: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-installed-'));
  const packed = join(folder, '.packed');
  mkdirSync(packed);
  const { dependencies = {} } = JSON.parse(
    readFileSync(join(ROOT, 'dist', stage, 'package.json'), 'utf8'),
  ) as Manifest;
  const paths = Object.keys(dependencies).map((name) => join(ROOT, 'node_modules', name));
  const others = npm(packed, 'pack', '--silent', '--ignore-scripts', ...paths)
    .trim()
    .split('\n');
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  const files = others.map((name) => join(packed, name));
  npm(folder, 'install', '--offline', '--silent', join(ROOT, 'dist', tarball), ...files);
  return folder;
}

/** Makes packages of this project's own, such as a framework of an example, found from `folder`. */
export function lend(folder: string, ...names: readonly string[]): void {
  for (const name of names) {
    const path = join(folder, 'node_modules', name);
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), path);
  }
}

function npm(cwd: string, ...words: readonly string[]): string {
  const own = ['--cache', join(cwd, '.npm-cache')];
  return execFileSync('npm', [...words, ...own], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
