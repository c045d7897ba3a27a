import type { Clock } from '../../shared/time/clock.ts';
import type { DisabledEndpoint, Settlement } from '../model/delivery.ts';
import type { NotificationStore } from '../model/notification-store.ts';

export type SettlementWriterOptions = {
  readonly store: Pick<NotificationStore, 'settle'>;
  readonly clock: Clock;
  /** An endpoint that has failed for so long is disabled; null: none is. */
  readonly failingMsMax: number | null;
  readonly onDisabled: (endpoint: DisabledEndpoint) => void;
};

type WaitingSettlement = {
  readonly settlement: Settlement;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
};

/** Settlements recorded with one statement. */
const BATCH_MAX = 256;

/**
 * Records how attempts ended, in groups: whatever ends while a group is on its way makes up the next one, so that many
 * attempts that end together cost one commit, and one connection.
 */
export class SettlementWriter {
  readonly #options: SettlementWriterOptions;
  readonly #queue: WaitingSettlement[] = [];
  #isRunning = false;

  constructor(options: SettlementWriterOptions) {
    this.#options = options;
  }

  /** Errors: those of the store, for everyone in the group. */
  write(settlement: Settlement): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#queue.push({ settlement, resolve, reject });
    if (!this.#isRunning) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    // Attempts that ended with the same turn of the loop share the first group.
    await new Promise((resolve) => setImmediate(resolve));
    const { store, clock, failingMsMax, onDisabled } = this.#options;
    while (this.#queue.length > 0) {
      const group = this.#queue.splice(0, BATCH_MAX);
      try {
        const batch = group.map(({ settlement }) => settlement);
        const disabled = await store.settle(batch, clock.nowMs(), failingMsMax);
        for (const { resolve } of group) resolve();
        for (const endpoint of disabled) onDisabled(endpoint);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#isRunning = false;
  }
}
