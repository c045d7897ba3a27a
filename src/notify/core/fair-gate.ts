import { RoundRobinQueue } from './round-robin-queue.ts';

/** Lets so much work run at once; what waits has its turn by key, so that one that asks for much does not hold up the others. */
export class FairGate {
  readonly #max: number;
  readonly #waiting = new RoundRobinQueue<() => void>();
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** What `work` returns or throws. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#max) {
      await new Promise<void>((resolve) => this.#waiting.add(key, resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      const [next] = this.#waiting.take(1);
      // The place goes over to whoever is next.
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
