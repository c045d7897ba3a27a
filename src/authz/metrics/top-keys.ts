import type { Clock } from '../../shared/time/clock.ts';

/** Keys beside the named ones whose amounts are followed; further ones wait until entries are free. */
const FOLLOWED_MAX = 1_000;
/** How often amounts are halved, and the weakest named key may be replaced. */
const PERIOD_MS = 60_000;
/** Multiple of the weakest named key's amount that another key needs to replace it. */
const LEAD = 2;

/** The key that represents all without a name of their own. */
export const OTHER_KEY = 'other';

/**
 * Keys with series of their own: the `namesMax` with the largest recent amounts; an amount of an hour ago
 * hardly counts. While names are free every key gets one at once. Afterwards a name changes its key at most
 * once a minute, and only if another key clearly leads, so that noise does not move series.
 */
export class TopKeys {
  readonly #namesMax: number;
  readonly #clock: Clock;
  readonly #amounts = new Map<string, number>();
  readonly #named = new Set<string>();
  #periodEndMs: number;

  constructor(namesMax: number, clock: Clock) {
    this.#namesMax = namesMax;
    this.#clock = clock;
    this.#periodEndMs = clock.monotonicMs() + PERIOD_MS;
  }

  /** Counts `amount` (> 0) of `key`; the name under which it counts: its own or OTHER_KEY. Cost: O(1) but once a minute. */
  nameOf(key: string, amount: number): string {
    // A key that is called so cannot be distinguished from the others.
    if (key === OTHER_KEY) return OTHER_KEY;
    if (this.#clock.monotonicMs() >= this.#periodEndMs) this.#rank();
    const known = this.#amounts.get(key);
    if (known !== undefined || this.#amounts.size < FOLLOWED_MAX + this.#namesMax) {
      this.#amounts.set(key, (known ?? 0) + amount);
      if (!this.#named.has(key) && this.#named.size < this.#namesMax) this.#named.add(key);
    }
    return this.#named.has(key) ? key : OTHER_KEY;
  }

  /** Keys that have a name now, in no order. */
  names(): readonly string[] {
    return [...this.#named];
  }

  #amountOf(key: string): number {
    return this.#amounts.get(key) ?? 0;
  }

  #rank(): void {
    this.#periodEndMs = this.#clock.monotonicMs() + PERIOD_MS;
    const named = [...this.#named].toSorted((a, b) => this.#amountOf(a) - this.#amountOf(b));
    const others = [...this.#amounts.keys()].filter((key) => !this.#named.has(key));
    others.sort((a, b) => this.#amountOf(b) - this.#amountOf(a));
    for (const [i, weakest] of named.entries()) {
      const strongest = others[i];
      if (strongest === undefined) break;
      if (this.#amountOf(strongest) <= LEAD * this.#amountOf(weakest)) break;
      this.#named.delete(weakest);
      this.#named.add(strongest);
    }
    // The smaller half is dropped, so that keys that were not followed can be.
    for (const key of others.slice(FOLLOWED_MAX / 2)) {
      if (!this.#named.has(key)) this.#amounts.delete(key);
    }
    for (const [key, amount] of this.#amounts) this.#amounts.set(key, amount / 2);
  }
}
