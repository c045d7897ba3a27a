/**
 * Stages of one call on the gateway's thread, in this order; `docs/performance.md` describes each.
 */
export const CALL_STAGES = ['socket', 'headers', 'body', 'scan', 'write'] as const;
export type CallStage = (typeof CALL_STAGES)[number];

/**
 * Stages of a batch of calls to a worker, and of a Check that the gateway's thread answers by
 * itself.
 */
export const BATCH_STAGES = ['waiting', 'packing', 'answering', 'instant'] as const;
export type BatchStage = (typeof BATCH_STAGES)[number];

/** Protocols that carry calls. */
export const CARRIERS = ['http1', 'http2'] as const;
export type Carrier = (typeof CARRIERS)[number];

/** Time spent in one stage, and the number of times. */
export class StageSum {
  ms = 0;
  count = 0;

  add(ms: number, count = 1): void {
    this.ms += ms;
    this.count += count;
  }
}

/**
 * State of one turn of the loop that all carriers share: the time at which our code last returned,
 * and the time of nested stages.
 */
class Turn {
  /**
   * Time of `performance.now()`; 0 if our code returned in an earlier turn, since when the thread
   * may have slept.
   */
  leftMs = 0;
  /** Time of writes and immediate answers, which happen within other stages. */
  withinMs = 0;
  #isEndAwaited = false;

  left(nowMs: number): void {
    this.leftMs = nowMs;
    if (this.#isEndAwaited) return;
    this.#isEndAwaited = true;
    setImmediate(() => {
      this.#isEndAwaited = false;
      this.leftMs = 0;
    });
  }
}

/**
 * The stages of calls of one carrier. Each method is called from one point of the hot path, and
 * costs a read of the clock.
 */
export class CallStages {
  readonly sums: Readonly<Record<CallStage, StageSum>> = {
    socket: new StageSum(),
    headers: new StageSum(),
    body: new StageSum(),
    scan: new StageSum(),
    write: new StageSum(),
  };
  readonly #turn: Turn;
  #sinceMs = 0;
  #withinMs = 0;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  /**
   * Begins a request. The time since our code last returned in this turn went into receiving it.
   */
  arrived(): void {
    this.#sinceMs = this.#entered(this.sums.socket);
  }

  /** Ends the headers of a request. */
  headersRead(): void {
    this.#leave(this.sums.headers);
  }

  /** Begins the handling of the whole body. */
  bodyArrived(): void {
    this.#sinceMs = this.#entered(this.sums.body);
    this.#withinMs = this.#turn.withinMs;
  }

  /**
   * Ends the scan. The call is now in the queue of its worker, was answered at once, or took
   * another way.
   */
  scanned(): void {
    // Nested stages have their own sums.
    this.#sinceMs += this.#turn.withinMs - this.#withinMs;
    this.#leave(this.sums.scan);
  }

  /** Counts an answer that was begun at `sinceMs`, of `performance.now()`. */
  written(sinceMs: number): void {
    const ms = performance.now() - sinceMs;
    this.sums.write.add(ms);
    this.#turn.withinMs += ms;
  }

  #entered(stage: StageSum): number {
    const nowMs = performance.now();
    const { leftMs } = this.#turn;
    if (leftMs !== 0) stage.add(nowMs - leftMs);
    return nowMs;
  }

  #leave(stage: StageSum): void {
    const nowMs = performance.now();
    stage.add(nowMs - this.#sinceMs);
    this.#turn.left(nowMs);
  }
}

/** The stages of batches on the gateway's thread. */
export class BatchStages {
  readonly sums: Readonly<Record<BatchStage, StageSum>> = {
    waiting: new StageSum(),
    packing: new StageSum(),
    answering: new StageSum(),
    instant: new StageSum(),
  };
  readonly #turn: Turn;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  /**
   * Counts a sent batch of `calls`. It waited since `firstMs` (0: not at all) and was packed from
   * `sinceMs` until now.
   */
  sent(firstMs: number, sinceMs: number, calls: number): void {
    this.sums.waiting.add(firstMs === 0 ? 0 : sinceMs - firstMs);
    this.sums.packing.add(performance.now() - sinceMs, calls);
  }

  /**
   * Counts the time since `sinceMs`, of `performance.now()`. It went into an answer to a Check on
   * this thread, or into finding that a worker must answer.
   */
  tried(sinceMs: number): void {
    const ms = performance.now() - sinceMs;
    this.sums.instant.add(ms);
    this.#turn.withinMs += ms;
  }

  /** Start of the time of `answered`. */
  mark(): number {
    return performance.now() - this.#turn.withinMs;
  }

  /** Counts the answers to `calls`, less the writing of them, from `mark` until now. */
  answered(mark: number, calls: number): void {
    this.sums.answering.add(this.mark() - mark, calls);
  }
}

/**
 * Times of decision calls on the gateway's thread, added up by stage. An instance exists only if
 * the stages are measured: otherwise nothing is read and nothing is counted.
 */
export class StageTimes {
  readonly calls: Readonly<Record<Carrier, CallStages>>;
  readonly batches: BatchStages;

  constructor() {
    const turn = new Turn();
    this.calls = { http1: new CallStages(turn), http2: new CallStages(turn) };
    this.batches = new BatchStages(turn);
  }
}
