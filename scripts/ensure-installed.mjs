// Installs the dependencies when something that package-lock.json names is missing or of another
// version. Runs before `start`, `test` and `check`, also under a Node.js older than the one that the
// dependencies bring; so it is plain JavaScript without dependencies. It never asks the network when
// everything is there.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { linkNode, linkCommands } from './link-commands.mjs';
import { platformPrefix, readRecord } from './supply-chain/verify-binaries.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const NODE_MAJOR = 22;
const NODE_MINOR = 18;

/** Services need no tools of development: those come with the first test, check or bench. */
const isForStart = /^pre(start|runner|model|fsck|budget)(:|$)/.test(
  process.env.npm_lifecycle_event ?? '',
);

/** The packages of a lock file by path, or undefined when there is none. */
function readPackages(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : undefined;
}

/** Does an `os` or `cpu` list of package.json admit `value`? */
function admits(field, value) {
  if (field === undefined) return true;
  const list = [field].flat();
  if (list.includes(`!${value}`)) return false;
  return list.every((entry) => entry.startsWith('!')) || list.includes(value);
}

/** Must this package be there? Optional ones are packages for one platform each. */
function isRequired(entry) {
  if (!admits(entry.os, process.platform) || !admits(entry.cpu, process.arch)) return false;
  if (entry.optional && (entry.os === undefined || entry.libc !== undefined)) return false;
  return !(entry.dev && isForStart);
}

/** Why an installation is needed, or undefined. */
function missing() {
  const wanted = readPackages(join(ROOT, 'package-lock.json'));
  // npm's own record of what it installed.
  const installed = readPackages(join(ROOT, 'node_modules', '.package-lock.json'));
  if (installed === undefined) return 'node_modules is missing';
  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '' || !isRequired(entry)) continue;
    const present = installed[path];
    const name = path.replace(/^.*node_modules\//, '');
    if (present === undefined || !existsSync(join(ROOT, path))) return `${name} is missing`;
    if (present.version !== entry.version || present.integrity !== entry.integrity) {
      return `${name} has another version than package-lock.json`;
    }
  }
  return undefined;
}

/** `npm ci`, quietly: when it fails one line says why. No package needs its install script. */
function install(reason) {
  const what = isForStart ? 'what the services need' : 'everything, tools of development too';
  process.stderr.write(`Installing ${what}, once (${reason}); this takes up to a minute …\n`);
  const args = [
    'ci',
    '--ignore-scripts',
    isForStart ? '--omit=dev' : '--include=dev',
    '--loglevel=error',
    '--no-fund',
    '--no-audit',
  ];
  const npm = process.env.npm_execpath;
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 1 << 26 };
  const result =
    npm !== undefined && /\.c?js$/.test(npm)
      ? spawnSync(process.execPath, [npm, ...args], options)
      : spawnSync('npm', args, { ...options, shell: process.platform === 'win32' });
  if (result.status === 0) return;
  const why = result.error?.message ?? reasonOf(result.stderr ?? '');
  process.stderr.write(`npm ci failed: ${why}\n`);
  process.exit(1);
}

/** Removes what nothing here uses: modules of uWebSockets.js for other platforms and versions of Node.js, and its headers. */
function prune() {
  const modules = join(ROOT, 'node_modules');
  for (const [name, entry] of Object.entries(readRecord())) {
    const used = platformPrefix(entry);
    if (used === undefined) continue;
    for (const path of Object.keys(entry.files)) {
      if (!path.startsWith(used)) rmSync(join(modules, name, path), { force: true });
    }
  }
  const platform = `${process.platform}-${process.arch}`;
  for (const name of [`node-${platform}`, `node-bin-${platform}`]) {
    rmSync(join(modules, name, 'include'), { recursive: true, force: true });
  }
}

/** What npm says of its failure, in one line: its code, the first thing it says, where its log lies. */
function reasonOf(text) {
  const lines = [...text.matchAll(/^npm (?:error|ERR!) (.*)$/gm)].map(([, line]) => line);
  const code = lines.find((line) => line.startsWith('code '))?.slice('code '.length);
  const said = lines.find(
    (line) => !/^(?:code|syscall|errno|path|dest|command|sh) |^\s/.test(line),
  );
  const log = /complete log of this run can be found in: (.+)/.exec(text)?.[1];
  const words = [code, said?.replace(/^(?:\d{3}|notarget) /, '')]
    .filter((word) => word !== undefined)
    .join(': ');
  const first = words === '' ? text.trim().split('\n')[0] || 'it did not say why' : words;
  return `${first}${log === undefined ? '' : ` (its log: ${log})`}`;
}

/** The scripts need a Node.js that runs TypeScript; on most platforms a dependency brings it. */
function requireNode() {
  if (linkNode()) return;
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > NODE_MAJOR || (major === NODE_MAJOR && minor >= NODE_MINOR)) return;
  process.stderr.write(
    `Node.js ${NODE_MAJOR}.${NODE_MINOR} or newer is needed, this is ${process.version}, and no package brings one for ${process.platform}-${process.arch}.\n`,
  );
  process.exit(1);
}

/** The empty database that the first start copies. What hinders it is said by that start, if it is needed. */
function prepareDatabase() {
  if (process.env.DATABASE_URL) return;
  const node = join(ROOT, 'node_modules', '.bin', 'node');
  const command = existsSync(node) ? node : process.execPath;
  spawnSync(command, ['scripts/prepare-postgres.ts'], { cwd: ROOT, stdio: 'ignore' });
}

const reason = missing();
if (reason !== undefined) {
  install(reason);
  prune();
}
requireNode();
linkCommands();
if (reason !== undefined) {
  process.stderr.write('Preparing an empty database, which first starts copy …\n');
  prepareDatabase();
}
