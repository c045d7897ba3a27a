const REMEMBERED = 32;

/**
 * The stamps of the last seqs that one index took in, by which two histories are told apart where the
 * index has gone on meanwhile. O(1); the first one lies in the object itself, since most shards are read and not written.
 */
export class RecentStamps {
  #firstSeq = -1;
  #firstStamp = '';
  #seqs: Float64Array | null = null;
  #stamps: string[] | null = null;

  add(seq: number, stamp: string): void {
    if (this.#seqs === null || this.#stamps === null) {
      if (this.#firstSeq < 0 || this.#firstSeq === seq) {
        this.#firstSeq = seq;
        this.#firstStamp = stamp;
        return;
      }
      this.#seqs = new Float64Array(REMEMBERED).fill(-1);
      this.#stamps = [];
      this.#seqs[this.#firstSeq % REMEMBERED] = this.#firstSeq;
      this.#stamps[this.#firstSeq % REMEMBERED] = this.#firstStamp;
    }
    this.#seqs[seq % REMEMBERED] = seq;
    this.#stamps[seq % REMEMBERED] = stamp;
  }

  /** Whether `seq` is remembered with another stamp: that is another history. '' is no stamp. */
  contradicts(seq: number, stamp: string): boolean {
    if (stamp === '') return false;
    if (this.#seqs === null || this.#stamps === null) {
      return this.#firstSeq === seq && this.#firstStamp !== stamp;
    }
    return this.#seqs[seq % REMEMBERED] === seq && this.#stamps[seq % REMEMBERED] !== stamp;
  }

  clear(): void {
    this.#firstSeq = -1;
    this.#firstStamp = '';
    this.#seqs = null;
    this.#stamps = null;
  }
}
