import { Client, type QueryResult, type QueryResultRow } from 'pg';
import { type PostgresTarget, applyTimeouts, clientConfig } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';

/** Class of the advisory locks ('gatw'); their objects are below. */
const LOCK_CLASS = 0x67617477;
const LOCK_OBJECTS = { purge: 1, retention: 2, fsck: 3, activation: 4, bulk: 5 } as const;

/** Work that one instance at a time does for all. */
export type WorkName = keyof typeof LOCK_OBJECTS;

/** `elsewhere`: another instance, or another run here, is at it. */
export type WorkOutcome = 'done' | 'elsewhere' | 'failed';

/** So that the server releases the locks soon after our machine is gone. */
const KEEPALIVES =
  'set tcp_keepalives_idle = 5; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3';

export type SharedWorkOptions = {
  readonly target: PostgresTarget;
  /** Notified of the end of each run. */
  readonly onRun?: ((name: WorkName, outcome: WorkOutcome) => void) | undefined;
  readonly log?: StoreLog | undefined;
};

/**
 * Work that any instance may do and one at a time needs to: each run tries an advisory lock, and
 * leaves the work to its holder where there is one. The lock saves work and is no more than that:
 * where its connection is lost another instance may begin before this one has ended, so that the
 * work must tolerate being done twice at once. Cost: one connection, open while anything runs.
 */
export class SharedWork {
  readonly #options: SharedWorkOptions;
  readonly #running = new Set<WorkName>();
  #session: Session | undefined;

  constructor(options: SharedWorkOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` and returns its result, or undefined when it is being done already. Its signal
   * aborts when the lock is lost: then it should end soon. Errors: those of `work` and of the
   * connection.
   */
  async run<T>(name: WorkName, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    // Locks of one session do not keep each other out.
    if (this.#running.has(name)) return this.#ended(name, 'elsewhere');
    this.#running.add(name);
    try {
      const result = await this.#withSession((session) => session.locked(name, work));
      if (result === undefined) return this.#ended(name, 'elsewhere');
      this.#ended(name, 'done');
      return result.value;
    } catch (error) {
      this.#ended(name, 'failed');
      throw error;
    } finally {
      this.#running.delete(name);
    }
  }

  #ended(name: WorkName, outcome: WorkOutcome): undefined {
    this.#options.onRun?.(name, outcome);
  }

  async #withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
    if (this.#session === undefined || this.#session.isLost) {
      this.#session = new Session(this.#options.target, this.#options.log ?? silentLog);
    }
    const session = this.#session;
    session.users += 1;
    try {
      await session.opened;
      return await use(session);
    } finally {
      session.users -= 1;
      if (session.users === 0) {
        if (this.#session === session) this.#session = undefined;
        await session.close();
      }
    }
  }
}

/** The connection that holds the locks. */
class Session {
  readonly opened: Promise<void>;
  users = 0;
  readonly #client: Client;
  readonly #lost = new AbortController();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(target: PostgresTarget, log: StoreLog) {
    const settings = { applicationName: 'gatehouse-upkeep', idleInTransactionTimeoutMs: 0 };
    this.#client = new Client(clientConfig(target, settings));
    this.#client.on('error', (error) => {
      log('warn', 'postgres_connection_lost', { pool: 'upkeep', error: error.message });
      this.#lost.abort();
    });
    this.#client.on('end', () => this.#lost.abort());
    this.opened = this.#client.connect().then(async () => {
      await applyTimeouts(this.#client, target, settings);
      await this.#client.query(KEEPALIVES);
    });
    this.opened.catch(() => this.#lost.abort());
  }

  get isLost(): boolean {
    return this.#lost.signal.aborted;
  }

  async locked<T>(
    name: WorkName,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ readonly value: T } | undefined> {
    const key = [LOCK_CLASS, LOCK_OBJECTS[name]];
    const { rows } = await this.#query<{ held: boolean }>(
      'select pg_try_advisory_lock($1, $2) as held',
      key,
    );
    if (rows[0]?.held !== true) return undefined;
    try {
      return { value: await work(this.#lost.signal) };
    } finally {
      // A connection that is lost has released it.
      if (!this.isLost) await this.#query('select pg_advisory_unlock($1, $2)', key);
    }
  }

  /** Several works share the connection, and a statement waits for the one before: the driver is to give up its own queue (pg 9). */
  #query<Row extends QueryResultRow>(text: string, values: unknown[]): Promise<QueryResult<Row>> {
    const answer = this.#turn.then(() => this.#client.query<Row>(text, values));
    this.#turn = answer.catch(ignoreReported);
    return answer;
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined); // Its locks end with it, or have.
  }
}

function ignoreReported(): void {
  // Whoever sent that statement hears of it.
}
