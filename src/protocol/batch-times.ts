/** Batches whose times are kept at once: more than a worker ever has. */
const OPEN_MAX = 4;
const SENT = 0;
const HANDLED = SENT + OPEN_MAX;
const HOP_OUT_MS = HANDLED + OPEN_MAX;
const BATCHES = HOP_OUT_MS + 1;
const EVALUATION_MS = BATCHES + 1;
const CALLS = EVALUATION_MS + 1;
const HOP_BACK_MS = CALLS + 1;
const RETURNED = HOP_BACK_MS + 1;
const FIELDS = RETURNED + 1;

/** Memory in which the gateway's thread and one worker note when batches were sent, handled and answered. */
export function createBatchTimesMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(FIELDS * Float64Array.BYTES_PER_ELEMENT);
}

/**
 * Times of batches on the way between two threads and with the worker. Each slot has one writer, and the slot of a
 * batch is written before the message that carries it is sent; any thread may read the sums at any time.
 */
export class BatchTimes {
  readonly #fields: Float64Array;

  constructor(memory: SharedArrayBuffer) {
    this.#fields = new Float64Array(memory);
  }

  /** The gateway's thread is about to send batch `batch`. */
  sending(batch: number): void {
    this.#fields[SENT + (batch % OPEN_MAX)] = monotonicMs();
  }

  /** The worker has handled a batch of `calls`, which it got at `receivedMs` of `monotonicMs`. */
  handled(batch: number, receivedMs: number, calls: number): void {
    const nowMs = monotonicMs();
    this.#add(HOP_OUT_MS, receivedMs - (this.#fields[SENT + (batch % OPEN_MAX)] as number));
    this.#add(BATCHES, 1);
    this.#add(EVALUATION_MS, nowMs - receivedMs);
    this.#add(CALLS, calls);
    this.#fields[HANDLED + (batch % OPEN_MAX)] = nowMs;
  }

  /** The gateway's thread has its answers. */
  returned(batch: number): void {
    const handledMs = this.#fields[HANDLED + (batch % OPEN_MAX)] as number;
    this.#add(HOP_BACK_MS, monotonicMs() - handledMs);
    this.#add(RETURNED, 1);
  }

  /** The sums since the start of the process. */
  get sums(): Readonly<
    Record<'hop_out' | 'evaluation' | 'hop_back', { readonly ms: number; readonly count: number }>
  > {
    const sum = (ms: number, count: number) => ({
      ms: this.#fields[ms] as number,
      count: this.#fields[count] as number,
    });
    return {
      hop_out: sum(HOP_OUT_MS, BATCHES),
      evaluation: sum(EVALUATION_MS, CALLS),
      hop_back: sum(HOP_BACK_MS, RETURNED),
    };
  }

  #add(field: number, amount: number): void {
    this.#fields[field] = (this.#fields[field] as number) + amount;
  }
}

/** Milliseconds of a clock that all threads share, which `performance.now` is not. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
