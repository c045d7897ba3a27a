import { Client } from 'pg';
import type { PostgresTarget } from '../../src/store/postgres/pool.ts';

/** The same server, another database. */
export function withDatabase(target: PostgresTarget, database: string): PostgresTarget {
  if (!('connectionString' in target)) return { ...target, database };
  const url = new URL(target.connectionString);
  url.pathname = `/${database}`;
  return { connectionString: url.href };
}

/** The target as the text of a DATABASE_URL. */
export function urlOf(target: PostgresTarget): string {
  if ('connectionString' in target) return target.connectionString;
  const { user, password, database, host, port } = target;
  const query = `host=${encodeURIComponent(host)}&port=${port}`;
  return `postgres://${user}:${encodeURIComponent(password)}@localhost/${database}?${query}`;
}

/** Makes a database like another one. Copies its files: the default of PostgreSQL takes twice the CPU. */
export async function cloneInto(
  name: string,
  source: string,
  admin: PostgresTarget,
): Promise<void> {
  await asAdmin(
    admin,
    `create database ${name} template ${source} encoding 'UTF8' strategy file_copy`,
  );
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
