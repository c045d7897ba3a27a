import { type ClientBase, type ClientConfig, Pool } from 'pg';
import { type StoreLog, silentLog } from './store-log.ts';

/** A database by the parts of its address. A host that begins with `/` is a socket directory. */
export type ServerTarget = {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
};

/** Address of PostgreSQL: parts, or the text of DATABASE_URL. Plain data, fit for workerData. */
export type PostgresTarget =
  | ServerTarget
  | {
      readonly connectionString: string;
      /** A pooler is in between (pooler.ts), which takes no settings with the connect. */
      readonly isPooled?: true;
    };

export type PoolOptions = {
  /** Connections at most. */
  readonly max: number;
  /** Shown in pg_stat_activity, for example `gatehouse-writes`. */
  readonly applicationName: string;
  readonly statementTimeoutMs?: number | undefined;
  readonly lockTimeoutMs?: number | undefined;
  readonly idleInTransactionTimeoutMs?: number | undefined;
  readonly connectTimeoutMs?: number | undefined;
  readonly log?: StoreLog | undefined;
  /** Runs on each new connection before it is used; when it throws the connection is given up, with that error. */
  readonly prepare?: ((client: ClientBase) => Promise<void>) | undefined;
};

const STATEMENT_TIMEOUT_MS = 30_000;
const LOCK_TIMEOUT_MS = 5_000;
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
/**
 * The `query_timeout` of reads that decisions wait for, in ms: their own time-out, since that of the server
 * ends nothing while the server hangs. The connection is given up with it. As long as one to connect.
 */
export const PROMPT_READ_TIMEOUT_MS = CONNECT_TIMEOUT_MS;

/** Settings of one connection, for pools and for connections of their own (locks, LISTEN, COPY). */
export function clientConfig(
  target: PostgresTarget,
  options: Omit<PoolOptions, 'max' | 'log' | 'prepare'>,
): ClientConfig {
  const address =
    'connectionString' in target ? { connectionString: target.connectionString } : target;
  return {
    ...address,
    application_name: options.applicationName,
    ...(isPooled(target) ? {} : timeoutsOf(options)),
    connectionTimeoutMillis: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

type Timeouts = Pick<
  PoolOptions,
  'statementTimeoutMs' | 'lockTimeoutMs' | 'idleInTransactionTimeoutMs'
>;

function timeoutsOf(options: Timeouts) {
  return {
    statement_timeout: options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS,
    lock_timeout: options.lockTimeoutMs ?? LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout:
      options.idleInTransactionTimeoutMs ?? IDLE_IN_TRANSACTION_TIMEOUT_MS,
  };
}

function isPooled(target: PostgresTarget): boolean {
  return 'isPooled' in target;
}

/**
 * The time-outs of `clientConfig` on a connection that is open: nothing to do but behind a pooler, which refuses
 * them with the connect. Call it before anything else. Errors: those of the server.
 */
export async function applyTimeouts(
  client: ClientBase,
  target: PostgresTarget,
  options: Timeouts,
): Promise<void> {
  if (!isPooled(target)) return;
  const settings = Object.entries(timeoutsOf(options));
  const calls = settings.map((_, i) => `set_config($${2 * i + 1}, $${2 * i + 2}, false)`);
  const values = settings.flatMap(([name, ms]) => [name, String(ms)]);
  await client.query(`select ${calls.join(', ')}`, values);
}

/**
 * A pool whose sessions cannot wait or hold a lock for ever. Errors of idle connections are logged,
 * not thrown: the next use opens a new one.
 */
export function createPool(target: PostgresTarget, options: PoolOptions): Pool {
  const log = options.log ?? silentLog;
  const { max, prepare } = options;
  // The driver waits for the hook, which its types do not show.
  const onConnect = async (client: ClientBase): Promise<void> => {
    await applyTimeouts(client, target, options);
    await prepare?.(client);
  };
  const hook = prepare === undefined && !isPooled(target) ? {} : { onConnect };
  const pool = new Pool(Object.assign(clientConfig(target, options), hook, { max }));
  // While it is checked out the pool does not listen: a connection lost between two statements would end the process.
  pool.on('connect', (client) => client.on('error', ignoreError));
  pool.on('error', (error) => {
    log('warn', 'postgres_connection_lost', {
      pool: options.applicationName,
      error: error.message,
    });
  });
  return pool;
}

function ignoreError(): void {
  // The statement under way, or the next one, fails with it.
}
