import { assert } from '../../shared/assert.ts';
import type { Cancellation } from './cancellation.ts';

type PermitWaiter = { readonly grant: () => void };

/** Releases what was granted; the second call does nothing. */
export type Release = () => void;

/**
 * A number of permits for owners that wait in a circle: whatever one owner asks for, the next permit
 * goes to the next owner, and to its longest waiting request. Cost: O(1) amortised, but for leaving
 * the line, which is O(requests of the owner).
 */
export class FairPermits {
  readonly #max: number;
  #granted = 0;
  /** Owners with waiting requests, next one first. */
  readonly #waiting = new Map<string, PermitWaiter[]>();

  constructor(max: number) {
    assert(max >= 1, 'there is at least one permit');
    this.#max = max;
  }

  get granted(): number {
    return this.#granted;
  }

  /** Undefined when `cancellation` came first. */
  acquire(owner: string, cancellation: Cancellation): Promise<Release | undefined> {
    if (cancellation.isCancelled) return Promise.resolve(undefined);
    if (this.#granted < this.#max) return Promise.resolve(this.#take());
    return new Promise((resolve) => {
      const waiter: PermitWaiter = {
        grant: () => {
          leave();
          resolve(this.#take());
        },
      };
      const leave = cancellation.onCancel(() => {
        leave();
        this.#remove(owner, waiter);
        resolve(undefined);
      });
      const line = this.#waiting.get(owner);
      if (line === undefined) this.#waiting.set(owner, [waiter]);
      else line.push(waiter);
    });
  }

  /** A permit beyond the number, for one that others with permits wait for. */
  overtake(): Release {
    return this.#take();
  }

  #take(): Release {
    this.#granted += 1;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#granted -= 1;
      this.#grantNext();
    };
  }

  #grantNext(): void {
    if (this.#granted >= this.#max) return;
    const next = this.#waiting.entries().next().value;
    if (next === undefined) return;
    const [owner, line] = next;
    const waiter = line.shift();
    // To the end of the circle, or out of it.
    this.#waiting.delete(owner);
    if (line.length > 0) this.#waiting.set(owner, line);
    waiter?.grant();
  }

  #remove(owner: string, waiter: PermitWaiter): void {
    const line = this.#waiting.get(owner);
    if (line === undefined) return;
    const rest = line.filter((other) => other !== waiter);
    if (rest.length === 0) this.#waiting.delete(owner);
    else this.#waiting.set(owner, rest);
  }
}
