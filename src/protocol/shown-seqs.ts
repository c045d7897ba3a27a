/** Of a place whose replica has met another history: nothing that was shown before counts any more. */
export const SHOWN_VOID = -1;

/**
 * How far each replica of one shard has shown it: the watermarks of all workers that answer for it, in memory that they
 * share with the gateway's thread. A replica raises its place before it answers anything at the new watermark; whoever sends a
 * read takes the highest of them for its minSeq. So no read goes back behind what an earlier one may have seen, whichever
 * replicas answered the two: a replica may be ahead of what the gateway knows, as it reads commits from PostgreSQL whose
 * acknowledgement is still under way. Each place has one writer.
 */
export class ShownSeqs {
  readonly memory: SharedArrayBuffer;
  readonly #seqs: BigInt64Array;

  /** `memory` is of `createShownMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.#seqs = new BigInt64Array(memory);
  }

  /** The watermark of the replica of `place` is at least `seq` now. */
  raise(place: number, seq: number): void {
    const known = Atomics.load(this.#seqs, place);
    if (known !== BigInt(SHOWN_VOID) && BigInt(seq) > known) {
      Atomics.store(this.#seqs, place, BigInt(seq));
    }
  }

  /** The replica of `place` was of another history than what is stored now. */
  void(place: number): void {
    Atomics.store(this.#seqs, place, BigInt(SHOWN_VOID));
  }

  /** Of one place. */
  at(place: number): number {
    return Number(Atomics.load(this.#seqs, place));
  }

  /** The highest seq that any replica may have shown, or SHOWN_VOID. O(places). */
  get newest(): number {
    let newest = 0;
    for (let place = 0; place < this.#seqs.length; place++) {
      const seq = this.at(place);
      if (seq === SHOWN_VOID) return SHOWN_VOID;
      if (seq > newest) newest = seq;
    }
    return newest;
  }
}

/** Where one replica tells. */
export type ShownPlace = { readonly seqs: ShownSeqs; readonly place: number };

/** Memory for so many replicas. */
export function createShownMemory(places: number): SharedArrayBuffer {
  return new SharedArrayBuffer(places * BigInt64Array.BYTES_PER_ELEMENT);
}
