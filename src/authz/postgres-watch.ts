import type { Readiness } from '../gateway/readiness.ts';
import type { InstanceMembership } from '../store/membership/membership.ts';
import type { WorkerPool } from '../workers/pool/worker-pool.ts';
import type { Database } from './database/database.ts';
import type { Services } from './services.ts';

/** Follows the membership: readiness, and the caches that must be cleared or read again. */
export class PostgresWatch {
  readonly #readiness: Readiness;
  #membership: InstanceMembership | undefined;
  #index: Services['index'] | undefined;
  #refusals: Database['refusals'] | undefined;
  #wasConnected = true;

  constructor(readiness: Readiness) {
    this.#readiness = readiness;
  }

  /** From now on changes reach the services and the workers. */
  watch(
    { membership, history, refusals }: Pick<Database, 'membership' | 'history' | 'refusals'>,
    services: Services,
    workers: WorkerPool,
  ): void {
    this.#membership = membership;
    this.#refusals = refusals;
    this.#index = services.index;
    history.watch(() => {
      // The registration was one of the history before: from memory alone nothing is answered any more.
      membership.refused(membership.lease.instanceId ?? null);
      services.headRevisions.forgetAll();
      services.settingsSource.forgetAll();
      services.namedVersions.forgetAll();
      workers.hint(null, 0);
    });
    membership.watch({
      onBecomingAlone: () => {
        // Others have written until now. Commits of ours that are under way may be seen before we know.
        services.writer.hideOpenCommits();
        services.headRevisions.forgetAll();
        services.settingsSource.forgetAll();
        services.namedVersions.forgetAll();
      },
      onChange: () => {
        // Notifications of the time in between are lost.
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
    // If the server hangs, writes and reads of data outside memory wait in vain. Beside other instances, a
    // read without a token needs the read index.
    const canRead = membership.lease.isAlone() || this.#index?.isAway !== true;
    const isThere = membership.isConnected && !membership.isSilent && canRead;
    const refusal = this.#refusals?.current;
    if (isThere) this.#readiness.setPostgres(refusal === undefined ? 'up' : 'degraded', refusal);
    else this.#readiness.setPostgres(this.#decides(membership) ? 'degraded' : 'down', refusal);
  }

  /**
   * Whether decisions are made while the registration cannot be renewed: from memory alone, or by the read index, which has
   * connections of its own. (Others may hold all that the server grants.)
   */
  #decides(membership: InstanceMembership): boolean {
    if (membership.isSilent) return false;
    return membership.lease.isAlone() || this.#index?.isServing === true;
  }
}
