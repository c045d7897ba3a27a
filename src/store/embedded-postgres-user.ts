import { spawnSync } from 'node:child_process';
import { chownSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppError } from '../shared/app-error.ts';
import type { PostgresBinaries } from './embedded-postgres-binaries.ts';
import type { StoreReason } from './store-reason.ts';

export type UserIds = { readonly uid: number; readonly gid: number };

/** Under which user the server runs, and how a command is started as that user. */
export type ServerUser = {
  /** Owner of the server's files. Undefined: our own user, also seen from outside a user namespace. */
  readonly owner?: UserIds | undefined;
  /** For spawn; undefined when there is nothing to change or `prefix` changes it. */
  readonly spawnAs?: UserIds | undefined;
  /** Words before the command. */
  readonly prefix: readonly string[];
};

/** Preferred accounts, in order; a dedicated one keeps the data from other programs. */
const ACCOUNTS = ['gatehouse', 'postgres', 'nobody'] as const;
/** What the kernel shows for every user that a user namespace does not map. */
const OVERFLOW_UID = 65_534;

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
  const owner = found ?? ACCOUNTS.map((name) => accounts.get(name)).find(Boolean);
  // Data that a server in a user namespace has made is root's.
  if (owner !== undefined && owner.uid !== 0) {
    const user = userOf({ uid: owner.uid, gid: owner.gid }, dataDirectory, binaries);
    if (user !== undefined) return user;
  }
  // Inside one no other user of the files exists.
  if (found === undefined || found.uid === 0) {
    const prefix = namespacePrefix(accounts);
    if (reaches(prefix, dataDirectory, binaries)) return { prefix };
  }
  const problem = noWay(dataDirectory, binaries, owner, found !== undefined);
  throw new AppError<StoreReason>('STORE_UNAVAILABLE', problem, { dataDirectory });
}

function userOf(
  owner: UserIds,
  dataDirectory: string,
  binaries: PostgresBinaries,
): ServerUser | undefined {
  const closed = [dataDirectory, binaries.initdb].map((path) => firstClosedDirectory(path, owner));
  if (!closed.some(Boolean)) return { owner, spawnAs: owner, prefix: [] };
  const prefix = capabilityPrefix(owner);
  return reaches(prefix, dataDirectory, binaries) ? { owner, prefix } : undefined;
}

/** Makes a path the server's own. */
export function giveTo({ owner }: ServerUser, path: string): void {
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
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

/** The first directory on the way to `path` that the user may not enter. */
function firstClosedDirectory(path: string, ids: UserIds): string | undefined {
  const parents: string[] = [];
  for (let at = dirname(path); ; at = dirname(at)) {
    parents.unshift(at);
    if (at === dirname(at)) break;
  }
  return parents.find((parent) => {
    const { uid, gid, mode } = statSync(parent);
    const shift = uid === ids.uid ? 6 : gid === ids.gid ? 3 : 0;
    return ((mode >> shift) & 1) === 0;
  });
}

/**
 * Another user with the capability to pass by permissions. no_setuid_fixup, since access(2), by which
 * PostgreSQL looks for its own programs, else forgets the capabilities of whoever is not root.
 */
function capabilityPrefix(ids: UserIds): readonly string[] {
  return [
    'setpriv',
    `--reuid=${ids.uid}`,
    `--regid=${ids.gid}`,
    '--clear-groups',
    '--inh-caps=-all,+dac_override',
    '--ambient-caps=-all,+dac_override',
    '--bounding-set=-all,+dac_override',
    '--securebits=+no_setuid_fixup',
  ];
}

/** Root from outside, somebody else to itself: any number would do, but initdb(1) asks for its name. */
function namespacePrefix(accounts: ReadonlyMap<string, UserIds>): readonly string[] {
  const inside = [...accounts.values()].find(({ uid }) => uid !== OVERFLOW_UID);
  return ['unshare', '--user', `--map-user=${inside?.uid ?? OVERFLOW_UID}`];
}

/** Whether a server that is started this way can enter the place of its data and finds its programs. */
function reaches(
  prefix: readonly string[],
  dataDirectory: string,
  { initdb, env }: PostgresBinaries,
): boolean {
  const script = 'cd "$1" && exec "$2" --show --pgdata="$1"';
  const [program, ...words] = [...prefix, 'sh', '-c', script, 'sh'];
  const { status, stderr } = spawnSync(program, [...words, dirname(dataDirectory), initdb], {
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  // initdb asks for the name of the user after it has found the programs; a server needs no name.
  return status === 0 || /could not look up effective user ID/.test(stderr ?? '');
}

/** `isData`: the owner is that of data which is there. */
function noWay(
  dataDirectory: string,
  binaries: PostgresBinaries,
  owner: UserIds | undefined,
  isData: boolean,
): string {
  const namespaces =
    'root may not make a user namespace here (unshare(1) of util-linux 2.38 or newer)';
  const remedy = 'or set DATABASE_URL';
  if (owner === undefined) {
    return `PostgreSQL cannot run as root, none of the users ${ACCOUNTS.join(', ')} exists, and ${namespaces}; start as another user, ${remedy}`;
  }
  if (owner.uid === 0) {
    return `${dataDirectory} belongs to root, as whom PostgreSQL cannot run, and ${namespaces}; give it with all that is in it to another user (chown -R), ${remedy}`;
  }
  const closed = [dataDirectory, binaries.initdb].map((path) => firstClosedDirectory(path, owner));
  const capability = 'root may not pass on the capability CAP_DAC_OVERRIDE here (setpriv(1))';
  const second = isData ? 'a user namespace serves data of root only' : namespaces;
  return `PostgreSQL cannot run as root, the user it would run under (uid ${owner.uid}) may not enter ${closed.find(Boolean)}, ${capability}, and ${second}; start as another user, set GATEWAY_DATA_DIR and install below a directory open to others, ${remedy}`;
}
