import { AppError } from '../../shared/app-error.ts';
import type { NotificationStore, PutResult } from '../model/notification-store.ts';
import type { NewNotification } from '../model/notification.ts';
import { RoundRobinQueue } from './round-robin-queue.ts';

/**
 * Whether somebody who has `own` of a resource may take one more of it, when all together have `used` of `max`: as long as that
 * is less than `factor` times what is free. One alone gets factor / (1 + factor) of all; of n who take whatever they can get each
 * has the same, and max / (1 + n * factor) stays free for who comes next (dynamic thresholds: A. K. Choudhury, E. L. Hahne,
 * IEEE/ACM Transactions on Networking 6(2), 1998).
 */
export function hasFairCapacity(own: number, used: number, max: number, factor: number): boolean {
  return own < factor * (max - used);
}

export type WriterOptions = {
  readonly store: Pick<NotificationStore, 'put'>;
  /** Requests that may wait. */
  readonly queueMax: number;
  /** Called for each newly stored notification, in the order of commits, before its caller is answered. */
  readonly onStored: (result: PutResult) => void;
};

type WaitingWrite = {
  readonly request: NewNotification;
  readonly resolve: (result: PutResult) => void;
  readonly reject: (error: unknown) => void;
};

/** Notifications stored with one statement. */
const BATCH_MAX = 256;
/** One tenant alone may have nine tenths of the queue. */
const TENANT_FACTOR = 9;

/**
 * Stores notifications in groups: whatever arrives while a group is on its way makes up the next one, so
 * that a commit is shared by as many callers as wait for it. One group at a time: what is emitted is
 * emitted in commit order. Tenants have their turns in each group, and none can fill the queue for the others.
 */
export class NotificationWriter {
  readonly #options: WriterOptions;
  readonly #queue = new RoundRobinQueue<WaitingWrite>();
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  get depth(): number {
    return this.#queue.size;
  }

  /** Errors: QUEUE_FULL (`metadata.limit` says whose, `instance` or `tenant`), SHUTTING_DOWN, and those of the store. */
  write(request: NewNotification): Promise<PutResult> {
    if (this.#isClosed) return Promise.reject(new AppError('SHUTTING_DOWN', 'shutting down'));
    const { queueMax } = this.#options;
    const { tenantId } = request;
    if (this.#queue.size >= queueMax) {
      const problem = `${queueMax} notifications wait for the store`;
      return Promise.reject(new AppError('QUEUE_FULL', problem, { limit: 'instance' }));
    }
    const own = this.#queue.sizeOf(tenantId);
    if (!hasFairCapacity(own, this.#queue.size, queueMax, TENANT_FACTOR)) {
      const problem = `${own} notifications of the tenant wait for the store, which is its share`;
      return Promise.reject(new AppError('QUEUE_FULL', problem, { limit: 'tenant' }));
    }
    const { promise, resolve, reject } = Promise.withResolvers<PutResult>();
    this.#queue.add(tenantId, { request, resolve, reject });
    this.#running ??= this.#run();
    return promise;
  }

  /** Takes nothing more; resolves when all that waited is stored or refused. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    // Calls that arrived with the same turn of the loop share the first group.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#queue.size > 0) {
      const group = this.#queue.take(BATCH_MAX);
      try {
        const results = await this.#options.store.put(group.map(({ request }) => request));
        results.forEach((result, index) => this.#stored(group[index] as WaitingWrite, result));
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#running = undefined;
  }

  #stored({ resolve }: WaitingWrite, result: PutResult): void {
    if (!result.isDuplicate) this.#options.onStored(result);
    resolve(result);
  }
}
