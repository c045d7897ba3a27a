import type { AppError } from '../../shared/app-error.ts';
import type { BodyBudget } from '../bodies/body-budget.ts';
import type { BodyDeadlines, SlowBody } from '../bodies/body-deadlines.ts';
import { BodyIntake } from '../bodies/body-intake.ts';
import { bodyTooLarge } from '../bodies/gzip.ts';
import { CANCEL } from './frames/protocol.ts';
import type { Http2RequestStream } from './request-stream.ts';

const NO_BYTES = new Uint8Array(0);

export type WholeStreamOptions = {
  readonly bytesMax: number;
  /** The limit that an error names. */
  readonly messageBytesMax: number;
  readonly deadlines: BodyDeadlines;
  readonly budget: BodyBudget;
};

/**
 * Reads the whole body of an HTTP/2 request. A body that comes in one chunk, within a turn of the loop, counts against no
 * budget. A body that takes too long resets the stream.
 */
export class WholeStream implements SlowBody {
  readonly whole: Promise<Uint8Array>;
  readonly #stream: Http2RequestStream;
  readonly #options: WholeStreamOptions;
  #first: Uint8Array | null = null;
  #intake: BodyIntake | null = null;
  #resolve!: (bytes: Uint8Array) => void;
  #reject!: (reason: Error) => void;

  constructor(stream: Http2RequestStream, options: WholeStreamOptions, signal: AbortSignal) {
    this.#stream = stream;
    this.#options = options;
    this.whole = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    options.deadlines.add(this);
    signal.addEventListener('abort', () => this.#reject(signal.reason as Error), { once: true });
    stream.on('data', (chunk) => this.#came(chunk));
    stream.once('end', () => this.#ended());
    stream.once('close', () => {
      options.deadlines.remove(this);
      this.#first = null;
      this.#intake?.release();
    });
  }

  cut(): void {
    this.#stream.close(CANCEL);
  }

  #came(chunk: Uint8Array): void {
    if (this.#intake === null && this.#first === null) {
      this.#first = chunk;
      // The chunk must not keep the memory of all that was read with it.
      setImmediate(() => this.#gatherFirst());
      return;
    }
    this.#gatherFirst();
    this.#add(chunk, false);
  }

  #gatherFirst(): void {
    const first = this.#first;
    this.#first = null;
    if (first !== null) this.#add(first, false);
  }

  #add(chunk: Uint8Array, isLast: boolean): void {
    const { budget, bytesMax } = this.#options;
    this.#intake ??= new BodyIntake({
      bytesMax,
      // The windows bound what is thrown away, and the time that an answered stream has.
      discardBytesMax: 0,
      budget,
      owner: this.#stream.bodyOwner,
      pool: undefined,
      declaredBytes: 0,
      onCut: (error) => this.#refuse(error),
    });
    const outcome = this.#intake.add(chunk, isLast);
    if (outcome === 'refused') this.#refuse(this.#intake.refusal);
    else if (outcome === 'whole') this.#resolve(this.#intake.takeWhole().bytes);
    else if (this.#intake.refusal !== null) this.#refuse(this.#intake.refusal);
  }

  #ended(): void {
    this.#options.deadlines.remove(this);
    const first = this.#first;
    this.#first = null;
    if (this.#intake !== null) return this.#add(NO_BYTES, true);
    if (first === null) return this.#resolve(NO_BYTES);
    if (first.length > this.#options.bytesMax) return this.#refuse(null);
    this.#resolve(Buffer.from(first));
  }

  /** Refuses the body. What still comes is read and thrown away, so that the answer gets through. */
  #refuse(error: AppError | null): void {
    this.#options.deadlines.remove(this);
    this.#reject(error ?? bodyTooLarge(this.#options.messageBytesMax));
  }
}
