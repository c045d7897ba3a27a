/* The life of the embedded server: start, supervision, stop. */
import type { ChildProcess } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig } from 'pg';
import { type DirectoryLock, lockDirectory } from '../../shared/process/directory-lock.ts';
import { isUnknownDatabase, isWrongPassword } from '../postgres/pg-errors.ts';
import type { ServerTarget } from '../postgres/pool.ts';
import { type StoreLog, silentLog } from '../postgres/store-log.ts';
import {
  chooseServerUser,
  findPostgresBinaries,
  chownTo,
  unavailable,
} from './embedded-postgres-binaries.ts';
import {
  DATABASE,
  SOCKET_PORT,
  SUPERUSER,
  clusterDirectory,
  createCluster,
  damageError,
  keepPassword,
  makePassword,
  passwordError,
  readPassword,
  serverSettings,
  setPassword,
  socketDirectory,
} from './embedded-postgres-cluster.ts';
import {
  type Programs,
  START_TIMEOUT_MS,
  endOfLog,
  followServerLog,
  isAlive,
  logError,
  readPidFile,
  spawnServer,
  stopServer,
  waitReady,
  waitUntilUnused,
  worksIn,
} from './embedded-postgres-process.ts';

/** How long a killed server may take to be gone. */
const SETTLE_MS = 10_000;
const RESTART_DELAY_MS_MIN = 50;
const RESTART_DELAY_MS_MAX = 5_000;

export type EmbeddedPostgresOptions = {
  /** GATEWAY_DATA_DIR; made when absent. */
  readonly dataDirectory: string;
  readonly maxConnections?: number | undefined;
  readonly log?: StoreLog | undefined;
  /** Further server settings, which win over ours; for tests. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** Directory of the template of an empty cluster; for tests. */
  readonly templateCache?: string | undefined;
};

