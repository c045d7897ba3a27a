import type { ChildProcess } from 'node:child_process';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import {
  chooseServerUser,
  findPostgresBinaries,
  chownTo,
} from '../../src/store/embedded/embedded-postgres-binaries.ts';
import {
  DATABASE,
  SOCKET_PORT,
  SUPERUSER,
  createCluster,
  serverSettings,
} from '../../src/store/embedded/embedded-postgres-cluster.ts';
import {
  type Programs,
  isAlive,
  readPidFile,
  spawnServer,
  stopServer,
} from '../../src/store/embedded/embedded-postgres-process.ts';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';

const PASSWORD = 'cluster-password';
const START_TIMEOUT_MS = 120_000;
const POLL_MS = 10;
/** What is not part of a base backup: the server's own, and its log of changes, which is copied last or streamed. */
const NOT_COPIED = ['postmaster.pid', 'postmaster.opts', 'pg_wal', 'backup_label'];

/**
 * A PostgreSQL server of a test's own that can be copied, followed by replicas and promoted. Of the tools of
 * PostgreSQL only initdb, pg_ctl and postgres are there: base backups are made by the low-level calls.
 */
export interface TestCluster {
  /** Through its Unix socket, as superuser; user, password and database are the same on every cluster. */
  readonly target: ServerTarget;
  /** Of the postmaster; signals may be sent to it. */
  readonly pid: number;
  readonly isRunning: boolean;
  /** Runs one statement on a connection of its own. */
  query<Row extends object = Record<string, unknown>>(text: string): Promise<Row[]>;
  /**
   * A hot standby that streams from this server without being waited for. Its state follows; `caughtUp` waits.
   */
  createReplica(): Promise<TestReplica>;
  /** A base backup of now, with its log: can be started with `startCopy` at any later time. */
  backup(): Promise<ClusterCopy>;
  /** Stops the server, if need be, and copies its directory as it is. Start it again with `start`. */
  coldCopy(): Promise<ClusterCopy>;
  /** Starts a server that was stopped or killed. */
  start(): Promise<void>;
  /** Ends all sessions and the server, as pg_ctl stop -m fast does. Idempotent. */
  stop(): Promise<void>;
  /** Ends the server without a checkpoint or a word to its sessions, as the loss of the machine does. */
  kill(): Promise<void>;
  /** Stops the server and removes its files. */
  remove(): Promise<void>;
}

/** A standby of another cluster. */
export interface TestReplica extends TestCluster {
  /** Resolves when it has applied what the primary had committed when this was called. */
  caughtUp(): Promise<void>;
  /** Stops to receive: what the primary commits from now on is lost when this one is promoted. */
  disconnect(): Promise<void>;
  /** Makes it a primary, on a timeline of its own; resolves when it accepts writes. */
  promote(): Promise<void>;
}

/** A directory that `startCopy` makes a server of. */
export type ClusterCopy = { readonly root: string };

/** Starts an empty server: as the service's own embedded one, and ready to be streamed from. 0.3-2 s. */
export async function startCluster(
  settings: Readonly<Record<string, string>> = {},
): Promise<TestCluster> {
  const root = makeRoot();
  const cluster = new Cluster(root, settings);
  await createCluster(cluster.programs, cluster.data, PASSWORD);
  await cluster.start();
  return cluster;
}

/** Starts a server on a backup or cold copy, which is used up by it. */
export async function startCopy(
  copy: ClusterCopy,
  settings: Readonly<Record<string, string>> = {},
): Promise<TestCluster> {
  const cluster = new Cluster(copy.root, settings);
  await cluster.start();
  return cluster;
}

/** Every row of every table, as a dump has them; `restoreRows` puts them into another database. */
export type DumpedRows = ReadonlyMap<string, string>;

/**
 * What pg_dump, which is not among the binaries, would save of the data: one snapshot of all tables of `public`.
 * For small states: it is held in memory.
 */
