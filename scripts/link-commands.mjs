// Puts into node_modules/.bin what npm does not: the Node.js that a dependency brings, and this package's own
// commands. Runs after an installation, by itself (postinstall) and from ensure-installed.mjs, so it is plain
// JavaScript too.
import { existsSync, lstatSync, mkdirSync, rmSync, symlinkSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const BIN = join(dirname(fileURLToPath(import.meta.url)), '..', 'node_modules', '.bin');

/** What loads a program that was made for glibc, as the Node.js of the dependencies is (src/store/embedded/embedded-postgres-binaries.ts). */
const LOADERS = { x64: '/lib64/ld-linux-x86-64.so.2', arm64: '/lib/ld-linux-aarch64.so.1' };

/** The Node.js that a dependency brings, which scripts find first on their PATH. False where none does, or it does not run, as with musl. */
export function linkNode() {
  const loader = process.platform === 'linux' ? LOADERS[process.arch] : undefined;
  if (loader !== undefined && !existsSync(loader)) {
    // npm has linked it.
    rmSync(join(BIN, 'node'), { force: true });
    return false;
  }
  if (existsSync(join(BIN, 'node'))) return true;
  // npm 10 removes the link again together with the packages of other platforms, which share its name.
  const platform = `${process.platform}-${process.arch}`;
  const target = [`node-${platform}`, `node-bin-${platform}`]
    .map((name) => join('..', name, 'bin', 'node'))
    .find((path) => existsSync(join(BIN, path)));
  if (target === undefined) return false;
  link('node', target);
  return true;
}

/** This package's own commands: npm links those of dependencies alone. */
export function linkCommands() {
  for (const name of ['gatehouse', 'gatehouse-runner']) {
    if (!existsSync(join(BIN, name))) link(name, join('..', '..', 'bin', name));
  }
}

function link(name, target) {
  const path = join(BIN, name);
  mkdirSync(BIN, { recursive: true });
  // One that leads nowhere any more.
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) unlinkSync(path);
  symlinkSync(target, path);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  linkNode();
  linkCommands();
}
