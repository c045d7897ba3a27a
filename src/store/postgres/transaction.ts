import type { Pool, PoolClient } from 'pg';
import { isRetryable, isUnavailable } from './pg-errors.ts';

export type TransactionMode = 'read committed' | 'repeatable read' | 'repeatable read, read only';

const ATTEMPTS_MAX = 5;
const RETRY_DELAY_MS = 5;

/**
 * Runs `work` between BEGIN and COMMIT on one connection of the pool and returns its value. A
 * failure rolls back and is thrown; a connection that may be broken is not released.
 * The outcome of a COMMIT that failed with `isUnavailable` is unknown: see commit ids.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  mode: TransactionMode = 'read committed',
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error): void => {
    broken = error;
  };
  client.on('error', onError);
  try {
    await client.query(`begin isolation level ${mode}`);
    const value = await work(client);
    await client.query('commit');
    return value;
  } catch (error) {
    if (isUnavailable(error)) broken ??= error as Error;
    else await client.query('rollback').catch((failure: Error) => (broken = failure));
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

/**
 * Runs like `inTransaction`, up to 5 times when PostgreSQL asks for it (serialization failure,
 * deadlock, lock timeout). `work` must not have effects outside of the database.
 */
export async function inRetriedTransaction<T>(
  pool: Pool,
  work: (client: PoolClient) => Promise<T>,
  mode: TransactionMode = 'read committed',
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await inTransaction(pool, work, mode);
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || !isRetryable(error)) throw error;
      await new Promise((done) => setTimeout(done, RETRY_DELAY_MS * attempt));
    }
  }
}
