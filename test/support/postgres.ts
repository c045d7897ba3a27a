import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { inject } from 'vitest';
import { type PostgresTarget, createPool } from '../../src/store/postgres/pool.ts';
import { asAdmin, cloneInto, withDatabase } from './postgres-admin.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Where the template lies; see global-postgres.ts. */
    postgres: { readonly admin: PostgresTarget; readonly template: string };
  }
}

/** A migrated, empty database of one test file. */
export type TestDatabase = {
  readonly target: PostgresTarget;
  readonly pool: pg.Pool;
  /** Superuser's connection to another database of the same server, to cut sessions and the like. */
  readonly admin: PostgresTarget;
  readonly name: string;
  drop(): Promise<void>;
};

/**
 * Clones the migrated template into a database of its own (about 30 ms): call it in beforeAll, and
 * `drop` in afterAll. `template: 'none'` makes an empty one, without tables.
 */
export async function createTestDatabase(
  options: { readonly template?: 'migrated' | 'none'; readonly poolMax?: number } = {},
): Promise<TestDatabase> {
  const { admin, template } = inject('postgres');
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const source = options.template === 'none' ? 'template0' : template;
  await cloneInto(name, source, admin);
  const target = withDatabase(admin, name);
  const pool = createPool(target, {
    max: options.poolMax ?? 10,
    applicationName: 'test',
    // A lock is held for as long as its test takes: starts on a busy machine take longer than a service's 10 s.
    idleInTransactionTimeoutMs: 0,
  });
  return {
    target,
    pool,
    admin,
    name,
    drop: async () => {
      await pool.end();
      await asAdmin(admin, `drop database if exists ${name} with (force)`);
    },
  };
}
