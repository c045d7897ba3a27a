import { spawnSync } from 'node:child_process';
import { chownSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { AppError } from '../shared/app-error.ts';
import type { StoreReason } from './store-reason.ts';

export type UserIds = { readonly uid: number; readonly gid: number };

/** Under which user the server runs, and how a command is started as that user. */
export type ServerUser = {
  /** Owner of the server's files. Undefined: our own user. */
  readonly owner?: UserIds | undefined;
  /** For spawn; undefined when there is nothing to change or `prefix` changes it. */
  readonly spawnAs?: UserIds | undefined;
  /** Words before the command. */
  readonly prefix: readonly string[];
};

/** Preferred accounts, in order; a dedicated one keeps the data from other programs. */
const ACCOUNTS = ['gatehouse', 'postgres', 'nobody'] as const;

/**
 * PostgreSQL refuses to run as root, so as root it gets another user: the owner of an existing data
 * directory, else the first account of ACCOUNTS. When that user cannot reach `paths` (a checkout
 * below a private home), the one capability it lacks is passed on with setpriv(1).
 * Errors: STORE_UNAVAILABLE, with what to do, when there is no way.
 */
export function chooseServerUser(dataDirectory: string, paths: readonly string[]): ServerUser {
  if (process.getuid?.() !== 0) return { prefix: [] };
  const ids = ownerOf(dataDirectory) ?? accountIds();
  if (ids === undefined) {
    throw new AppError<StoreReason>(
      'STORE_UNAVAILABLE',
      'PostgreSQL cannot run as root and none of the users gatehouse, postgres, nobody exists; start as another user or set DATABASE_URL',
    );
  }
  const closed = paths
    .map((path) => firstClosedDirectory(path, ids))
    .find((path) => path !== undefined);
  if (closed === undefined) return { owner: ids, spawnAs: ids, prefix: [] };
  return { owner: ids, prefix: privilegedPrefix(ids, closed) };
}

/** Makes a path the server's own. */
export function giveTo({ owner }: ServerUser, path: string): void {
  if (owner !== undefined) chownSync(path, owner.uid, owner.gid);
}

function ownerOf(path: string) {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined || stat.uid === 0 ? undefined : { uid: stat.uid, gid: stat.gid };
}

function accountIds() {
  const accounts = new Map<string, UserIds>();
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name = '', , uid, gid] = line.split(':');
    if (uid !== undefined && Number(uid) > 0) {
      accounts.set(name, { uid: Number(uid), gid: Number(gid) });
    }
  }
  const name = ACCOUNTS.find((account) => accounts.has(account));
  return name === undefined ? undefined : accounts.get(name);
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

function privilegedPrefix(ids: UserIds, closed: string): readonly string[] {
  const prefix = [
    'setpriv',
    `--reuid=${ids.uid}`,
    `--regid=${ids.gid}`,
    '--clear-groups',
    '--inh-caps=-all,+dac_override',
    '--ambient-caps=-all,+dac_override',
    '--bounding-set=-all,+dac_override',
  ];
  const probe = spawnSync('setpriv', [...prefix.slice(1), 'true'], { stdio: 'ignore' });
  if (probe.status === 0) return prefix;
  throw new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    `PostgreSQL cannot run as root, and the user it would run under (uid ${ids.uid}) may not enter ${closed}; start as another user, set GATEWAY_DATA_DIR and install below a directory open to others, or set DATABASE_URL`,
    { closed },
  );
}
