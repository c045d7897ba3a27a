import type { AnswerBatch, RequestBatch } from '../../protocol/messages.ts';
import {
  type NearAnswer,
  type NearCheck,
  NearHost,
  type NearHostOptions,
} from '../shard/near-host.ts';
import type { SlotEvents, SlotTransport } from './slot-transport.ts';

export type NearTransportOptions = Omit<NearHostOptions, 'post' | 'onFailed'>;

/**
 * One life of the replicas on this thread, as its slot sees it: a worker that is told what others are told, and is asked
 * by a call instead of a message. Whatever goes wrong in it ends this life and nothing else.
 */
export class NearTransport implements SlotTransport {
  readonly #options: NearTransportOptions;
  #near: NearHost | null = null;
  #events: SlotEvents | null = null;

  constructor(options: NearTransportOptions) {
    this.#options = options;
  }

  /** For tests. */
  get near(): NearHost | null {
    return this.#near;
  }

  async start(events: SlotEvents): Promise<void> {
    await Promise.resolve();
    this.#events = events;
    this.#near = new NearHost({
      ...this.#options,
      post: (answers) => {
        if (this.#near !== null) events.onAnswers(answers);
      },
      onFailed: (error) => this.#fail(error),
    });
  }

  room(): null {
    return null;
  }

  /** Handled when it returns. */
  send(batch: RequestBatch): Promise<AnswerBatch> {
    return new Promise((resolve) => {
      if (this.#near === null) throw new Error('the replicas have been stopped');
      resolve(this.#near.handle(batch));
    });
  }

  /** Answers a Check in this call, or leaves it to a worker. Never throws. Hot. */
  check(check: NearCheck): NearAnswer {
    try {
      return this.#near === null ? 'left' : this.#near.check(check);
    } catch (error) {
      this.#fail(error);
      return 'left';
    }
  }

  /** No request is sent to it. */
  underEvaluation(): number {
    return 0;
  }

  utilization(): number {
    return 0;
  }

  stop(): Promise<void> {
    this.#near?.stop();
    this.#near = null;
    return Promise.resolve();
  }

  #fail(error: unknown): void {
    if (this.#near === null) return;
    this.#near.stop();
    this.#near = null;
    // Not within a call of the host, or of whoever asks it.
    setImmediate(() => this.#events?.onLost(error));
  }
}
