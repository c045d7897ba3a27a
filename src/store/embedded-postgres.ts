import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { AppError } from '../shared/app-error.ts';
import { lockDirectory } from './directory-lock.ts';
import { type PostgresBinaries, findPostgresBinaries } from './embedded-postgres-binaries.ts';
import {
  type ClusterTools,
  DATABASE,
  SUPERUSER,
  createCluster,
  setPassword,
} from './embedded-postgres-cluster.ts';
import {
  clusterDirectory,
  damageError,
  endOfLog,
  logError,
  type LogPosition,
} from './embedded-postgres-damage.ts';
import { type FollowedLog, followServerLog } from './embedded-postgres-log.ts';
import {
  keepPassword,
  makePassword,
  passwordError,
  readPassword,
} from './embedded-postgres-password.ts';
import {
  type ServerCommand,
  isAlive,
  readPidFile,
  spawnDetached,
  stopServer,
  waitReady,
  waitUntilUnused,
  worksIn,
} from './embedded-postgres-process.ts';
import {
  SOCKET_PORT,
  makeDataDirectory,
  serverSettings,
  socketDirectory,
} from './embedded-postgres-settings.ts';
import { type ServerUser, chooseServerUser, giveTo } from './embedded-postgres-user.ts';
import { isUnknownDatabase, isWrongPassword } from './pg-errors.ts';
import type { ServerTarget } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';
import type { StoreReason } from './store-reason.ts';

const START_TIMEOUT_MS = 120_000;
/** How long a killed server may take to be gone. */
const SETTLE_MS = 10_000;
const RESTART_DELAY_MS_MIN = 50;
const RESTART_DELAY_MS_MAX = 5_000;
/** Clusters in the making. */
const FRESH_PREFIX = 'postgres.new-';

export type EmbeddedPostgresOptions = {
  /** GATEWAY_DATA_DIR; made when absent. */
  readonly dataDirectory: string;
  readonly maxConnections?: number | undefined;
  readonly log?: StoreLog | undefined;
  /** Further server settings, which win over ours; for tests. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** Where the template of an empty cluster is looked for; for tests. */
  readonly templateCache?: string | undefined;
};

/** A running server that belongs to this process. */
export interface EmbeddedPostgres {
  readonly target: ServerTarget;
  /** Of the postmaster; changes when the server had to be restarted. */
  readonly pid: number;
  /** Ends all sessions and the server, then frees the data directory. Idempotent. */
  stop(): Promise<void>;
}