/** A running server that belongs to this process. */
export interface EmbeddedPostgres {
  readonly target: ServerTarget;
  /** Process id of the postmaster; changes when the server had to be restarted. */
  readonly pid: number;
  /** Ends all sessions and the server, then frees the data directory. Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts PostgreSQL from the binaries of the npm package on `dataDirectory`, creating the cluster
 * at the first time. The server runs in its own session; a server left behind by a killed process is
 * found and stopped first; one that dies is started again, under the same target.
 * Errors: STORE_UNAVAILABLE (directory in use, other major version, no binaries, failed start).
 * Cost: about 0.5 s on an empty directory, 1-3 s where the installation has no template, 0.2 s later.
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const root = resolve(options.dataDirectory);
  try {
    // If root starts it, the server runs under another user, who must pass through this directory; its
    // content cannot be listed.
    mkdirSync(root, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
  } catch (cause) {
    throw unavailable(
      `the data directory ${root} cannot be made; set GATEWAY_DATA_DIR to one that can`,
      {},
      cause,
    );
  }
  const lock = lockDirectory(join(root, 'postgres.lock'), `The data directory ${root}`);
  try {
    const server = new Server(root, options, lock);
    await server.start();
    return server;
  } catch (error) {
    lock.release();
    throw error;
  }
}

class Server implements EmbeddedPostgres {
  readonly target: ServerTarget;
  readonly #options: EmbeddedPostgresOptions;
  readonly #lock: DirectoryLock;
  readonly #programs: Programs;
  readonly #log: StoreLog;
  readonly #data: string;
  readonly #passwordPath: string;
  #child: ChildProcess | undefined;
  #stopping: Promise<void> | undefined;

  constructor(root: string, options: EmbeddedPostgresOptions, lock: DirectoryLock) {
    this.#options = options;
    this.#lock = lock;
    this.#log = options.log ?? silentLog;
    this.#data = clusterDirectory(root);
    this.#passwordPath = join(root, 'postgres.password');
    const binaries = findPostgresBinaries(join(root, 'lib'));
    const user = chooseServerUser(this.#data, binaries);
    this.#programs = { ...binaries, ...user, logPath: join(root, 'postgres.log') };
    this.target = {
      host: socketDirectory(root),
      port: SOCKET_PORT,
      user: SUPERUSER,
      database: DATABASE,
      password: readPassword(this.#passwordPath) ?? makePassword(),
    };
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async start(): Promise<void> {
    const data = this.#data;
    const path = this.#passwordPath;
    const { password } = this.target;
    if (!existsSync(join(data, 'PG_VERSION'))) {
      if (!existsSync(path)) keepPassword(path, password);
      await createCluster(this.#programs, data, password, this.#log, this.#options.templateCache);
    }
    this.#assertVersion();
    const hadOrphan = await this.#stopOrphan();
    this.#prepareSocketDirectory();
    const log = endOfLog(this.#programs.logPath);
    try {
      // Whoever may write to the directory owns the cluster, with or without a password.
      if (!existsSync(path)) {
        await setPassword(this.#programs, data, password);
        keepPassword(path, password);
        this.#log('warn', 'postgres_password_renewed', { path });
      }
      // The last processes of a killed server hold its shared memory for a moment after they left.
      await this.#launchWithin(hadOrphan ? SETTLE_MS : 0);
    } catch (error) {
      await this.#stopChild(true);
      throw damageError(messageOf(error), data, error);
    }
    try {
      await this.#ensureDatabase();
    } catch (error) {
      const isWrong = isWrongPassword(error);
      await this.#stopChild(!isWrong);
      if (isWrong) throw passwordError(path, `is not the password of ${data}`, error);
      // It accepts connections, and then does not serve the first one.
      const problem = `PostgreSQL started on ${data} but does not work (${messageOf(error)})`;
      throw damageError(logError(problem, log).message, data, error);
    }
  }

  async stop(): Promise<void> {
    await this.#stopChild(false);
    this.#lock.release();
  }

  #stopChild(isBroken: boolean): Promise<void> {
    return (this.#stopping ??= this.#endChild(isBroken));
  }

  async #endChild(isBroken: boolean): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((done) => child.once('exit', () => done()));
    child.ref();
    await stopServer(child.pid, isBroken);
    await exited;
  }

  async #launchWithin(patienceMs: number): Promise<void> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      try {
        await this.#launch();
        return;
      } catch (error) {
        if (performance.now() >= deadline) throw error;
        await sleep(RESTART_DELAY_MS_MIN);
      }
    }
  }

  async #launch(): Promise<void> {
    const { maxConnections = 100, settings } = this.#options;
    const ours = serverSettings(this.target.host, maxConnections);
    const log = endOfLog(this.#programs.logPath);
    const child = spawnServer(this.#programs, this.#data, { ...ours, ...settings });
    this.#child = child;
    await waitReady(child, this.#data, log);
    child.unref();
    const unfollow = followServerLog(log, this.#log);
    child.once('exit', (code, signal) => {
      unfollow();
      if (this.#stopping === undefined) void this.#restart(code ?? signal);
    });
  }

  async #restart(end: number | string | null): Promise<void> {
    this.#log('error', 'postgres_lost', { end, log: this.#programs.logPath });
    for (let delayMs = RESTART_DELAY_MS_MIN; this.#stopping === undefined; delayMs *= 2) {
      await sleep(Math.min(delayMs, RESTART_DELAY_MS_MAX));
      if (this.#stopping !== undefined) return;
      try {
        await this.#launch();
        this.#log('warn', 'postgres_restarted', { pid: this.pid });
        return;
      } catch (error) {
        this.#log('error', 'postgres_restart_failed', { error: String(error) });
      }
    }
  }

  #assertVersion(): void {
    const data = this.#data;
    const expected = String(this.#programs.majorVersion);
    const found = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
    if (found === expected) return;
    if (!/^[1-9]\d?$/.test(found)) {
      throw damageError(`${join(data, 'PG_VERSION')} names no version of PostgreSQL`, data);
    }
    const lines = [
      `${data} was written by PostgreSQL ${found}, this release brings ${expected}. To move the data:`,
      `  1. start the release used before on this directory and, while it runs,`,
      `     pg_dump --host=${this.target.host} --username=${SUPERUSER} --file=gatehouse.sql ${DATABASE}`,
      `     (the password is in ${this.#passwordPath})`,
      `  2. stop it and rename ${data} to ${data}.${found}`,
      `  3. start PostgreSQL ${expected} on an empty database, restore with psql --file=gatehouse.sql, and set DATABASE_URL to it,`,
      `     or start this release once, stop it when it is ready, and restore into its database in the same way after dropping its tables.`,
    ];
    throw unavailable(lines.join('\n'), { found, expected });
  }

  /**
   * Ends an orphaned server: our lock proves that no process of ours owns the directory. Returns
   * whether a server was there, alive or killed.
   */
  async #stopOrphan(): Promise<boolean> {
    const data = this.#data;
    const file = readPidFile(data);
    if (file === undefined) return false;
    const deadline = performance.now() + SETTLE_MS;
    for (;;) {
      const here = isAlive(file.pid) ? worksIn(file.pid, data) : false;
      if (here === false) {
        // The server was killed, or another program has its number by now. Its file must go, since
        // PostgreSQL would take any process of that number, a zombie too, for a running server.
        await waitUntilUnused(data);
        rmSync(join(data, 'postmaster.pid'), { force: true });
        return true;
      }
      if (here === true || (await this.#answersFrom(file.socketDirectory))) {
        this.#log('warn', 'postgres_orphan_stopped', { pid: file.pid });
        await stopServer(file.pid);
        return true;
      }
      if (performance.now() > deadline) {
        throw unavailable(
          `${data}/postmaster.pid names the running process ${file.pid}, which does not answer as its PostgreSQL; stop that process or remove the file`,
        );
      }
      await sleep(RESTART_DELAY_MS_MIN);
    }
  }

  async #answersFrom(host: string): Promise<boolean> {
    const statement = `select current_setting('data_directory') as data`;
    try {
      const target = { ...this.target, host, database: 'postgres' };
      return (await connectOnce(target, statement))?.['data'] === this.#data;
    } catch {
      return false; // Not our server, or not our password.
    }
  }

  async #ensureDatabase(): Promise<void> {
    const bounded = { ...this.target, connectionTimeoutMillis: START_TIMEOUT_MS };
    try {
      await connectOnce(bounded);
    } catch (error) {
      if (!isUnknownDatabase(error)) throw error;
      await connectOnce({ ...bounded, database: 'postgres' }, `create database ${DATABASE}`);
    }
  }

  #prepareSocketDirectory(): void {
    const socket = this.target.host;
    mkdirSync(socket, { recursive: true, mode: 0o700 });
    const before = lstatSync(socket);
    const ours = [process.getuid?.(), this.#programs.owner?.uid].includes(before.uid);
    if (!before.isDirectory() || !ours || (before.mode & 0o077) !== 0) {
      throw unavailable(`the socket directory ${socket} is open to others or not ours; remove it`);
    }
    chownTo(this.#programs, socket);
  }
}

/** Connects, and returns the first row of the statement, if there is one. */
async function connectOnce(
  target: ClientConfig,
  statement?: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const client = new Client(target);
  try {
    await client.connect();
    if (statement === undefined) return undefined;
    return (await client.query<Record<string, unknown>>(statement)).rows[0];
  } finally {
    await client.end().catch(() => undefined);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
