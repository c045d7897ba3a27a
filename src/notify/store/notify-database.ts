import { fileURLToPath } from 'node:url';
import type { ClientBase, Pool } from 'pg';
import { migrateSchema } from '../../store/migrations/migrate.ts';
import { isRetryable, storeError } from '../../store/postgres/pg-errors.ts';
import { createPool, type PostgresTarget } from '../../store/postgres/pool.ts';
import type { StoreLog } from '../../store/postgres/store-log.ts';
import { inRetriedTransaction } from '../../store/postgres/transaction.ts';

/** Of one statement that Postgres asks to run again: a deadlock or a lock that took too long. */
const ATTEMPTS_MAX = 5;

export type NotifyDatabaseOptions = {
  readonly target: PostgresTarget;
  /** Connections. */
  readonly poolMax: number;
  readonly log: StoreLog;
};

/**
 * How the parts of the store reach the database: one pool, and one place where trouble that may pass
 * becomes STORE_UNAVAILABLE. Everything else that a statement or `work` throws is thrown as it is.
 */
export class NotifyDatabase {
  readonly #pool: Pool;

  constructor({ target, poolMax, log }: NotifyDatabaseOptions) {
    this.#pool = createPool(target, { max: poolMax, applicationName: 'gatehouse-notify', log });
  }

  /** For figures about it. */
  get pool(): Pick<Pool, 'totalCount' | 'idleCount' | 'waitingCount'> {
    return this.#pool;
  }

  /** The rows of one prepared statement, sent once; a name has one text. */
  query<Row extends object>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    return guarded(() => this.#rows<Row>(name, text, values));
  }

  /**
   * As `query`, sent up to 5 times in all when Postgres asks for it, for a statement that writes: one statement is a
   * transaction, and one way to the server and back instead of the three of `transaction`.
   */
  queryRetried<Row extends object>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    return guarded(() => retried(() => this.#rows<Row>(name, text, values)));
  }

  /** The value of `work`, in a transaction that is run again as a whole; see `inRetriedTransaction`. */
  transaction<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    return guarded(() => inRetriedTransaction(this.#pool, work));
  }

  /** Waits for what runs. */
  async close(): Promise<void> {
    await this.#pool.end();
  }

  async #rows<Row extends object>(
    name: string,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    const { rows } = await this.#pool.query<Row>({ name, text, values: [...values] });
    return rows;
  }
}

/** Does what inRetriedTransaction does, for a single statement. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= ATTEMPTS_MAX || !isRetryable(error)) throw error;
    }
  }
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw storeError(error);
  }
}

const DIRECTORY = fileURLToPath(new URL('../../../migrations/notify', import.meta.url));

/**
 * Brings schema `notify` up to date, waiting for any other process that does the same.
 * Errors: STORE_UNAVAILABLE when the database is newer than this release, or a standby.
 */
export function migrateNotify(target: PostgresTarget, log: StoreLog): Promise<void> {
  return migrateSchema(target, { log, directory: DIRECTORY, table: 'notify_schema_migration' });
}