export async function dumpRows(target: ServerTarget): Promise<DumpedRows> {
  return await withClient(target, async (client) => {
    await client.query('begin isolation level repeatable read, read only');
    const rows = new Map<string, string>();
    for (const table of await tablesOf(client)) {
      const read = await client.query<{ rows: string }>(
        `select coalesce(json_agg(t), '[]')::text as rows from public.${table} t`,
      );
      rows.set(table, read.rows[0]?.rows ?? '[]');
    }
    await client.query('commit');
    return rows;
  });
}

/** Replaces what the tables of a migrated database hold by dumped rows. Triggers and foreign keys are not asked. */
export async function restoreRows(target: ServerTarget, dumped: DumpedRows): Promise<void> {
  await withClient(target, async (client) => {
    await client.query('begin; set local session_replication_role = replica');
    await client.query(`truncate ${(await tablesOf(client)).join(', ')}`);
    for (const [table, rows] of dumped) {
      const { rows: own } = await client.query<{ names: string }>(
        `select string_agg(quote_ident(attname), ', ' order by attnum) as names from pg_attribute
         where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
        [`public.${table}`],
      );
      const columns = own[0]?.names;
      await client.query(
        `insert into public.${table} (${columns}) overriding system value
         select ${columns} from json_populate_recordset(null::public.${table}, $1)`,
        [rows],
      );
    }
    await client.query('commit');
  });
}

async function tablesOf(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select quote_ident(tablename) as name from pg_tables where schemaname = 'public' order by 1`,
  );
  return rows.map((row) => row.name);
}

class Cluster implements TestReplica {
  readonly root: string;
  readonly data: string;
  readonly programs: Programs;
  readonly target: ServerTarget;
  readonly #primary: Cluster | undefined;
  readonly #settings: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;

  constructor(root: string, settings: Readonly<Record<string, string>>, primary?: Cluster) {
    this.root = root;
    this.data = join(root, 'postgres');
    const binaries = findPostgresBinaries(join(root, 'lib'));
    const user = chooseServerUser(this.data, binaries);
    this.programs = { ...binaries, ...user, logPath: join(root, 'postgres.log') };
    this.#settings = settings;
    this.#primary = primary;
    this.target = {
      host: join(root, 's'),
      port: SOCKET_PORT,
      user: SUPERUSER,
      password: PASSWORD,
      database: DATABASE,
    };
  }

  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  get isRunning(): boolean {
    const child = this.#child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  async query<Row extends object>(text: string): Promise<Row[]> {
    return await withClient(this.target, async (client) => (await client.query<Row>(text)).rows);
  }

  async start(): Promise<void> {
    mkdirSync(this.target.host, { recursive: true, mode: 0o700 });
    chownTo(this.programs, this.target.host);
    const child = spawnServer(this.programs, this.data, {
      ...serverSettings(this.target.host, 150),
      shared_buffers: '32MB',
      // A replica takes its start from the log that the primary still has.
      wal_keep_size: '512MB',
      ...this.#settings,
    });
    child.unref();
    this.#child = child;
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      const file = readPidFile(this.data);
      // A standby that serves reads says so with another word.
      if (file?.pid === child.pid && ['ready', 'standby'].includes(file?.status ?? '')) return;
      if (!this.isRunning || performance.now() > deadline) {
        throw new Error(`PostgreSQL did not start; see ${this.programs.logPath}`);
      }
      await sleep(POLL_MS);
    }
  }

  async stop(): Promise<void> {
    if (this.isRunning) await stopServer(this.pid);
  }

  async kill(): Promise<void> {
    if (!this.isRunning) return;
    // As pg_ctl stop -m immediate: at the next start the server recovers as after a crash.
    process.kill(this.pid, 'SIGQUIT');
    while (isAlive(this.pid)) await sleep(POLL_MS);
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  }

  async backup(): Promise<ClusterCopy> {
    return { root: await this.#baseBackup(true) };
  }

  async coldCopy(): Promise<ClusterCopy> {
    await this.stop();
    const root = makeRoot();
    execFileSync('cp', ['-a', this.data, join(root, 'postgres')]);
    return { root };
  }

  async createReplica(): Promise<TestReplica> {
    const root = await this.#baseBackup(false);
    const replica = new Cluster(root, this.#settings, this);
    const { host, port, user, password } = this.target;
    this.#write(
      join(replica.data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=${host} port=${port} user=${user} password=${password}'\n`,
    );
    this.#write(join(replica.data, 'standby.signal'), '');
    await replica.start();
    return replica;
  }

  async caughtUp(): Promise<void> {
    const primary = this.#primary;
    if (primary === undefined) throw new Error('not a replica');
    const [head] = await primary.query<{ lsn: string }>(`select pg_current_wal_lsn()::text as lsn`);
    for (;;) {
      const [here] = await this.query<{ done: boolean }>(
        `select coalesce(pg_last_wal_replay_lsn() >= '${head?.lsn}'::pg_lsn, false) as done`,
      );
      if (here?.done === true) return;
      await sleep(POLL_MS);
    }
  }

  async disconnect(): Promise<void> {
    await this.query(`alter system set primary_conninfo = ''`);
    await this.query('select pg_reload_conf()');
    for (;;) {
      const rows = await this.query('select pid from pg_stat_wal_receiver');
      if (rows.length === 0) return;
      await sleep(POLL_MS);
    }
  }

  async promote(): Promise<void> {
    const [row] = await this.query<{ done: boolean }>('select pg_promote(true, 60) as done');
    if (row?.done !== true) throw new Error('the standby was not promoted');
  }

  /** Documentation of PostgreSQL, "Making a Base Backup Using the Low Level API". */
  async #baseBackup(isWithLog: boolean): Promise<string> {
    const root = makeRoot();
    const data = join(root, 'postgres');
    await withClient(this.target, async (client) => {
      await client.query(`select pg_backup_start('test', true)`);
      // Files that the server removes meanwhile are none of the backup's.
      const skipped = NOT_COPIED.map((name) => `--exclude=./${name}`).join(' ');
      const copy = `mkdir -m 700 "$2" && cd "$1" && { tar --warning=no-file-changed --warning=no-file-removed --ignore-failed-read ${skipped} -cf - . || [ $? = 1 ]; } | tar -C "$2" -xpf -`;
      execFileSync('sh', ['-c', copy, 'sh', this.data, data], { stdio: 'ignore' });
      const { rows } = await client.query<{ labelfile: string }>(
        'select labelfile from pg_backup_stop(false)',
      );
      this.#write(join(data, 'backup_label'), rows[0]?.labelfile ?? '');
      const log = join(data, 'pg_wal');
      // A segment that is just being made is none of the log yet.
      const copyLog = `tar --warning=no-file-changed --warning=no-file-removed --ignore-failed-read --exclude=xlogtemp.* -C "$1" -cf - pg_wal | tar -C "$2" -xpf -`;
      if (isWithLog)
        execFileSync('sh', ['-c', copyLog, 'sh', this.data, data], { stdio: 'ignore' });
      else mkdirSync(join(log, 'archive_status'), { recursive: true, mode: 0o700 });
      for (const path of isWithLog ? [data] : [data, log, join(log, 'archive_status')]) {
        chmodSync(path, 0o700);
        chownTo(this.programs, path);
      }
    });
    return root;
  }

  #write(path: string, text: string): void {
    writeFileSync(path, text, { mode: 0o600 });
    chownTo(this.programs, path);
  }
}

/** Open to pass through, since the server may run as another user. Short, for the path of its socket. */
function makeRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'gh-cluster-'));
  chmodSync(root, 0o711);
  return root;
}

async function withClient<T>(
  target: ServerTarget,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(target);
  // A server that is killed cuts it; what was asked fails by itself.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
