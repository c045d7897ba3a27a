import type { ClientBase, Pool } from 'pg';
import { AppError } from '../shared/app-error.ts';
import { type Deployment, readDeployment, type SeenHistory } from './deployment.ts';
import { type StoreLog, silentLog } from './store-log.ts';
import type { StoreReason } from './store-reason.ts';

/** How often the place of the server's log is noted. */
const NOTE_MS = 1_000;

/**
 * The history of the database that this process works on. Every new connection is checked before it is used: on another
 * history (a failover, a restore, an older copy of the files) a new epoch is opened first, and `onNewHistory` told.
 * A connection to a server that is still on a history before is refused.
 */
export class DeploymentWatch {
  readonly #log: StoreLog;
  #onNewHistory: () => void = () => undefined;
  #seen: SeenHistory | undefined;
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
    const { epoch } = await readDeployment(client, this.#log, this.#seen);
    const known = this.#seen?.epoch;
    if (known !== undefined && epoch < known) {
      this.#log('error', 'deployment_is_older', { epoch, known });
      throw new AppError<StoreReason>(
        'STORE_UNAVAILABLE',
        `the database answers from epoch ${epoch}, which ended: ${known} has begun. Fence the former primary; after a restore from before that epoch restart every instance`,
      );
    }
    if (epoch === known) return;
    this.#seen = { epoch, logBytes: 0n };
    if (known !== undefined) this.#onNewHistory();
  };

  /** Notes now and then how far the server's log is on disk, by which an older copy is recognized. Until `stop`. */
  start(pool: Pool): void {
    let isAsking = false;
    this.#timer = setInterval(() => {
      if (isAsking) return;
      isAsking = true;
      this.note(pool)
        .catch(() => undefined) // There is no server to note anything of.
        .finally(() => {
          isAsking = false;
        });
    }, NOTE_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Notes it once. Only what is on disk counts: after a crash the server goes on behind that. */
  async note(pool: Pool): Promise<void> {
    const { rows } = await pool.query<{ epoch: string; log_bytes: string }>(
      `select epoch::text as epoch, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text as log_bytes
       from public.deployment`,
    );
    const seen = this.#seen;
    const row = rows[0];
    if (seen === undefined || row === undefined || Number(row.epoch) !== seen.epoch) return;
    const logBytes = BigInt(row.log_bytes);
    if (logBytes > seen.logBytes) this.#seen = { ...seen, logBytes };
  }
}
