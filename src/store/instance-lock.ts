import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { AppError } from '../shared/app-error.ts';
import { isSilence } from './pg-errors.ts';
import { type PostgresTarget, clientConfig } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';
import type { StoreReason } from './store-reason.ts';

/** Key of the advisory lock that the one instance on a database holds ('gate', 'inst'). */
const LOCK_CLASS = 0x67617465;
const LOCK_OBJECT = 0x696e7374;

export type InstanceLockOptions = {
  readonly target: PostgresTarget;
  readonly region: string;
  /**
   * True when nobody else can reach the database (the embedded server, whose directory we hold):
   * then leases of earlier processes need not be waited for, and ours never ends.
   */
  readonly isExclusive: boolean;
  /**
   * `lost`: the connection is gone, and is being made again. `held`: the lock is ours again; changes
   * may have been missed. `taken`: another instance has it; this one must end.
   */
  readonly onChange: (state: 'lost' | 'held' | 'taken') => void;
  /** A sample of the database's clock, taken with each renewal: see `DatabaseTime`. */
  readonly onDatabaseTime?: (sentMs: number, receivedMs: number, databaseMs: number) => void;
  readonly leaseMs?: number | undefined;
  readonly log?: StoreLog | undefined;
};

export interface InstanceLock {
  readonly instanceId: string;
  /**
   * Whether no other instance can have begun to serve. Counted on the monotonic clock from before
   * the last renewal was sent, less a margin. Cost: one clock reading.
   */
  isAlone(): boolean;
  /** Whether the server stopped to answer while it is there: it hangs, or cannot be reached. */
  readonly isSilent: boolean;
  /** Gives the lock and the instance row back. Idempotent. */
  release(): Promise<void>;
}

const LEASE_MS = 6_000;
/** For clocks that do not run equally fast. */
const LEASE_MARGIN = 0.1;
const RETRY_MS = 200;
/** A predecessor that is just ending is waited for. */
const ACQUIRE_WAIT_MS = 1_500;
/** Of a lease: a renewal is due every third, so a server that hangs is noticed at the end of the lease. */
const ANSWER_SHARE = 2 / 3;

/**
 * Makes this process the only instance on its database, until `release` or its end.
 * Errors: STORE_UNAVAILABLE, with who holds it, when another instance runs. Cost: one connection of
 * its own, a query every third of the lease; after a crash of the holder waits for its lease.
 */
export async function acquireInstanceLock(options: InstanceLockOptions): Promise<InstanceLock> {
  const lock = new Holder(options);
  await lock.start();
  return lock;
}

type Backend = { readonly pid: number; readonly started: string };

class Holder implements InstanceLock {
  readonly instanceId = randomUUID();
  readonly #options: InstanceLockOptions;
  readonly #leaseMs: number;
  readonly #log: StoreLog;
  #client: Client | undefined;
  #backend: Backend | undefined;
  #aloneUntilMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #released = false;
  #isSilent = false;

  constructor(options: InstanceLockOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    this.#log = options.log ?? silentLog;
  }

