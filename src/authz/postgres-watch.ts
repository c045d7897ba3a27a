import type { Readiness } from '../gateway/readiness.ts';
import type { InstanceLock } from '../store/instance-lock.ts';
import type { WorkerPool } from '../workers/slot/worker-pool.ts';
import type { Services } from './services.ts';

/** Follows the instance lock: readiness, and what must be forgotten after it was away. */
export class PostgresWatch {
  readonly #readiness: Readiness;
  readonly #onFatal: (event: string, cause: unknown) => void;
  #isLost = false;
  #parts: { instance: InstanceLock; services: Services; workers: WorkerPool } | undefined;

  constructor(readiness: Readiness, onFatal: (event: string, cause: unknown) => void) {
    this.#readiness = readiness;
    this.#onFatal = onFatal;
  }

  /** From now on changes reach the services and the workers. */
  watch(instance: InstanceLock, services: Services, workers: WorkerPool): void {
    this.#parts = { instance, services, workers };
    this.update();
  }

  /** What `acquireInstanceLock` reports. */
  changed(state: 'lost' | 'held' | 'taken'): void {
    if (state === 'taken') {
      this.#onFatal('instance_lock_taken', new Error('another instance serves this database'));
      return;
    }
    this.#isLost = state === 'lost';
    if (state === 'held') {
      // Another instance may have written in between: neither heads nor watermarks are enough.
      this.#parts?.services.heads.forgetAll();
      this.#parts?.workers.hint(null, 0);
    }
    this.update();
  }

  /** Puts the present state into the readiness; also called by a timer, since leases end silently. */
  update(): void {
    const instance = this.#parts?.instance;
    const isAlone = instance?.isAlone() === true;
    const isSilent = instance?.isSilent === true;
    // Where the server hangs, what is not in memory waits for it in vain, and writes do.
    if (this.#isLost) {
      this.#readiness.setPostgres(isAlone && !isSilent ? 'degraded' : 'down');
    } else {
      // Each decision asks the server once the lease is over, which has not answered for as long.
      this.#readiness.setPostgres(isAlone || instance === undefined ? 'up' : 'down');
    }
  }
}
