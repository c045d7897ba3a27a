import type { AnswerBatch } from '../../protocol/messages.ts';
import { errorFromData } from '../../shared/app-error.ts';

/** Waits for a worker to have done what a control message asks for. */
export class Acknowledgements {
  readonly #waiters = new Map<number, PromiseWithResolvers<void>>();
  #lastId = 0;

  /** The id for the next message, and what settles with its acknowledgement. */
  next(): { readonly ackId: number; readonly done: Promise<void> } {
    this.#lastId += 1;
    const waiter = Promise.withResolvers<void>();
    this.#waiters.set(this.#lastId, waiter);
    return { ackId: this.#lastId, done: waiter.promise };
  }

  /** Settles those that came with a batch. */
  arrived(acks: AnswerBatch['acks']): void {
    for (const ack of acks) {
      const waiter = this.#waiters.get(ack.ackId);
      this.#waiters.delete(ack.ackId);
      if (ack.error === undefined) waiter?.resolve();
      else waiter?.reject(errorFromData(ack.error));
    }
  }

  /** The worker has gone. The next one starts without any index or model, and asks for the versions that requests name. */
  settleAll(): void {
    for (const waiter of this.#waiters.values()) waiter.resolve();
    this.#waiters.clear();
  }
}
