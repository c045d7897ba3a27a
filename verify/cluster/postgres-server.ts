import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { worksIn } from '../../src/store/embedded/embedded-postgres-process.ts';
import type { ServerTarget } from '../../src/store/postgres/pool.ts';
import {
  type TestCluster,
  type TestReplica,
  startCluster,
} from '../../test/support/postgres-cluster.ts';

/** A crash of the server is simulated, one of the machine is not. */
const SETTINGS = { fsync: 'off', shared_buffers: '64MB' };

/** One PostgreSQL of the run's own, which can be stopped, killed, frozen and replaced by a standby. */
export class PostgresServer {
  #cluster: TestCluster;
  #replica: TestReplica | undefined;
  #frozen: readonly number[] = [];

  private constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  /** Starts an empty one. */
  static async start(): Promise<PostgresServer> {
    return new PostgresServer(await startCluster(SETTINGS));
  }

  /** Where it listens; another place after each failover. */
  get target(): ServerTarget {
    return this.#cluster.target;
  }

  /** Ends all sessions at once, as a crash of one of them does, and recovers. */
  async crash(): Promise<void> {
    await this.#cluster.kill();
    await this.#cluster.start();
  }

  async stop(): Promise<void> {
    this.thaw();
    await this.#cluster.stop();
  }

  async startAgain(): Promise<void> {
    if (!this.#cluster.isRunning) await this.#cluster.start();
  }

  /** No process of it runs until `thaw`: it ends no connection and refuses none. Linux only. */
  freeze(): void {
    const data = join(dirname(this.target.host), 'postgres');
    this.#frozen = readdirSync('/proc')
      .map(Number)
      .filter((pid) => pid > 0 && worksIn(pid, data) === true);
    signalAll(this.#frozen, 'SIGSTOP');
  }

  thaw(): void {
    signalAll(this.#frozen, 'SIGCONT');
    this.#frozen = [];
  }

  /** A standby follows it; resolves when it has all that was committed until now. */
  async follow(): Promise<void> {
    this.#replica ??= await this.#cluster.createReplica();
    await this.#replica.caughtUp();
  }

  /** What is committed from now on does not reach the standby. */
  async cutStandbyOff(): Promise<void> {
    await this.#replica?.disconnect();
  }

  /** The server is lost; nothing serves until `failOver`. */
  async lose(): Promise<void> {
    await this.#cluster.kill();
  }

  /** The standby is what `target` names from now on, in place of a server that was lost. */
  async failOver(): Promise<void> {
    const [lost, next] = [this.#cluster, this.#replica];
    if (next === undefined) throw new Error('nobody follows');
    await next.promote();
    this.#cluster = next;
    this.#replica = undefined;
    await lost.remove();
  }

  /** The epoch that consistency tokens have now. */
  async epoch(): Promise<number> {
    const rows = await this.#cluster.query<{ epoch: string }>('select epoch::text from deployment');
    return Number(rows[0]?.epoch);
  }

  async remove(): Promise<void> {
    this.thaw();
    await this.#replica?.remove();
    await this.#cluster.remove();
  }
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
