import { Socket } from 'node:net';
import { Client, type ClientBase } from 'pg';
import { type PostgresTarget, applyTimeouts, clientConfig } from './pool.ts';
import { type StoreLog, silentLog } from './store-log.ts';

/** A connection of its own for one kind of query, of which one at a time is under way. */
export interface QueryLink {
  /** Whether a query can be sent now. */
  readonly isUp: boolean;
  /** Duration of one statement when the connection was opened, in ms; 0 before the first. */
  readonly roundTripMs: number;
  /**
   * Only while up, and after the query before has ended. `timeoutMs` is how long the query may take.
   * Errors: those of `query`; whatever it is, the connection is given up and made again.
   */
  run<T>(query: (client: ClientBase, timeoutMs: number) => Promise<T>): Promise<T>;
  /** Ends it; a query under way fails. Idempotent. */
  stop(): Promise<void>;
}

export type QueryLinkOptions = {
  readonly target: PostgresTarget;
  /** Shown in pg_stat_activity, and in the log. */
  readonly applicationName: string;
  /** Settings of the session, as SQL. */
  readonly session: string;
  /** Runs on each new connection, before anything is read. */
  readonly prepare: (client: ClientBase) => Promise<void>;
  /** A connection is there, the first or a later one. */
  readonly onUp: () => void;
  /** The connection that was there is lost. */
  readonly onDown: () => void;
  readonly log?: StoreLog | undefined;
};

/** A server that hangs neither answers nor refuses: only a time-out of our own ends the wait. */
const ANSWER_TIMEOUT_MS = 1_000;
const TIMEOUTS = {
  statementTimeoutMs: ANSWER_TIMEOUT_MS,
  idleInTransactionTimeoutMs: ANSWER_TIMEOUT_MS,
  connectTimeoutMs: ANSWER_TIMEOUT_MS,
};
const RETRY_MS_MIN = 20;
const RETRY_MS_MAX = 250;

/** Opens the connection and keeps it open, for as long as it takes, until `stop`. */
export function startQueryLink(options: QueryLinkOptions): QueryLink {
  const link = new LinkState(options);
  link.start();
  return link;
}

class LinkState implements QueryLink {
  readonly #options: QueryLinkOptions;
  readonly #log: StoreLog;
  #client: Client | null = null;
  #socket: Socket | null = null;
  #isUp = false;
  #roundTripMs = 0;
  #isStopped = false;
  #retryMs = RETRY_MS_MIN;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: QueryLinkOptions) {
    this.#options = options;
    this.#log = options.log ?? silentLog;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  get roundTripMs(): number {
    return this.#roundTripMs;
  }

  start(): void {
    const { target, applicationName } = this.#options;
    // The socket is ours, so that no state of the driver can keep it open.
    const socket = new Socket();
    const client = new Client({
      ...clientConfig(target, { applicationName, ...TIMEOUTS }),
      query_timeout: ANSWER_TIMEOUT_MS,
      stream: () => socket,
    });
    this.#client = client;
    this.#socket = socket;
    const lost = (error: unknown): void => this.#lost(client, error);
    client.on('error', lost);
    client.once('end', () => lost(new Error('Connection ended unexpectedly')));
    this.#open(client).catch(lost);
  }

  async run<T>(query: (client: ClientBase, timeoutMs: number) => Promise<T>): Promise<T> {
    const client = this.#client;
    if (client === null || !this.#isUp) throw new Error('Client was closed');
    try {
      const answer = await query(client, ANSWER_TIMEOUT_MS);
      this.#retryMs = RETRY_MS_MIN;
      return answer;
    } catch (error) {
      this.#lost(client, error);
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#isUp = false;
    clearTimeout(this.#retry);
    const client = this.#client;
    this.#client = null;
    const ended = client?.end().catch(ignoreWhileEnding);
    this.#socket?.destroySoon();
    await ended;
  }

  async #open(client: Client): Promise<void> {
    await client.connect();
    await applyTimeouts(client, this.#options.target, TIMEOUTS);
    // Another server, or another history of it, begins a new epoch before anything is read. A
    // standby, which is behind, cannot answer this.
    await this.#options.prepare(client);
    const sentMs = performance.now();
    await client.query(this.#options.session);
    this.#roundTripMs = performance.now() - sentMs;
    if (this.#client !== client) return;
    this.#isUp = true;
    this.#options.onUp();
  }

  #lost(client: Client, error: unknown): void {
    if (this.#client !== client) return;
    const wasUp = this.#isUp;
    this.#client = null;
    this.#isUp = false;
    this.#socket?.destroy();
    client.end().catch(ignoreWhileEnding);
    if (this.#isStopped) return;
    if (wasUp) {
      const pool = this.#options.applicationName;
      this.#log('warn', 'postgres_connection_lost', { pool, error: String(error) });
      this.#options.onDown();
    }
    this.#retry = setTimeout(() => this.start(), this.#retryMs);
    this.#retryMs = Math.min(2 * this.#retryMs, RETRY_MS_MAX);
  }
}

function ignoreWhileEnding(): void {
  // It is given up either way.
}
