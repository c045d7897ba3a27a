import type { Pool, PoolClient } from 'pg';
import { onTestFinished } from 'vitest';

/** A transaction that may have written by the rules before: it has locked a shard, and stays open until the test ends or it is ended. */
export async function olderTransaction(
  pool: Pool,
): Promise<{ readonly client: PoolClient; readonly end: () => Promise<void> }> {
  const client = await pool.connect();
  await client.query('begin');
  await client.query(`insert into shard (project_id, tenant_id) values ('elsewhere', $1)`, [
    crypto.randomUUID(),
  ]);
  let isEnded = false;
  const end = async (): Promise<void> => {
    if (isEnded) return;
    isEnded = true;
    await client.query('commit');
    client.release();
  };
  onTestFinished(end);
  return { client, end };
}