type Paths = {
  readonly data: string;
  readonly fresh: string;
  readonly socket: string;
  readonly log: string;
  readonly password: string;
};

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
  makeDataDirectory(root);
  const lock = lockDirectory(join(root, 'postgres.lock'), `The data directory ${root}`);
  try {
    const server = new Server(root, options, findPostgresBinaries(join(root, 'lib')));
    await server.start();
    return {
      target: server.target,
      get pid() {
        return server.pid;
      },
      stop: async () => {
        await server.stop();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

class Server {
  readonly target: ServerTarget;
  readonly #binaries: PostgresBinaries;
  readonly #paths: Paths;
  readonly #user: ServerUser;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #log: StoreLog;
  readonly #templateCache: string | undefined;
  /** Whether the one of `target` is that of the file, not a new one. */
  readonly #hasPassword: boolean;
  #child: ChildProcess | undefined;
  #stopping: Promise<void> | undefined;
  #followed: FollowedLog | undefined;

  constructor(root: string, options: EmbeddedPostgresOptions, binaries: PostgresBinaries) {
    this.#binaries = binaries;
    this.#log = options.log ?? silentLog;
    this.#templateCache = options.templateCache;
    this.#paths = {
      data: clusterDirectory(root),
      // Its own name, since the initdb of a killed process may still be writing.
      fresh: join(root, `${FRESH_PREFIX}${randomUUID()}`),
      socket: socketDirectory(root),
      log: join(root, 'postgres.log'),
      password: join(root, 'postgres.password'),
    };
    this.#user = chooseServerUser(this.#paths.data, binaries);
    const password = readPassword(this.#paths.password);
    this.#hasPassword = password !== undefined;
    this.target = {
      host: this.#paths.socket,
      port: SOCKET_PORT,
      user: SUPERUSER,
      database: DATABASE,
      password: password ?? makePassword(),
    };
    this.#settings = {
      ...serverSettings(this.#paths.socket, options.maxConnections ?? 100),
      ...options.settings,
    };
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async start(): Promise<void> {
    const { data, password, log: logPath } = this.#paths;
    if (!existsSync(join(data, 'PG_VERSION'))) {
      if (!this.#hasPassword) keepPassword(password, this.target.password);
      await this.#createCluster();
    }
    this.#assertVersion();
    const hadOrphan = await this.#stopOrphan();
    this.#prepareSocketDirectory();
    const log = endOfLog(logPath);
    try {
      if (!existsSync(password)) await this.#renewPassword();
      await (hadOrphan ? this.#launchAfterOrphan() : this.#launch());
    } catch (error) {
      await this.#stop(true);
      throw damageError(error instanceof Error ? error.message : String(error), data, error);
    }
    try {
      await this.#ensureDatabase();
    } catch (error) {
      const isWrong = isWrongPassword(error);
      await this.#stop(!isWrong);
      if (isWrong) throw passwordError(password, `is not the password of ${data}`, error);
      throw this.#unusable(error, log);
    }
  }

  stop(): Promise<void> {
    return this.#stop(false);
  }

  #stop(isBroken: boolean): Promise<void> {
    const child = this.#child;
    this.#stopping ??= child === undefined ? Promise.resolve() : this.#end(child, isBroken);
    return this.#stopping;
  }

  async #end(child: ChildProcess, isBroken: boolean): Promise<void> {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise<void>((done) => child.once('exit', () => done()));
    child.ref();
    await stopServer(child.pid, isBroken);
    await exited;
  }

  /** Its file is gone. Whoever may write to the directory owns the cluster, with or without a password. */
  async #renewPassword(): Promise<void> {
    const { data, password } = this.#paths;
    await setPassword(this.#tools, data, this.target.password);
    keepPassword(password, this.target.password);
    this.#log('warn', 'postgres_password_renewed', { path: password });
  }

  /** It accepts connections, and then does not serve the first one. */
  #unusable(error: unknown, log: LogPosition): AppError {
    const { data } = this.#paths;
    const said = error instanceof Error ? error.message : String(error);
    const { message } = logError(`PostgreSQL started on ${data} but does not work (${said})`, log);
    return damageError(message, data, error);
  }

  async #launch(): Promise<void> {
    const args = ['-D', this.#paths.data];
    for (const [name, value] of Object.entries(this.#settings)) args.push('-c', `${name}=${value}`);
    const log = endOfLog(this.#paths.log);
    const child = spawnDetached(this.#command(this.#binaries.postgres, args));
    this.#child = child;
    await waitReady(child, this.#paths.data, log, START_TIMEOUT_MS);
    child.unref();
    this.#followed = followServerLog(log, this.#log);
    child.once('exit', (code, signal) => {
      this.#followed?.stop();
      if (this.#stopping === undefined) void this.#restart(code ?? signal);
    });
  }

  async #restart(end: number | string | null): Promise<void> {
    this.#log('error', 'postgres_lost', { end, log: this.#paths.log });
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

  /** A cluster appears under its final name only when it is whole and on disk. */
  async #createCluster(): Promise<void> {
    const { fresh, data } = this.#paths;
    if (existsSync(data)) {
      throw damageError(`${data} exists but holds no PostgreSQL cluster (PG_VERSION)`, data);
    }
    const root = dirname(fresh);
    for (const name of readdirSync(root)) {
      if (!name.startsWith(FRESH_PREFIX)) continue;
      rmSync(join(root, name), { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    }
    await createCluster(this.#tools, fresh, this.target.password);
    await rename(fresh, data);
  }

  get #tools(): ClusterTools {
    return {
      binaries: this.#binaries,
      user: this.#user,
      logPath: this.#paths.log,
      log: this.#log,
      cache: this.#templateCache,
    };
  }

  #assertVersion(): void {
    const { data } = this.#paths;
    const version = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();
    if (version === String(this.#binaries.majorVersion)) return;
    if (!/^[1-9]\d?$/.test(version)) {
      throw damageError(`${join(data, 'PG_VERSION')} names no version of PostgreSQL`, data);
    }
    throw new AppError<StoreReason>(
      'STORE_UNAVAILABLE',
      [
        `${data} was written by PostgreSQL ${version}, this release brings ${this.#binaries.majorVersion}. To move the data:`,
        `  1. start the release used before on this directory and, while it runs,`,
        `     pg_dump --host=${this.#paths.socket} --username=${SUPERUSER} --file=gatehouse.sql ${DATABASE}`,
        `     (the password is in ${this.#paths.password})`,
        `  2. stop it and rename ${data} to ${data}.${version}`,
        `  3. start PostgreSQL ${this.#binaries.majorVersion} on an empty database, restore with psql --file=gatehouse.sql, and set DATABASE_URL to it,`,
        `     or start this release once, stop it when it is ready, and restore into its database in the same way after dropping its tables.`,
      ].join('\n'),
      { found: version, expected: String(this.#binaries.majorVersion) },
    );
  }

  /**
   * Our lock says that no process of ours owns the directory: a server on it is an orphan. Returns
   * whether one was there, alive or killed.
   */
  async #stopOrphan(): Promise<boolean> {
    const { data } = this.#paths;
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
        throw new AppError<StoreReason>(
          'STORE_UNAVAILABLE',
          `${data}/postmaster.pid names the running process ${file.pid}, which does not answer as its PostgreSQL; stop that process or remove the file`,
        );
      }
      await sleep(RESTART_DELAY_MS_MIN);
    }
  }

  /** The last processes of a killed server hold its shared memory for a moment after they left. */
  async #launchAfterOrphan(): Promise<void> {
    const deadline = performance.now() + SETTLE_MS;
    for (;;) {
      try {
        await this.#launch();
        return;
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await sleep(RESTART_DELAY_MS_MIN);
      }
    }
  }

  async #answersFrom(host: string): Promise<boolean> {
    const client = new Client({ ...this.target, host, database: 'postgres' });
    try {
      await client.connect();
      const { rows } = await client.query<{ data: string }>(
        `select current_setting('data_directory') as data`,
      );
      return rows[0]?.data === this.#paths.data;
    } catch {
      return false; // Not our server, or not our password.
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  async #ensureDatabase(): Promise<void> {
    const bounded = { ...this.target, connectionTimeoutMillis: START_TIMEOUT_MS };
    const probe = new Client(bounded);
    try {
      await probe.connect();
      return;
    } catch (error) {
      if (!isUnknownDatabase(error)) throw error;
    } finally {
      await probe.end().catch(() => undefined);
    }
    const client = new Client({ ...bounded, database: 'postgres' });
    await client.connect();
    try {
      await client.query(`create database ${DATABASE}`);
    } finally {
      await client.end();
    }
  }

  #prepareSocketDirectory(): void {
    const { socket } = this.#paths;
    mkdirSync(socket, { recursive: true, mode: 0o700 });
    const before = lstatSync(socket);
    const expected = this.#user.owner?.uid ?? process.getuid?.();
    const ours = before.uid === process.getuid?.() || before.uid === expected;
    if (!before.isDirectory() || !ours || (before.mode & 0o077) !== 0) {
      throw new AppError<StoreReason>(
        'STORE_UNAVAILABLE',
        `the socket directory ${socket} is open to others or not ours; remove it`,
      );
    }
    giveTo(this.#user, socket);
  }

  #command(command: string, args: readonly string[]): ServerCommand {
    const env = this.#binaries.env;
    return { command, args, user: this.#user, env, logPath: this.#paths.log };
  }
}
