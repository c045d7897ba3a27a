import type { AnswerBatch, RequestBatch } from '../../protocol/messages.ts';
import {
  type LocalReplicaAnswer,
  type LocalReplicaCheck,
  LocalReplica,
  type LocalReplicaOptions,
} from '../host/local-replica.ts';
import type { SlotEvents, SlotTransport } from '../slot/slot-transport.ts';

export type LocalReplicaTransportOptions = Omit<LocalReplicaOptions, 'post' | 'onFailed'>;

/**
 * One life of the replicas on this thread, as its slot sees it. It gets the control messages that workers get, and is
 * asked by a call instead of a message. An error in it ends this life and nothing else.
 */
export class LocalReplicaTransport implements SlotTransport {
  readonly #options: LocalReplicaTransportOptions;
  #localReplicas: LocalReplica | null = null;
  #events: SlotEvents | null = null;

  constructor(options: LocalReplicaTransportOptions) {
    this.#options = options;
  }

  /** The replicas, for tests. */
  get localReplicas(): LocalReplica | null {
    return this.#localReplicas;
  }

  async start(events: SlotEvents): Promise<void> {
    await Promise.resolve();
    this.#events = events;
    this.#localReplicas = new LocalReplica({
      ...this.#options,
      post: (answers) => {
        if (this.#localReplicas !== null) events.onAnswers(answers);
      },
      onFailed: (error) => this.#fail(error),
    });
  }

  space(): null {
    return null;
  }

  /** Handled when it returns. */
  send(batch: RequestBatch): Promise<AnswerBatch> {
    return new Promise((resolve) => {
      if (this.#localReplicas === null) throw new Error('the replicas have been stopped');
      resolve(this.#localReplicas.handle(batch));
    });
  }

  /** Answers a Check in this call, or leaves it to a worker. Never throws. Hot. */
  check(check: LocalReplicaCheck): LocalReplicaAnswer {
    try {
      return this.#localReplicas === null ? 'left' : this.#localReplicas.check(check);
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
    this.#localReplicas?.stop();
    this.#localReplicas = null;
    return Promise.resolve();
  }

  #fail(error: unknown): void {
    if (this.#localReplicas === null) return;
    this.#localReplicas.stop();
    this.#localReplicas = null;
    // Not within a call of the host, or of whoever asks it.
    setImmediate(() => this.#events?.onLost(error));
  }
}
