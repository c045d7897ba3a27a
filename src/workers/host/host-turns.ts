import type { AnswerBatch } from '../../protocol/messages.ts';
import { assert } from '../../shared/assert.ts';
import type { AnswerWriter } from '../jobs/answer-writer.ts';
import type { ShardTurns } from './shard-turns.ts';

export type HostTurnsOptions = {
  readonly turns: ShardTurns;
  readonly writer: AnswerWriter;
  readonly post: (answers: AnswerBatch) => void;
  /** Called with an error that must not occur; absent: it ends the thread. */
  readonly onFailed?: ((error: unknown) => void) | undefined;
};

/** When a worker's shards have their turns, and when what they answered is posted: messages and turns come one after the other. */
export class HostTurns {
  readonly #options: HostTurnsOptions;
  #isInTurn = false;
  #isScheduled = false;
  #isStopped = false;

  constructor(options: HostTurnsOptions) {
    this.#options = options;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** A message is being handled until `leave`. */
  enter(): void {
    assert(!this.#isInTurn, 'messages and turns come one after the other');
    this.#isInTurn = true;
  }

  leave(): void {
    this.#isInTurn = false;
  }

  /** Takes a turn soon, if there is work or an answer. */
  schedule(): void {
    if (this.#isScheduled || this.#isStopped) return;
    const { turns, writer } = this.#options;
    if (turns.isIdle && writer.isEmpty) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.guarded(() => this.#turn());
    });
  }

  /** Calls `schedule`, unless the turn or message under way does so at its end. */
  scheduleOutside(): void {
    if (!this.#isInTurn) this.schedule();
  }

  postAnswers(): void {
    const { writer, post } = this.#options;
    if (!writer.isEmpty && !this.#isStopped) post(writer.drain());
  }

  /** Runs work that no request waits for. */
  guarded(work: () => void): void {
    const { onFailed } = this.#options;
    if (onFailed === undefined) return work();
    try {
      work();
    } catch (error) {
      onFailed(error);
    }
  }

  /** Hands on an error that must not occur. */
  failed(error: unknown): void {
    this.guarded(() => {
      throw error;
    });
  }

  stop(): void {
    this.#isStopped = true;
  }

  #turn(): void {
    const { turns } = this.#options;
    this.#isInTurn = true;
    try {
      turns.runShort();
      // Finished answers do not wait for the slice of others.
      this.postAnswers();
      turns.runLong();
    } finally {
      this.#isInTurn = false;
    }
    this.postAnswers();
    this.schedule();
  }
}
