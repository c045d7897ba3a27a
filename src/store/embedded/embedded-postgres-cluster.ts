/* A data directory: its cluster, settings and password, and what to do where they are damaged. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { damageIn } from '../postgres/pg-errors.ts';
import { type StoreLog, silentLog } from '../postgres/store-log.ts';
import {
  type PostgresBinaries,
  chooseServerUser,
  findPostgresBinaries,
  chownTo,
  systemCode,
  unavailable,
} from './embedded-postgres-binaries.ts';
import { LOG_LINE_PREFIX, type Programs, runToEnd } from './embedded-postgres-process.ts';

export const SUPERUSER = 'gatehouse';
export const DATABASE = 'gatehouse';
/** Only a name inside the socket's path: the server listens on no TCP port. */
export const SOCKET_PORT = 5432;
/** sun_path less its terminating zero, of the narrowest platform (macOS: 104). */
const SOCKET_PATH_BYTES_MAX = 103;

const INITDB_ARGS = [
  `--username=${SUPERUSER}`,
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale=C',
  '--data-checksums',
  '--no-instructions',
] as const;
/** One system call instead of one for every file; 70 ms. */
const SYNC_ARGS = process.platform === 'linux' ? ['--sync-method=syncfs'] : [];
/** Directory of files that packages generate; an installation from scratch empties it. */
const CACHE = resolve(import.meta.dirname, '../../../node_modules/.cache/gatehouse');
/** A template in the making that is older was left behind. */
const LEFTOVER_AGE_MS = 600_000;
/** Control characters, and what was no text in UTF-8. */
const NOT_A_PASSWORD = /[\p{Cc}\uFFFD]/u;

/** The cluster's directory within a data directory (GATEWAY_DATA_DIR). */
export function clusterDirectory(dataDirectory: string): string {
  return join(resolve(dataDirectory), 'postgres');
}

/** Inside the data directory, or a short one under the temporary directory when that path is too long. */
export function socketDirectory(root: string): string {
  const near = join(root, 'socket');
  const path = join(near, `.s.PGSQL.${SOCKET_PORT}`);
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX && !path.includes(',')) return near;
  const digest = createHash('sha256').update(root).digest('hex').slice(0, 16);
  return join(tmpdir(), `gatehouse-${digest}`);
}

/** Settings of the server. Nothing here trades durability for speed. */
export function serverSettings(socket: string, maxConnections: number): Record<string, string> {
  return {
    listen_addresses: '',
    unix_socket_directories: socket,
    unix_socket_permissions: '0700',
    port: String(SOCKET_PORT),
    max_connections: String(maxConnections),
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    shared_buffers: '128MB',
    wal_buffers: '16MB',
    max_wal_size: '2GB',
    min_wal_size: '256MB',
    checkpoint_timeout: '15min',
    checkpoint_completion_target: '0.9',
    maintenance_work_mem: '128MB',
    random_page_cost: '1.1',
    // Compiling costs more than our short statements take.
    jit: 'off',
    // Shared memory under /dev/shm is small in containers.
    max_parallel_workers_per_gather: '0',
    autovacuum_naptime: '15s',
    log_min_messages: 'warning',
    // Neither statements nor what they are about: both may quote callers.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
    log_checkpoints: 'off',
    log_line_prefix: LOG_LINE_PREFIX,
  };
}

/**
 * Makes a cluster with the superuser and the empty database of the service. It appears as
 * `directory` only when it is whole and on disk. A copy of the template where the installation has
 * one (about 0.2 s), else a new one (0.7-2 s). `cache`: the directory of the template. Errors:
 * STORE_UNAVAILABLE.
 */
export async function createCluster(
  programs: Programs,
  directory: string,
  password: string,
  log: StoreLog = silentLog,
  cache = CACHE,
): Promise<void> {
  if (existsSync(directory)) {
    throw damageError(
      `${directory} exists but holds no PostgreSQL cluster (PG_VERSION)`,
      directory,
    );
  }
  removeLeftovers(dirname(directory), /^postgres\.new-/);
  // Its own name, since the initdb of a killed process may still be writing.
  const fresh = join(dirname(directory), `postgres.new-${randomUUID()}`);
  const template = templatePath(programs, cache);
  try {
    if (existsSync(template)) {
      makeOwnDirectory(programs, fresh);
      const copy = ['cp', '-R', `${template}/.`, fresh];
      await runToEnd('copying the empty cluster', programs, copy);
      await setPassword(programs, fresh, password);
    }
  } catch (error) {
    // It belongs to another user or is damaged: the cluster is made without the template.
    log('warn', 'postgres_template_unusable', { template, error: String(error) });
    rmSync(fresh, { recursive: true, force: true });
  }
  if (!existsSync(fresh)) await initialize(programs, fresh, password);
  await rename(fresh, directory);
}

/**
 * Makes the template that `createCluster` copies, unless it is there. For the end of an installation.
 * Errors: STORE_UNAVAILABLE. Cost: 1-3 s, 40 MB on disk.
 */
