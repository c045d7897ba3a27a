import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { LocalRegistry } from './local-registry.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** A folder to pack into, which the caller removes. It lies in the project, where compiler and Node.js find what packages depend on. */
export function folderForPackages(): string {
  const out = join(ROOT, 'dist');
  mkdirSync(out, { recursive: true });
  return mkdtempSync(join(out, 'test-'));
}

/**
 * A folder, empty but for what was installed before, with a package that `npm run pack` left, by the path of its tarball.
 * It is installed as its user would, but without a network: what it depends on comes from what is installed here. The caller removes it.
 */
export async function installPackage(
  tarball: string,
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-installed-')),
): Promise<string> {
  const manifest = join(folder, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true, "type": "module" }\n');
  const registry = await LocalRegistry.open();
  const own = ['--registry', registry.url, '--cache', join(folder, '.npm-cache')];
  try {
    await promisify(execFile)(
      'npm',
      ['install', '--silent', '--no-audit', ...own, resolve(tarball)],
      { cwd: folder },
    );
  } finally {
    registry.close();
  }
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
