import { Client } from 'pg';
import type { PostgresTarget } from '../../src/store/pool.ts';

/** The same server, another database. */
export function withDatabase(target: PostgresTarget, database: string): PostgresTarget {
  if (!('connectionString' in target)) return { ...target, database };
  const url = new URL(target.connectionString);
  url.pathname = `/${database}`;
  return { connectionString: url.href };
}

/** Runs one statement on a connection of its own. */
export async function asAdmin(admin: PostgresTarget, statement: string): Promise<void> {
  const client = new Client(admin);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
