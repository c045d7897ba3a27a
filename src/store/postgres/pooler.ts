import { Client } from 'pg';
import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { isSilence } from './pg-errors.ts';
import { type PostgresTarget, clientConfig } from './pool.ts';

const CONNECT_TIMEOUT_MS = 30_000;
const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Finds out whether a pooler such as PgBouncer is between us and PostgreSQL, and whether sessions
 * are ours there: locks, LISTEN, prepared statements and settings need that. Behind a pooler the
 * process ids of PostgreSQL are not those that the connect returned. Returns the target as it is to
 * be used. Errors: STORE_UNAVAILABLE, with what to set, for a pooler that hands its connections out
 * by transaction or statement, and for one that gives only one; those of the driver. Cost: a
 * connection, two where there is a pooler.
 */
export async function examineTarget(target: PostgresTarget): Promise<PostgresTarget> {
  if (!('connectionString' in target)) return target;
  const one = await connect(target);
  try {
    const reported = (one as unknown as { readonly processID: number | null }).processID;
    if (reported === null || (await backendOf(one)) === reported) return target;
    const other = await connect(target);
    try {
      await assertOwnSessions(one, other);
    } finally {
      await end(other);
    }
    return { ...target, isPooled: true };
  } finally {
    await end(one);
  }
}

/** In this order a pooler that gives idle connections in any order gives one to both, or two to one. */
async function assertOwnSessions(one: Client, other: Client): Promise<void> {
  const [ofOne, ofOther] = [new Set<number>(), new Set<number>()];
  for (const client of [one, other, other, one, one, other]) {
    (client === one ? ofOne : ofOther).add(await backendOf(client));
  }
  if (ofOne.size === 1 && ofOther.size === 1 && ofOne.isDisjointFrom(ofOther)) return;
  throw new AppError<SharedReason>(
    'STORE_UNAVAILABLE',
    'DATABASE_URL leads to a pooler that hands out connections by transaction or statement; the service needs sessions of its own: set pool_mode = session in PgBouncer, or connect to PostgreSQL itself',
  );
}

async function connect(target: PostgresTarget): Promise<Client> {
  // Without time-outs, which are parameters of the connect: poolers refuse those that they do not know.
  const client = new Client({
    ...clientConfig(target, {
      applicationName: 'gatehouse-examine',
      statementTimeoutMs: 0,
      lockTimeoutMs: 0,
      idleInTransactionTimeoutMs: 0,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    }),
    query_timeout: ANSWER_TIMEOUT_MS,
  });
  client.on('error', ignoreLost);
  await client.connect();
  return client;
}

async function backendOf(client: Client): Promise<number> {
  try {
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    return rows[0]?.pid ?? 0;
  } catch (error) {
    if (!isSilence(error)) throw error;
    throw new AppError<SharedReason>(
      'STORE_UNAVAILABLE',
      `DATABASE_URL gives no answer for ${ANSWER_TIMEOUT_MS / 1000} s; a pooler there needs a connection to PostgreSQL for each of ours: raise default_pool_size of PgBouncer`,
      {},
      error,
    );
  }
}

async function end(client: Client): Promise<void> {
  await client.end().catch(ignoreLost);
}

function ignoreLost(): void {
  // The query that needed the connection fails with it.
}
