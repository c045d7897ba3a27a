/** An answer that its caller does not read can be given up. */
export interface UnreadAnswer {
  /** Bytes that it holds. */
  readonly unreadBytes: number;
  /** Drops the answer with its stream. */
  drop(): void;
}

/**
 * Answers that wait for callers to read them, whose windows are exhausted. Together they hold at most `bytesMax`: beyond it the
 * oldest ones are dropped, since who reads is done within milliseconds and is never among them. O(1).
 */
export class UnreadAnswers {
  readonly #bytesMax: number;
  readonly #answers = new Set<UnreadAnswer>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  add(answer: UnreadAnswer): void {
    this.#answers.add(answer);
    this.#bytes += answer.unreadBytes;
    for (const oldest of this.#answers) {
      if (this.#bytes <= this.#bytesMax || oldest === answer) break;
      this.remove(oldest);
      oldest.drop();
    }
  }

  /** Idempotent: does nothing for one that was removed or dropped. */
  remove(answer: UnreadAnswer): void {
    if (this.#answers.delete(answer)) this.#bytes -= answer.unreadBytes;
  }
}
