/** An answer that its caller does not read can be given up. */
export interface UnreadAnswer {
  /** Bytes that it holds. */
  readonly unreadBytes: number;
  /** Who asked, where that is known: of those who hold most the oldest answer goes first. */
  readonly owner?: object | undefined;
  /** Changes when some of it was taken. */
  readonly progress: number;
  /** Drops the answer with its stream. */
  drop(): void;
}

export type UnreadAnswersOptions = {
  /** Of all of them together. */
  readonly bytesMax: number;
  /** One of which nothing is taken for this long, and at most half of it longer, is dropped. */
  readonly stallMs: number;
  /** Callback for each that is dropped. */
  readonly onDropped?: ((bytes: number, isStalled: boolean) => void) | undefined;
};

/** Of answers that nobody reads, over all connections of a process. */
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
 * Answers that wait for callers to read them. Together they hold at most `bytesMax`: beyond it the oldest ones of the caller who holds
 * most are dropped, since who reads is done within milliseconds and is never among them. Who takes nothing is dropped after a time.
 * O(callers) beyond the bound, else O(1).
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

  /** Holds an answer from now on; once until it is removed. */
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

  /** Idempotent: does nothing for one that was removed or dropped. */
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

  /** Null where nobody has one besides `newest`. */
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
      // The first look came anywhere within its pause.
      if (held.idleSweeps > SWEEPS_PER_STALL) this.#drop(answer, true);
    }
    this.#watch();
  }
}
