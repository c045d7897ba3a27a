const REMEMBERED = 32;

/**
 * The stamps of the last seqs that one index took in, by which two histories are told apart where the
 * index has gone on meanwhile. O(1); takes memory from the first change on.
 */
export class RecentStamps {
  #seqs: Float64Array | null = null;
  #stamps: string[] = [];

  add(seq: number, stamp: string): void {
    this.#seqs ??= new Float64Array(REMEMBERED).fill(-1);
    this.#seqs[seq % REMEMBERED] = seq;
    this.#stamps[seq % REMEMBERED] = stamp;
  }

  /** Whether `seq` is remembered with another stamp: that is another history. '' is no stamp. */
  contradicts(seq: number, stamp: string): boolean {
    if (this.#seqs === null || stamp === '') return false;
    return this.#seqs[seq % REMEMBERED] === seq && this.#stamps[seq % REMEMBERED] !== stamp;
  }

  clear(): void {
    this.#seqs = null;
    this.#stamps = [];
  }
}
