import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/** Characters that all streams of a process hold together for readers who are slower than the workers. */
const HELD_MAX = 256 * 1_048_576;
/** How long a reader may take nothing although something is held for it. */
const STALL_MS = 60_000;

/** Counts the characters that the streams of a process hold together, up to a bound. */
export class HeldCapacity {
  readonly #heldMax: number;
  #held = 0;

  constructor(heldMax = HELD_MAX) {
    this.#heldMax = heldMax;
  }

  get held(): number {
    return this.#held;
  }

  /** Errors: QUEUE_FULL; then nothing was taken. */
  acquire(size: number): void {
    if (this.#held + size > this.#heldMax) {
      throw new AppError<AuthzReason>(
        'QUEUE_FULL',
        `streams hold ${this.#heldMax} characters for slow readers already`,
        { limit: String(this.#heldMax) },
      );
    }
    this.#held += size;
  }

  release(size: number): void {
    this.#held -= size;
  }
}

/**
 * Parts of an answer between the worker that found them and a reader who takes them one by one. All streams share one capacity;
 * a reader who takes nothing for a minute loses what is held for it. Not a queue for several readers.
 */
export class HeldParts<Part> {
  readonly #capacity: HeldCapacity;
  readonly #sizeOf: (part: Part) => number;
  readonly #stallMs: number;
  readonly #parts: Part[] = [];
  #isEnded = false;
  #failure: { readonly error: unknown } | undefined;
  #reader: (() => void) | undefined;
  #stall: NodeJS.Timeout | undefined;

  constructor(capacity: HeldCapacity, sizeOf: (part: Part) => number, stallMs = STALL_MS) {
    this.#capacity = capacity;
    this.#sizeOf = sizeOf;
    this.#stallMs = stallMs;
  }

  /** Holds a part; beyond the capacity the stream fails. Nothing is held once it has ended in any way. */
  add(part: Part): void {
    if (this.#isEnded || this.#failure !== undefined) return;
    try {
      this.#capacity.acquire(this.#sizeOf(part));
    } catch (error) {
      this.fail(error);
      return;
    }
    this.#parts.push(part);
    this.#wake();
  }

  /** No part follows. */
  finish(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** The reader gets the error next; what is held is given up. The first of several counts. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#drop();
    this.#wake();
  }

  /** The reader has gone. */
  close(): void {
    this.#isEnded = true;
    this.#drop();
  }

  /** The next part, once there is one; undefined after the last. Errors: that of `fail`; DEADLINE_EXCEEDED, QUEUE_FULL. */
  async next(): Promise<Part | undefined> {
    clearTimeout(this.#stall);
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure.error;
      const part = this.#parts.shift();
      if (part !== undefined) {
        this.#capacity.release(this.#sizeOf(part));
        this.#watch();
        return part;
      }
      if (this.#isEnded) return undefined;
      await new Promise<void>((resolve) => (this.#reader = resolve));
    }
  }

  /** The reader is busy with a part: from now on it must come back. */
  #watch(): void {
    this.#stall = setTimeout(() => {
      const seconds = this.#stallMs / 1_000;
      const text = `nothing of the stream was read for ${seconds} s`;
      this.fail(new AppError<AuthzReason>('DEADLINE_EXCEEDED', text));
    }, this.#stallMs).unref();
  }

  #drop(): void {
    clearTimeout(this.#stall);
    for (const part of this.#parts.splice(0)) this.#capacity.release(this.#sizeOf(part));
  }

  #wake(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    reader?.();
  }
}
