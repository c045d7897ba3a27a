import type { Readiness } from '../gateway/readiness.ts';
import type { Membership } from '../store/membership.ts';
import type { WorkerPool } from '../workers/slot/worker-pool.ts';
import type { Database } from './database.ts';
import type { Services } from './services.ts';

/** Follows the membership: readiness, and what must be forgotten or looked at again. */
export class PostgresWatch {
  readonly #readiness: Readiness;
  #membership: Membership | undefined;
  #index: Services['index'] | undefined;
  #wasConnected = true;

  constructor(readiness: Readiness) {
    this.#readiness = readiness;
  }

  /** From now on changes reach the services and the workers. */
  watch(
    { membership, history }: Pick<Database, 'membership' | 'history'>,
    services: Services,
    workers: WorkerPool,
  ): void {
    this.#membership = membership;
    this.#index = services.index;
    history.watch(() => {
      // The registration was one of the history before: from memory alone nothing is answered any more.
      membership.refused(membership.instanceId ?? null);
      services.heads.forgetAll();
      services.projects.forgetAll();
      workers.hint(null, 0);
    });
    membership.watch({
      onBecomingAlone: () => {
        // Others have written until now. Commits of ours that are under way may be seen before we know.
        services.writer.hideOpenCommits();
        services.heads.forgetAll();
        services.projects.forgetAll();
      },
      onChange: () => {
        // What was notified in between is lost.
        if (membership.isConnected && !this.#wasConnected) workers.hint(null, 0);
        this.#wasConnected = membership.isConnected;
        this.update();
      },
    });
    this.update();
  }

  /** Puts the present state into the readiness; also called by a timer, since leases end silently. */
  update(): void {
    const membership = this.#membership;
    if (membership === undefined) return;
    // Where the server hangs, what is not in memory waits for it in vain, and writes do.
    // Beside others a read without a token is answered only where the read index is.
    const canRead = membership.isAlone() || this.#index?.isAway !== true;
    const isThere = membership.isConnected && !membership.isSilent && canRead;
    if (isThere) this.#readiness.setPostgres('up');
    else this.#readiness.setPostgres(this.#decides(membership) ? 'degraded' : 'down');
  }

  /** Whether loaded shards still decide while the server is away. */
  #decides(membership: Membership): boolean {
    return membership.isAlone() && !membership.isSilent;
  }
}
