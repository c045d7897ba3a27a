import { Client } from 'pg';
import { applyTimeouts, clientConfig, type PostgresTarget } from '../postgres/pool.ts';
import { selectSoleUser, SOLE_USE_LOCK } from '../postgres/sole-use.ts';
import type { StoreLog } from '../postgres/store-log.ts';
import { INSTANCE_CHANNEL } from './instance-rows.ts';

export type MemberConnectionOptions = {
  readonly target: PostgresTarget;
  readonly leaseMs: number;
  /** After this long without an answer the connection is of no use. */
  readonly answerMs: number;
  /** Then a release that must be alone is waited for a while, and named in the error. */
  readonly isFirst: boolean;
  readonly prepare?: ((client: Client) => Promise<unknown>) | undefined;
  /** Called when rows of instances have changed, with the id that the notification names. */
  readonly onNotice: (instanceId: string | undefined) => void;
  readonly onEnd: (client: Client) => void;
  readonly log: StoreLog;
};

const RETRY_MS = 200;
/** A predecessor that is just ending is waited for. */
const SOLE_USE_WAIT_MS = 1_500;

/**
 * The connection of a member: listens for changes of the others' rows, and holds the lock of the database
 * shared, by which releases that must be alone keep out. Errors: STORE_UNAVAILABLE when one of those has it.
 */
export async function connectMember(options: MemberConnectionOptions): Promise<Client> {
  const settings = {
    applicationName: 'gatehouse-instance',
    statementTimeoutMs: options.leaseMs,
    idleInTransactionTimeoutMs: 0,
    connectTimeoutMs: options.answerMs,
  };
  const client = new Client({
    ...clientConfig(options.target, settings),
    // A server that hangs does not end its statements.
    query_timeout: options.answerMs,
  });
  let isReady = false;
  client.on('error', (error) =>
    options.log('warn', 'postgres_connection_lost', { pool: 'instance', error: error.message }),
  );
  client.on('notification', ({ payload }) => options.onNotice(payload));
  client.once('end', () => {
    if (isReady) options.onEnd(client);
  });
  try {
    await client.connect();
    await applyTimeouts(client, options.target, settings);
    // So that the server releases the lock soon after our machine is gone.
    await client.query(
      'set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3',
    );
    await options.prepare?.(client);
    await shareUse(client, options.isFirst ? SOLE_USE_WAIT_MS : 0);
    await client.query(`listen ${INSTANCE_CHANNEL}`);
    isReady = true;
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

async function shareUse(client: Client, waitMs: number): Promise<void> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    const { rows } = await client.query<{ held: boolean }>(
      'select pg_try_advisory_lock_shared($1, $2) as held',
      [...SOLE_USE_LOCK],
    );
    if (rows[0]?.held === true) return;
    if (performance.now() >= endMs) throw await selectSoleUser(client);
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}
