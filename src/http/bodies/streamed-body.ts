import type { AppError } from '../../shared/app-error.ts';
import type { BodyBudget, BodyHold, HeldBody } from './body-budget.ts';
import { PieceGatherer } from './piece-gatherer.ts';
import type { UnitEnds } from './unit-ends.ts';

/** Bytes of whole units held for a reader that is slower than its client, before the client is paused. */
const AHEAD_BYTES = 65_536;

export type StreamedBodyOptions = {
  readonly ends: UnitEnds;
  readonly budget: BodyBudget;
  /** Name of the caller that the body counts against at the moment. */
  readonly owner: () => string;
  /** Aborted, with its reason, when the client has gone. */
  readonly signal: AbortSignal;
  /** Pauses the client, and resumes it. */
  readonly pause: () => void;
  readonly resume: () => void;
};

/**
 * A request body that is read as it arrives, by one reader. It yields whole units only, as many as there are, in one
 * piece, and the rest at the end. However small the chunks are, no part of a unit is scanned twice.
 *
 * The bytes that are held count against the budget of all bodies. The piece yielded last counts too, until the reader
 * asks for more: by then the reader must have dropped all that it made of it.
 */
export class StreamedBody implements AsyncIterable<Uint8Array>, HeldBody {
  readonly #options: StreamedBodyOptions;
  readonly #gatherer = new PieceGatherer();
  readonly #hold: BodyHold;
  /** Held bytes that belong to whole units. */
  #wholeBytes = 0;
  #givenBytes = 0;
  #isComplete = false;
  #isOver = false;
  #isPaused = false;
  #failure: unknown = null;
  #wake: (() => void) | null = null;

  constructor(options: StreamedBodyOptions) {
    this.#options = options;
    this.#hold = options.budget.open(options.owner(), this);
    const { signal } = options;
    signal.addEventListener('abort', () => this.#fail(signal.reason), { once: true });
  }

  came(chunk: Uint8Array): void {
    if (this.#isOver || this.#failure !== null || chunk.length === 0) return;
    const end = this.#options.ends.endIn(chunk);
    this.#gatherer.append(chunk);
    if (end > 0) this.#wholeBytes = this.#gatherer.length - (chunk.length - end);
    this.#count();
    if (!this.#isPaused && this.#wholeBytes >= AHEAD_BYTES) {
      this.#isPaused = true;
      this.#options.pause();
    }
    this.#wake?.();
  }

  ended(): void {
    this.#isComplete = true;
    this.#wake?.();
  }

  evict(error: AppError): void {
    this.#fail(error);
  }

  /** Drops the body, which has no reader any more. Idempotent. */
  release(): void {
    this.#isOver = true;
    this.#drop();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        this.#givenBytes = 0;
        this.#count();
        if (this.#failure !== null) throw this.#failure;
        const count = this.#isComplete ? this.#gatherer.length : this.#wholeBytes;
        if (count > 0) yield this.#given(count);
        else if (this.#isComplete) return;
        else await this.#more();
      }
    } finally {
      this.release();
    }
  }

  #given(count: number): Uint8Array {
    const bytes = this.#gatherer.consume(count);
    this.#wholeBytes = 0;
    this.#givenBytes = bytes.buffer.byteLength;
    this.#count();
    if (this.#failure !== null) throw this.#failure;
    return bytes;
  }

  async #more(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      // Chunks may arrive within this call.
      this.#goOn();
    });
    this.#wake = null;
  }

  #goOn(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#options.resume();
  }

  /** Counts the held bytes. More is awaited of the client only while the reader waits. */
  #count(): void {
    if (this.#failure !== null) return;
    const isAwaited = this.#givenBytes === 0 && this.#wholeBytes === 0 && !this.#isComplete;
    const full =
      this.#hold.moveTo(this.#options.owner()) ??
      this.#hold.resize(this.#gatherer.capacity + this.#givenBytes, isAwaited);
    if (full !== null) this.#fail(full);
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#drop();
    this.#wake?.();
  }

  /** Drops what is held; what still arrives is thrown away. */
  #drop(): void {
    this.#gatherer.clear();
    this.#wholeBytes = 0;
    this.#hold.release();
    this.#goOn();
  }
}
