import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { worksIn } from '../../src/store/embedded-postgres-process.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded-postgres.ts';
import type { ServerTarget } from '../../src/store/pool.ts';

/** One PostgreSQL of the run's own, which can be stopped, killed and frozen; the data stays. */
export class PostgresServer {
  readonly #directory: string;
  #server: EmbeddedPostgres;
  #frozen: readonly number[] = [];

  private constructor(directory: string, server: EmbeddedPostgres) {
    this.#directory = directory;
    this.#server = server;
  }

  /** Starts it with its data below `directory`. */
  static async start(directory: string): Promise<PostgresServer> {
    return new PostgresServer(directory, await open(directory));
  }

  /** Where it listens; the same for as long as it is this server. */
  get target(): ServerTarget {
    return this.#server.target;
  }

  /** Kills the postmaster and with it all sessions; it comes back by itself and recovers. */
  crash(): void {
    process.kill(this.#server.pid, 'SIGQUIT');
  }

  async stop(): Promise<void> {
    this.thaw();
    await this.#server.stop();
  }

  async startAgain(): Promise<void> {
    this.#server = await open(this.#directory);
  }

  /** No process of it runs until `thaw`: it ends no connection and refuses none. Linux only. */
  freeze(): void {
    this.#frozen = readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && worksIn(pid, join(this.#directory, 'postgres')) === true);
    signalAll(this.#frozen, 'SIGSTOP');
  }

  thaw(): void {
    signalAll(this.#frozen, 'SIGCONT');
    this.#frozen = [];
  }
}

function open(directory: string): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({
    dataDirectory: directory,
    maxConnections: 120,
    // A crash of the server is simulated, one of the machine is not.
    settings: { fsync: 'off', shared_buffers: '64MB' },
  });
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // A session that ended meanwhile.
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
}
