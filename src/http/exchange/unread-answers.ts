/** An answer that waits for its caller to read it, and can be dropped. */
export interface UnreadAnswer {
  /** Bytes that the answer holds. */
  readonly unreadBytes: number;
  /** The caller, where known: the oldest answer of the caller that holds most is dropped first. */
  readonly owner?: object | undefined;
  /** Changes whenever the client has taken some of the answer. */
  readonly progress: number;
  /** Drops the answer with its stream. */
  drop(): void;
}

export type UnreadAnswersOptions = {
  /** Limit on the bytes of all answers together. */
  readonly bytesMax: number;
  /** Time in ms without progress after which an answer is dropped; it may take half as long again. */
  readonly stallMs: number;
  /** Callback for each that is dropped. */
  readonly onDropped?: ((bytes: number, isStalled: boolean) => void) | undefined;
};

/** Bytes of answers that wait for their readers, across all connections of a process. */
export const UNREAD_BYTES_MAX = 64 * 1_048_576;

type Held = {
  readonly bytes: number;
  readonly owner: object;
  progress: number;
  idleSweeps: number;
};
type Share = { bytes: number; readonly answers: Set<UnreadAnswer> };

const NOBODY = {};
const SWEEPS_PER_STALL = 2;

/**
 * Answers that wait for their callers to read them. Together they hold at most `bytesMax`. Beyond it, the oldest answers of
 * the caller that holds most are dropped, but never the newest answer. A caller that reads is done within milliseconds, so
 * its answers are never among them. An answer without progress is dropped after `stallMs`. O(callers) beyond the bound, else
 * O(1).
 */
export class UnreadAnswers {
  readonly #options: UnreadAnswersOptions;
  readonly #answers = new Map<UnreadAnswer, Held>();
  readonly #shares = new Map<object, Share>();
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: UnreadAnswersOptions) {
    this.#options = options;
  }

  /** Bytes held now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Tracks an answer until it is removed or dropped; does nothing for one that is tracked. */
  add(answer: UnreadAnswer): void {
    if (this.#answers.has(answer)) return;
    const { unreadBytes: bytes, owner = NOBODY, progress } = answer;
    this.#answers.set(answer, { bytes, owner, progress, idleSweeps: 0 });
    let share = this.#shares.get(owner);
    if (share === undefined) this.#shares.set(owner, (share = { bytes: 0, answers: new Set() }));
    share.bytes += bytes;
    share.answers.add(answer);
    this.#bytes += bytes;
    while (this.#bytes > this.#options.bytesMax) {
      const oldest = this.#oldestOfLargest(answer);
      if (oldest === null) break;
      this.#drop(oldest, false);
    }
    this.#watch();
  }

  /** Stops tracking an answer. Idempotent: does nothing for one that was removed or dropped. */
  remove(answer: UnreadAnswer): void {
    const held = this.#answers.get(answer);
    if (held === undefined) return;
    this.#answers.delete(answer);
    this.#bytes -= held.bytes;
    const share = this.#shares.get(held.owner);
    if (share === undefined) return;
    share.bytes -= held.bytes;
    share.answers.delete(answer);
    if (share.answers.size === 0) this.#shares.delete(held.owner);
  }

  /** The oldest answer of the caller that holds most; null where there is none besides `newest`. */
  #oldestOfLargest(newest: UnreadAnswer): UnreadAnswer | null {
    let largest: UnreadAnswer | null = null;
    let most = -1;
    for (const { bytes, answers } of this.#shares.values()) {
      const [oldest] = answers;
      if (oldest === undefined || oldest === newest || bytes <= most) continue;
      largest = oldest;
      most = bytes;
    }
    return largest;
  }

  #drop(answer: UnreadAnswer, isStalled: boolean): void {
    const bytes = this.#answers.get(answer)?.bytes ?? 0;
    this.remove(answer);
    this.#options.onDropped?.(bytes, isStalled);
    answer.drop();
  }

  #watch(): void {
    if (this.#timer !== null || this.#answers.size === 0) return;
    this.#timer = setTimeout(() => this.#sweep(), this.#options.stallMs / SWEEPS_PER_STALL);
    this.#timer.unref();
  }

  #sweep(): void {
    this.#timer = null;
    for (const [answer, held] of this.#answers) {
      const { progress } = answer;
      if (progress !== held.progress) {
        held.progress = progress;
        held.idleSweeps = 0;
      } else held.idleSweeps += 1;
      // The first sweep came at any time within its interval.
      if (held.idleSweeps > SWEEPS_PER_STALL) this.#drop(answer, true);
    }
    this.#watch();
  }
}
