import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { lacksGlibc } from '../../../store/embedded/embedded-postgres-binaries.ts';
import { messageOf } from '../../core/files.ts';
import { failure, fine, type Observation, warning } from './observation.ts';
import type { PortQuery } from './port-checks.ts';

const MIB = 1024 * 1024;
/**
 * A new cluster takes 50 MB; with less than this, the cluster and its write-ahead log do not fit.
 */
const FREE_BYTES_MIN = 256 * MIB;
/** `max_wal_size` of the embedded server. */
const FREE_BYTES_ENOUGH = 2048 * MIB;

/**
 * Checks the directory of the embedded PostgreSQL: rights, free space, and the process that holds
 * it.
 */
export async function checkDataDirectory(
  directory: string,
  portOfCalls: PortQuery,
): Promise<readonly Observation[]> {
  const root = resolve(directory);
  const isThere = existsSync(root);
  let place = root;
  while (!existsSync(place)) place = dirname(place);
  try {
    accessSync(place, constants.W_OK | constants.X_OK);
  } catch (error) {
    return [
      failure(messageOf(error), 'give this user the right to write there, or set GATEWAY_DATA_DIR'),
    ];
  }
  const { bavail, bsize } = await statfs(place);
  return [
    fine(isThere ? `${root} can be written` : `${root} is not there yet: a start makes it`),
    spaceSeen(place, bavail * bsize),
    ...(isThere ? await holderSeen(root, portOfCalls) : []),
  ];
}

function spaceSeen(place: string, freeBytes: number): Observation {
  const seen = `${Math.trunc(freeBytes / MIB)} MiB are free at ${place}`;
  const advice = 'make space, or set GATEWAY_DATA_DIR to another disk';
  if (freeBytes < FREE_BYTES_MIN) return failure(seen, advice);
  return freeBytes < FREE_BYTES_ENOUGH ? warning(seen, advice) : fine(seen);
}

/**
 * Reads the process id in the lock's file, which the holder empties at its end. Trying the lock
 * could disturb a start.
 */
async function holderSeen(root: string, portOfCalls: PortQuery): Promise<readonly Observation[]> {
  const path = join(root, 'postgres.lock');
  if (!existsSync(path)) return [fine('no process holds it')];
  const pid = Number((await readFile(path, 'utf8')).trim());
  if (!Number.isInteger(pid) || pid <= 0 || !isAlive(pid)) return [fine('no process holds it')];
  if ((await portOfCalls()) !== undefined) {
    return [fine(`process ${pid} holds it: the running service`)];
  }
  return [
    warning(
      `process ${pid} holds it, and no service is on the port of calls`,
      `a start fails as long as it runs: end process ${pid}, or set GATEWAY_DATA_DIR`,
    ),
  ];
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Checks the PostgreSQL of the dependencies, and that it can read the data in the directory. */
export function checkBinaries(directory: string): readonly Observation[] {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    root = resolve(dirname(createRequire(import.meta.url).resolve(name)), '..');
    accessSync(join(root, 'native/bin/postgres'), constants.X_OK);
  } catch {
    // The remedy is the same for every cause.
    return [
      failure(
        `${name} is not installed`,
        'run npm ci, or set DATABASE_URL to a PostgreSQL of your own',
      ),
    ];
  }
  if (lacksGlibc()) {
    return [
      failure(
        `${name} is made for glibc, which is not here`,
        'set DATABASE_URL to a PostgreSQL of your own',
      ),
    ];
  }
  const manifest = readFileSync(join(root, 'package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { readonly version: string };
  const [major = ''] = version.split('.');
  const kept = join(resolve(directory), 'postgres', 'PG_VERSION');
  const written = existsSync(kept) ? readFileSync(kept, 'utf8').trim() : major;
  if (written === major) return [fine(`${name} ${version}`)];
  return [
    failure(
      `the data was written by PostgreSQL ${written}, and ${name} is ${version}`,
      'a start says how to move the data, and changes nothing',
    ),
  ];
}
