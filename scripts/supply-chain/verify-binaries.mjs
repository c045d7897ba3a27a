/**
 * Compares the third-party binaries of node_modules with what binaries.json records of them, and puts own builds
 * (own-binaries.json, docs/dependencies.md) in their places before. Plain JavaScript without dependencies, for a
 * Node.js as old as 20: it runs before anything that it verifies does.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const RECORD = fileURLToPath(new URL('binaries.json', import.meta.url));
const OWN = 'own-binaries.json';
/** Below node_modules, so that an installation that begins anew forgets it. */
const SEEN = join('.cache', 'gatehouse', 'verified-binaries.json');
const SHA256 = /^[0-9a-f]{64}$/;

/** The SHA-256 of a file, in hexadecimal. Reads it in pieces. */
export function sha256Of(path) {
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
export function listFiles(packageRoot, folder) {
  const from = join(packageRoot, folder);
  if (!existsSync(from)) return [];
  return readdirSync(from, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
    .map((path) => relative(packageRoot, path).split(sep).join('/'))
    .sort((a, b) => (a < b ? -1 : 1));
}

/** One digest for many files: of lines as `sha256sum` prints them, in the order of the paths. */
export function digestOfAll(packageRoot, paths, digestOf = sha256Of) {
  const lines = paths.map((path) => `${digestOf(join(packageRoot, path))}  ${path}\n`);
  return createHash('sha256').update(lines.join('')).digest('hex');
}

/**
 * Verifies what is installed below `root`. Returns a sentence for each thing that is wrong, which is none when all
 * is as recorded. Files whose size, inode and times are those of the last good run are not read again.
 * Errors: an own-binaries.json that is malformed throws with the field's path.
 * Cost: a second for 250 MB the first time, some tens of milliseconds later.
 */
export function verifyBinaries(root, { platform = process.platform, arch = process.arch } = {}) {
  const modules = join(root, 'node_modules');
  const recordText = readFileSync(RECORD, 'utf8');
  const record = JSON.parse(recordText);
  const own = readOwn(root, record);
  const seen = new Seen(join(modules, SEEN), `${recordText}${JSON.stringify(own)}`);
  const problems = [];
  for (const [name, entry] of Object.entries(record)) {
    const packageRoot = join(modules, name);
    if (!existsSync(packageRoot)) continue;
    const builds = own[name] ?? {};
    placeOwn(packageRoot, name, builds, seen, problems);
    verifyPackage({ packageRoot, name, entry, builds, seen, problems, platform, arch });
  }
  if (problems.length === 0) seen.keep();
  return problems;
}

function verifyPackage({ packageRoot, name, entry, builds, seen, problems, platform, arch }) {
  const say = (path, what) => problems.push(`${name}/${path}: ${what}`);
  const prefix = entry.platformFiles?.replace('{platform}', platform).replace('{arch}', arch);
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
    const expected = builds[path]?.sha256 ?? entry.files[path];
    if (expected === undefined) {
      if (entry.rest === undefined) say(path, 'is not recorded');
      else rest.push(path);
      continue;
    }
    found.add(path);
    // Other platforms' files are not loaded here.
    if (prefix !== undefined && !path.startsWith(prefix)) continue;
    const actual = seen.digestOf(full);
    if (actual !== expected) say(path, `has SHA-256 ${actual}, recorded is ${expected}`);
  }
  for (const path of Object.keys(entry.files)) {
    if (prefix !== undefined && !path.startsWith(prefix)) continue;
    if (!found.has(path)) say(path, 'is missing');
  }
  if (entry.rest === undefined) return;
  const digest = digestOfAll(packageRoot, rest, (full) => seen.digestOf(full));
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

/** Own builds by package and path. */
function readOwn(root, record) {
  const path = join(root, OWN);
  if (!existsSync(path)) return {};
  const own = parseOwn(readFileSync(path, 'utf8'));
  for (const [name, builds] of Object.entries(own)) {
    const entry = record[name];
    if (entry === undefined) throw ownError(name, `is none of ${Object.keys(record).join(', ')}`);
    if (typeof builds !== 'object' || builds === null) throw ownError(name, 'is no object');
    for (const [file, build] of Object.entries(builds)) {
      const field = `${name}["${file}"]`;
      const inside = entry.roots.some((folder) => file.startsWith(`${folder}/`));
      if (!inside || file.split('/').includes('..')) {
        throw ownError(field, `lies outside of ${entry.roots.join(', ')}`);
      }
      if (!SHA256.test(build?.sha256))
        throw ownError(`${field}.sha256`, 'is no SHA-256 in hexadecimal');
      if (build.from !== undefined && typeof build.from !== 'string') {
        throw ownError(`${field}.from`, 'is no path');
      }
    }
  }
  return own;
}

function parseOwn(text) {
  try {
    const own = JSON.parse(text);
    if (typeof own === 'object' && own !== null && !Array.isArray(own)) return own;
  } catch (error) {
    throw ownError('', `is no JSON: ${error.message}`);
  }
  throw ownError('', 'is no JSON object');
}

function ownError(field, what) {
  return new Error(`${OWN}: ${field}${field === '' ? '' : ' '}${what}`);
}

/** Copies own builds that are not in their places yet, each only if it is what its owner said it is. */
function placeOwn(packageRoot, name, builds, seen, problems) {
  for (const [path, { from, sha256 }] of Object.entries(builds)) {
    const target = join(packageRoot, path);
    if (from === undefined) continue;
    if (existsSync(target) && seen.digestOf(target) === sha256) continue;
    if (!existsSync(from)) {
      problems.push(`${name}/${path}: the own build ${from} is missing`);
      continue;
    }
    const actual = sha256Of(from);
    if (actual !== sha256) {
      problems.push(
        `${name}/${path}: the own build ${from} has SHA-256 ${actual}, ${OWN} says ${sha256}`,
      );
      continue;
    }
    // Renamed into place: a program that runs keeps the file that it runs.
    const placed = `${target}.own-${process.pid}`;
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(from, placed);
    chmodSync(placed, 0o755);
    renameSync(placed, target);
  }
}

/** Digests of the last run that found nothing wrong, by path, while the file is the one that it was. */
class Seen {
  #path;
  #of;
  #before;
  #now = {};

  constructor(path, recordText) {
    this.#path = path;
    this.#of = createHash('sha256').update(recordText).digest('hex');
    this.#before = readSeen(path, this.#of);
  }

  digestOf(path) {
    const { size, ino, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
    const state = `${size} ${ino} ${mtimeNs} ${ctimeNs}`;
    const before = this.#before[path];
    const digest = before?.[0] === state ? before[1] : sha256Of(path);
    this.#now[path] = [state, digest];
    return digest;
  }

  /** Where node_modules may not be written the next run reads all again. */
  keep() {
    const text = JSON.stringify({ of: this.#of, files: this.#now });
    if (text === JSON.stringify({ of: this.#of, files: this.#before })) return;
    try {
      mkdirSync(dirname(this.#path), { recursive: true });
      const written = `${this.#path}.${process.pid}`;
      writeFileSync(written, text);
      renameSync(written, this.#path);
    } catch (error) {
      if (!['EROFS', 'EACCES', 'EPERM'].includes(error.code)) throw error;
    }
  }
}

function readSeen(path, of) {
  try {
    const seen = JSON.parse(readFileSync(path, 'utf8'));
    return seen.of === of ? seen.files : {};
  } catch (error) {
    if (error.code === 'ENOENT' || error instanceof SyntaxError) return {};
    throw error;
  }
}

/** Verifies, and ends the process with 1 and what is wrong on stderr if anything is. */
export function verifyBinariesOrExit(root) {
  let problems;
  try {
    problems = verifyBinaries(root);
  } catch (error) {
    problems = [error.message];
  }
  if (problems.length === 0) return;
  process.stderr.write(
    `Binaries in node_modules are not what is recorded of them; nothing is started:\n${problems.map((p) => `  ${p}\n`).join('')}Install anew (rm -r node_modules && npm ci), or see docs/dependencies.md, Binaries.\n`,
  );
  process.exit(1);
}

// By hand, and while an image is built: node scripts/supply-chain/verify-binaries.mjs [ROOT]
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  verifyBinariesOrExit(process.argv[2] ?? fileURLToPath(new URL('../..', import.meta.url)));
}
