import type { Readable } from 'node:stream';

/** Output is taken as complete after so long without a byte, when a grandchild holds the pipe open. */
const QUIET_MS = 100;
/** …and in any case after so long, when that grandchild goes on writing. */
const DRAIN_MS = 1_000;

/** Reads the streams of one process into a callback that may ask for pauses. */
export class OutputReader {
  readonly #streams: readonly Readable[];
  readonly #onChunk: (chunk: Buffer) => Promise<void> | undefined;
  readonly #done = Promise.withResolvers<void>();
  #openCount: number;
  #isDone = false;
  /** The pause that is on. */
  #held: Promise<void> | undefined;
  /** Set once the process has ended. */
  #deadline: number | undefined;
  #quietTimer: NodeJS.Timeout | undefined;

  constructor(streams: readonly Readable[], onChunk: (chunk: Buffer) => Promise<void> | undefined) {
    this.#streams = streams;
    this.#onChunk = onChunk;
    this.#openCount = streams.length;
    for (const stream of streams) {
      stream.on('data', (chunk: Buffer) => this.#take(chunk));
      // A read error of a pipe is its end.
      stream.once('error', () => stream.destroy());
      stream.once('close', () => this.#closed());
    }
  }

  /**
   * To be called when the process has ended. Resolves when all it wrote was taken: at the end of its
   * streams, or once they fall silent while a grandchild holds them open.
   */
  drained(): Promise<void> {
    if (!this.#isDone && this.#deadline === undefined) {
      this.#deadline = performance.now() + DRAIN_MS;
      this.#waitForQuiet();
    }
    return this.#done.promise;
  }

  /** Closes the streams: the process never started. */
  discard(): void {
    for (const stream of this.#streams) {
      stream.destroy();
    }
  }

  #take(chunk: Buffer): void {
    if (this.#isDone) {
      return;
    }
    const pause = this.#onChunk(chunk);
    if (pause !== undefined) {
      this.#hold(pause);
    } else if (this.#deadline !== undefined) {
      this.#waitForQuiet();
    }
  }

  #hold(pause: Promise<void>): void {
    for (const stream of this.#streams) {
      stream.pause();
    }
    clearTimeout(this.#quietTimer);
    const release = (): void => this.#release(held);
    const held: Promise<void> = pause.then(release, release);
    this.#held = held;
  }

  #release(held: Promise<void>): void {
    if (this.#held !== held) {
      return;
    }
    this.#held = undefined;
    for (const stream of this.#streams) {
      stream.resume();
    }
    if (this.#deadline !== undefined && !this.#isDone) {
      // The pause was ours, not the grandchild's.
      this.#deadline = performance.now() + DRAIN_MS;
      this.#waitForQuiet();
    }
  }

  #waitForQuiet(): void {
    clearTimeout(this.#quietTimer);
    if (this.#held === undefined) {
      const left = (this.#deadline ?? 0) - performance.now();
      const wait = Math.max(0, Math.min(QUIET_MS, left));
      this.#quietTimer = setTimeout(() => this.#lookAgain(this.#quietTimer), wait);
    }
  }

  /** A timer that is late comes before what waits to be read: that is read first. */
  #lookAgain(timer: NodeJS.Timeout | undefined): void {
    if (performance.now() - (this.#deadline ?? 0) > DRAIN_MS) {
      // A grandchild that never falls silent.
      this.#abandon();
      return;
    }
    setImmediate(() => {
      setImmediate(() => {
        if (this.#quietTimer === timer && this.#held === undefined && !this.#isDone) {
          this.#abandon();
        }
      });
    });
  }

  /** Reading goes on into the void, or a server that a step left running would die of SIGPIPE. */
  #abandon(): void {
    this.#finish();
    for (const stream of this.#streams) {
      stream.resume();
      if ('unref' in stream && typeof stream.unref === 'function') {
        stream.unref();
      }
    }
  }

  #closed(): void {
    this.#openCount -= 1;
    if (this.#openCount === 0 && !this.#isDone) {
      this.#finish();
    }
  }

  #finish(): void {
    this.#isDone = true;
    clearTimeout(this.#quietTimer);
    if (this.#held === undefined) {
      this.#done.resolve();
    } else {
      void this.#held.then(() => this.#done.resolve());
    }
  }
}