export async function prepareTemplate(cache = CACHE): Promise<void> {
  mkdirSync(cache, { recursive: true });
  removeLeftovers(cache, /^postgres-.*\.[-0-9a-f]{36}/, Date.now() - LEFTOVER_AGE_MS);
  const binaries = findPostgresBinaries(join(cache, 'lib'));
  const template = templatePath(binaries, cache);
  if (existsSync(template)) return;
  const fresh = `${template}.${randomUUID()}`;
  const logPath = `${fresh}.log`;
  try {
    // Nobody knows this password; every copy gets its own.
    const programs = { ...binaries, ...chooseServerUser(fresh, binaries), logPath };
    await initialize(programs, fresh, makePassword());
    await rename(fresh, template);
  } catch (error) {
    // Another process was faster.
    if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error))) throw error;
  } finally {
    for (const path of [fresh, logPath]) rmSync(path, { recursive: true, force: true });
  }
}

/** Named by what went into it, so that another release never takes it for its own. */
function templatePath({ version }: PostgresBinaries, cache: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([INITDB_ARGS, DATABASE]))
    .digest('hex');
  return join(cache, `postgres-${version}-${digest.slice(0, 8)}`);
}

function removeLeftovers(folder: string, names: RegExp, beforeMs = Infinity): void {
  for (const name of readdirSync(folder).filter((one) => names.test(one))) {
    const path = join(folder, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Infinity };
    if (mtimeMs >= beforeMs) continue;
    rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }
}

async function initialize(programs: Programs, directory: string, password: string): Promise<void> {
  makeOwnDirectory(programs, directory);
  const passwordFile = `${directory}.password`;
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  chownTo(programs, passwordFile);
  const args = [`--pgdata=${directory}`, `--pwfile=${passwordFile}`, ...INITDB_ARGS, '--no-sync'];
  try {
    await runToEnd('creating the cluster', programs, [programs.initdb, ...args]);
  } finally {
    rmSync(passwordFile, { force: true });
  }
  await runAlone(programs, directory, `create database ${DATABASE}`);
}

function makeOwnDirectory(programs: Programs, directory: string): void {
  mkdirSync(directory, { mode: 0o700 });
  chownTo(programs, directory);
}

/** Gives the superuser of a cluster that no server runs on a password; on disk when it resolves. */
export function setPassword(
  programs: Programs,
  directory: string,
  password: string,
): Promise<void> {
  const quoted = `'${password.replaceAll("'", "''")}'`;
  return runAlone(programs, directory, `alter role ${SUPERUSER} password ${quoted}`);
}

/** Runs one statement in a cluster that no server runs on, all of which is then written to disk. */
async function runAlone(programs: Programs, directory: string, statement: string): Promise<void> {
  const single = [programs.postgres, '--single', '-D', directory, '-c', 'fsync=off', 'postgres'];
  await runToEnd('preparing the cluster', programs, single, `${statement}\n`);
  const sync = [programs.initdb, '--sync-only', `--pgdata=${directory}`, ...SYNC_ARGS];
  await runToEnd('writing the cluster to disk', programs, sync);
}

/** The superuser's password, or undefined where there is no such file. Errors: STORE_UNAVAILABLE with what to do. */
export function readPassword(path: string): string | undefined {
  let password: string;
  try {
    password = readFileSync(path, 'utf8').trim();
  } catch (cause) {
    if (systemCode(cause) === 'ENOENT') return undefined;
    throw passwordError(path, `cannot be read (${systemCode(cause)})`, cause);
  }
  if (password === '') throw passwordError(path, 'is empty');
  if (NOT_A_PASSWORD.test(password)) throw passwordError(path, 'holds no password');
  return password;
}

/** A new one: 192 bits at random. */
export function makePassword(): string {
  return randomBytes(24).toString('base64url');
}

/** Keeps it where only we read it. Errors: of the file system, also when there is such a file. */
export function keepPassword(path: string, password: string): void {
  writeFileSync(path, `${password}\n`, { mode: 0o600, flag: 'wx' });
}

/** The error of an unusable password, with what an operator can do about it. */
export function passwordError(path: string, problem: string, cause?: unknown): AppError {
  return unavailable(
    `${path} ${problem}; put the file of a backup in its place, or remove it: the next start then gives its PostgreSQL a new password, and the data stays`,
    { path },
    cause,
  );
}

/** `problem` of a cluster, with what an operator can do where its files are damaged. */
export function damageError(problem: string, dataDirectory: string, cause?: unknown): AppError {
  const lines = [
    problem,
    `If files of ${dataDirectory} are damaged:`,
    `  - put a backup of ${dirname(dataDirectory)} in its place (docs/operations.md, Restore), or`,
    `  - move ${dataDirectory} away: the next start then begins with an empty database.`,
  ];
  return unavailable(lines.join('\n'), { dataDirectory }, cause);
}

/**
 * The error of a failed start; where PostgreSQL found damaged files, one that explains what to do.
 * `dataDirectory` is the one of the embedded server; undefined: the database is that of
 * DATABASE_URL.
 */
export function explainDamage(error: unknown, dataDirectory: string | undefined): unknown {
  const isExplained = error instanceof AppError && 'dataDirectory' in error.metadata;
  const damage = isExplained ? undefined : damageIn(error);
  if (damage === undefined) return error;
  const problem = `PostgreSQL found damaged data: ${damage.message}`;
  if (dataDirectory !== undefined) {
    return damageError(problem, clusterDirectory(dataDirectory), error);
  }
  const remedy =
    'Restore the database of DATABASE_URL from a backup (docs/operations.md, Restore).';
  return unavailable(`${problem}\n${remedy}`, {}, error);
}
