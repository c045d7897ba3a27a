import type { UserQuestion } from '../../protocol/questions.ts';

/** A question that was asked, and where. */
export type RecordedQuestion = UserQuestion & {
  readonly projectId: string;
  readonly tenantId: string;
};

export type QuestionRecorderOptions = {
  /** One question of so many is recorded, at random; 0 records none. */
  readonly every: number;
  /** What recorded questions take at most; the oldest go first. */
  readonly bytesMax: number;
  /** Where they are written as well, each as often as it is asked. */
  readonly file?: { add(question: RecordedQuestion): void; close(): Promise<void> } | undefined;
  /** From 0 to below 1; tests replace it. */
  readonly random?: (() => number) | undefined;
};

/** Counted for each question besides its texts, of which a UTF-16 unit is two bytes. */
const QUESTION_BYTES = 256;

/**
 * Questions that callers asked lately, of concrete users, to preview models with. In memory, and each once:
 * asked again, it is as new as the last time.
 */
export class QuestionRecorder {
  readonly #options: QuestionRecorderOptions;
  readonly #random: () => number;
  /** The oldest first. */
  readonly #questions = new Map<string, RecordedQuestion>();
  #bytes = 0;
  /** Questions until the next one that is recorded. */
  #left: number;

  constructor(options: QuestionRecorderOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#left = this.#gap();
  }

  get count(): number {
    return this.#questions.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the question at hand is one to record: for who must parse it first. Counts it if not. Hot. */
  isNext(): boolean {
    if (this.#left > 1) {
      this.#left -= 1;
      return false;
    }
    return this.#options.every > 0;
  }

  /** Records a question if it is its turn. `ask` is called then alone. */
  offer(ask: () => RecordedQuestion | undefined): void {
    if (!this.isNext()) return;
    this.#left = this.#gap();
    const question = ask();
    if (question === undefined) return;
    this.#add(question);
    this.#options.file?.add(question);
  }

  /** The newest `countMax` questions of a project. O(recorded). */
  newest(projectId: string, countMax: number): readonly RecordedQuestion[] {
    const found = [...this.#questions.values()].filter((one) => one.projectId === projectId);
    return countMax === 0 ? [] : found.slice(-countMax);
  }

  /** Ends the file, where there is one. */
  async close(): Promise<void> {
    await this.#options.file?.close();
  }

  #add(question: RecordedQuestion): void {
    const key = keyOf(question);
    const size = sizeOf(key);
    if (size > this.#options.bytesMax) return;
    if (this.#questions.delete(key)) this.#bytes -= size;
    this.#questions.set(key, question);
    this.#bytes += size;
    for (const oldest of this.#questions.keys()) {
      if (this.#bytes <= this.#options.bytesMax) break;
      this.#questions.delete(oldest);
      this.#bytes -= sizeOf(oldest);
    }
  }

  /** Uniform around its mean, so that questions that come in a rhythm are met alike. */
  #gap(): number {
    return 1 + Math.floor(this.#random() * (2 * this.#options.every - 1));
  }
}

/** No part can hold a NUL. */
function keyOf(question: RecordedQuestion): string {
  const { projectId, tenantId, namespace, objectId, relation, userId, contextJson } = question;
  const parts = [projectId, tenantId, namespace, objectId, relation, userId, contextJson];
  return parts.join('\u0000');
}

/** The texts stand in the key, and once more by themselves. */
function sizeOf(key: string): number {
  return QUESTION_BYTES + key.length * 4;
}