  isAlone(): boolean {
    return !this.#released && (this.#options.isExclusive || performance.now() < this.#aloneUntilMs);
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  async start(): Promise<void> {
    const client = await this.#connect();
    try {
      const deadline = performance.now() + ACQUIRE_WAIT_MS;
      while (!(await this.#tryLock(client))) {
        if (performance.now() >= deadline) throw await heldError(client);
        await delay(RETRY_MS);
      }
      await this.#waitForLeases(client);
      this.#aloneUntilMs = await this.#renew(client);
      this.#hold(client);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  }

  async release(): Promise<void> {
    if (this.#released) return;
    this.#released = true;
    clearTimeout(this.#timer);
    const client = this.#client;
    if (client === undefined) return;
    await client
      .query('delete from instance where id = $1', [this.instanceId])
      .catch(() => undefined); // The row's lease ends by itself.
    await client.end().catch(() => undefined);
  }

  async #connect(): Promise<Client> {
    const answerMs = Math.ceil(this.#leaseMs * ANSWER_SHARE);
    const client = new Client({
      ...clientConfig(this.#options.target, {
        applicationName: 'gatehouse-instance',
        statementTimeoutMs: this.#leaseMs,
        idleInTransactionTimeoutMs: 0,
        connectTimeoutMs: answerMs,
      }),
      // A server that hangs does not end its statements.
      query_timeout: answerMs,
    });
    client.on('error', (error) =>
      this.#log('warn', 'postgres_connection_lost', { pool: 'instance', error: error.message }),
    );
    try {
      await client.connect();
      // So that the server lets go of the lock soon after our machine is gone.
      await client.query(
        'set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3',
      );
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
    return client;
  }

  async #tryLock(client: Client): Promise<boolean> {
    const { rows } = await client.query<{ held: boolean; pid: number; started: string }>(
      `select pg_try_advisory_lock($1, $2) as held, pg_backend_pid() as pid, a.backend_start::text as started
       from pg_stat_activity a where a.pid = pg_backend_pid()`,
      [LOCK_CLASS, LOCK_OBJECT],
    );
    const row = rows[0];
    if (row?.held !== true) return false;
    this.#backend = { pid: row.pid, started: row.started };
    return true;
  }

  /** Another instance that lost its connection may serve from memory until its lease ends. */
  async #waitForLeases(client: Client): Promise<void> {
    while (!this.#options.isExclusive) {
      const { rows } = await client.query<{ left_ms: number | null }>(
        `select extract(epoch from max(lease_until) - clock_timestamp())::float8 * 1000 as left_ms
         from instance where id <> $1`,
        [this.instanceId],
      );
      const leftMs = rows[0]?.left_ms ?? 0;
      if (leftMs <= 0) break;
      this.#log('info', 'instance_lease_awaited', { leftMs: Math.ceil(leftMs) });
      await delay(Math.min(leftMs + 1, this.#leaseMs));
    }
    await client.query('delete from instance where id <> $1', [this.instanceId]);
  }

  /** Returns until when we are alone, on the monotonic clock. */
  async #renew(client: Client): Promise<number> {
    const sentMs = performance.now();
    const { rows } = await client.query<{ database_ms: number }>(
      `insert into instance (id, region, lease_until)
       values ($1, $2, clock_timestamp() + $3::float8 * interval '1 millisecond')
       on conflict (id) do update set lease_until = excluded.lease_until
       returning extract(epoch from clock_timestamp())::float8 * 1000 as database_ms`,
      [this.instanceId, this.#options.region, this.#leaseMs],
    );
    const databaseMs = rows[0]?.database_ms;
    if (databaseMs !== undefined) {
      this.#options.onDatabaseTime?.(sentMs, performance.now(), databaseMs);
    }
    return sentMs + this.#leaseMs * (1 - LEASE_MARGIN);
  }

  #hold(client: Client): void {
    if (this.#released) {
      void client.end().catch(() => undefined);
      return;
    }
    this.#client = client;
    const onEnd = (): void => {
      if (this.#client !== client || this.#released) return;
      this.#client = undefined;
      clearTimeout(this.#timer);
      this.#options.onChange('lost');
      void this.#regain();
    };
    client.once('end', onEnd);
    const renewed = (aloneUntilMs: number): void => {
      this.#aloneUntilMs = aloneUntilMs;
      renewLater();
    };
    const renewLater = (): void => {
      this.#timer = setTimeout(() => {
        this.#renew(client).then(renewed, (error: unknown) => {
          this.#isSilent = isSilence(error);
          this.#log('warn', 'instance_lease_not_renewed', { error: String(error) });
          // A connection that does not answer is as good as lost.
          client.end().catch(() => undefined);
          onEnd();
        });
      }, this.#leaseMs / 3);
      this.#timer.unref();
    };
    renewLater();
  }

  /** Connects and locks again, for as long as it takes, unless another instance has the lock. */
  async #regain(): Promise<void> {
    const previous = this.#backend;
    while (!this.#released) {
      let client: Client | undefined;
      try {
        client = await this.#connect();
        if (!(await this.#tryLock(client)) && !(await this.#takeFrom(client, previous))) {
          this.#log('error', 'instance_lock_taken', {});
          await client.end().catch(() => undefined);
          this.#aloneUntilMs = 0;
          if (!this.#released) this.#options.onChange('taken');
          return;
        }
        await this.#waitForLeases(client);
        const aloneUntilMs = await this.#renew(client);
        this.#isSilent = false;
        this.#hold(client);
        // Before we call ourselves alone: what was remembered may be older than another's writes.
        if (!this.#released) this.#options.onChange('held');
        this.#aloneUntilMs = aloneUntilMs;
        return;
      } catch (error) {
        this.#isSilent = isSilence(error);
        this.#log('warn', 'instance_lock_not_regained', { error: String(error) });
        await client?.end().catch(() => undefined);
        await delay(RETRY_MS);
      }
    }
  }

  /** Ends our own former session, which the server may not have given up yet; false: it is not ours. */
  async #takeFrom(client: Client, previous: Backend | undefined): Promise<boolean> {
    const deadline = performance.now() + ACQUIRE_WAIT_MS;
    while (performance.now() < deadline) {
      await client.query(
        `select pg_terminate_backend(a.pid) from pg_stat_activity a
         where a.pid = $1 and a.backend_start::text = $2`,
        [previous?.pid ?? 0, previous?.started ?? ''],
      );
      if (await this.#tryLock(client)) return true;
      await delay(RETRY_MS);
    }
    return false;
  }
}

async function heldError(client: Client): Promise<AppError> {
  const { rows } = await client.query<{ pid: number; address: string | null; since: string }>(
    `select a.pid, host(a.client_addr) as address, a.backend_start::text as since
     from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted
       and l.database = (select oid from pg_database where datname = current_database())
       and l.classid = $1::bigint::oid and l.objid = $2::bigint::oid and l.objsubid = 2`,
    [LOCK_CLASS, LOCK_OBJECT],
  );
  const holder = rows[0];
  const who =
    holder === undefined
      ? ''
      : ` (from ${holder.address ?? 'this machine'}, server process ${holder.pid}, since ${holder.since})`;
  return new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    `another instance already runs on this database${who}; this release runs one instance per database. Stop the other one, or use another DATABASE_URL`,
  );
}

async function delay(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
