import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { AppError } from '../../shared/app-error.ts';
import { type LoopReport, reportedRun } from '../../shared/loop-report.ts';
import type { SharedReason } from '../../shared/reasons.ts';
import { type StoreLog, silentLog } from '../postgres/store-log.ts';
import { type Deployment, endEpoch, readDeployment, type SeenCommit } from './deployment.ts';

/** How often the position of the server's log is noted. */
const NOTE_MS = 1_000;
/** Shards whose last commit since then is remembered; of more the oldest are forgotten. */
const COMMITS_MAX = 10_000;

/**
 * The history of the database that this process works on. Every new connection is checked before it
 * is used: on another history (a failover, a restore, an older copy of the files) a new epoch is
 * opened first, and `onNewHistory` called. A connection to a server that is still on a history
 * before is refused.
 */
export class DeploymentWatch {
  readonly #log: StoreLog;
  #onNewHistory: () => void = () => undefined;
  #seen: { readonly epoch: number; readonly logBytes: bigint } | undefined;
  /** By shard: committed after the log was noted. */
  readonly #commits = new Map<string, SeenCommit>();
  #timer: NodeJS.Timeout | undefined;

  /** `deployment`: as it was read at the start; without it, whatever is met first. */
  constructor(log: StoreLog = silentLog, deployment?: Deployment) {
    this.#log = log;
    if (deployment !== undefined) this.#seen = { epoch: deployment.epoch, logBytes: 0n };
  }

  /** The epoch of the history, as far as this process knows; 0 before the first connection. */
  get epoch(): number {
    return this.#seen?.epoch ?? 0;
  }

  /** From now on `onNewHistory` is called for each new epoch, whoever opened it: forget what is of the one before. */
  watch(onNewHistory: () => void): void {
    this.#onNewHistory = onNewHistory;
  }

  /**
   * Checks a new connection. Errors: STORE_UNAVAILABLE where the server is of a history that is over; those of `query`,
   * also on a standby. The connection must then be given up. Cost: two short queries.
   */
  readonly check = async (client: ClientBase): Promise<void> => {
    const seen = this.#seen && { ...this.#seen, commits: [...this.#commits.values()] };
    const { epoch } = await readDeployment(client, this.#log, seen);
    const known = this.#seen?.epoch;
    if (known !== undefined && epoch < known) {
      this.#log('error', 'deployment_is_older', { epoch, known });
      throw new AppError<SharedReason>(
        'STORE_UNAVAILABLE',
        `the database answers from epoch ${epoch}, which ended: ${known} has begun. Fence the former primary; after a restore from before that epoch restart every instance`,
      );
    }
    this.#enter(epoch);
  };

  /** These are acknowledged: a server that lacks one of them has lost history. */
  committed(commits: readonly (SeenCommit & { readonly epoch: number })[]): void {
    for (const { projectId, tenantId, epoch, revision, forkId } of commits) {
      // The commit belongs to a history that is over.
      if (epoch < this.epoch) continue;
      const key = keyOf({ projectId, tenantId });
      this.#commits.delete(key);
      this.#commits.set(key, { projectId, tenantId, revision, forkId });
    }
    for (const key of this.#commits.keys()) {
      if (this.#commits.size <= COMMITS_MAX) break;
      this.#commits.delete(key);
    }
  }

  /** Something that was committed in the present epoch is not there: it is over. Errors: those of `query`. */
  async lost(pool: Pool): Promise<void> {
    const { epoch } = this;
    const client = await pool.connect();
    try {
      await endEpoch(client, epoch, this.#log);
      // Also where another instance was faster.
      await this.check(client);
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  #enter(epoch: number): void {
    const known = this.#seen?.epoch;
    if (known !== undefined && epoch <= known) return;
    this.#seen = { epoch, logBytes: 0n };
    this.#commits.clear();
    if (known !== undefined) this.#onNewHistory();
  }

  /**
   * Notes now and then how far the server's log is on disk, by which an older copy is recognized.
   * `report` gets the result of each run. Until `stop`.
   */
  start(pool: Pool, report: LoopReport): void {
    let isAsking = false;
    this.#timer = setInterval(() => {
      if (isAsking) return;
      isAsking = true;
      void reportedRun(report, () => this.recordPosition(pool)).finally(() => {
        isAsking = false;
      });
    }, NOTE_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Notes it once. Only what is on disk counts: after a crash the server continues behind that. */
  async recordPosition(pool: Pool): Promise<void> {
    const before = [...this.#commits];
    const { rows } = await pool.query<{ epoch: string; log_bytes: string }>(
      `select epoch::text as epoch, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text as log_bytes
       from public.deployment`,
    );
    const seen = this.#seen;
    const row = rows[0];
    if (seen === undefined || row === undefined || Number(row.epoch) !== seen.epoch) return;
    const logBytes = BigInt(row.log_bytes);
    if (logBytes > seen.logBytes) this.#seen = { ...seen, logBytes };
    // The log that was noted holds them.
    for (const [key, commit] of before) {
      if (this.#commits.get(key) === commit) this.#commits.delete(key);
    }
  }
}

function keyOf({ projectId, tenantId }: ShardKey): string {
  return `${projectId}\0${tenantId}`;
}
