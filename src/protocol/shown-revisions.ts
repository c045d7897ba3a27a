/** Value of a slot whose replica has met another history: nothing that was shown before counts any more. */
export const SHOWN_VOID = -1;

/**
 * How far each replica of one shard has shown it: the watermarks of all workers that answer for it, in memory shared
 * with the gateway's thread. A replica raises its slot before it answers anything at the new watermark. The sender of
 * a read takes the highest of them for its minRevision. So no read goes back behind what an earlier one may have seen,
 * whichever replicas answered the two. A replica may be ahead of what the gateway knows, as it reads commits from
 * PostgreSQL whose acknowledgement is still under way. Each slot has one writer.
 */
export class ShownRevisions {
  readonly memory: SharedArrayBuffer;
  readonly #revisions: BigInt64Array;

  /** `memory` is of `createShownMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.#revisions = new BigInt64Array(memory);
  }

  /** Raises the slot `place`: its replica's watermark is at least `revision` now. */
  raise(place: number, revision: number): void {
    const known = Atomics.load(this.#revisions, place);
    if (known !== BigInt(SHOWN_VOID) && BigInt(revision) > known) {
      Atomics.store(this.#revisions, place, BigInt(revision));
    }
  }

  /** Voids the slot `place`: its replica was of another history than what is stored now. */
  void(place: number): void {
    Atomics.store(this.#revisions, place, BigInt(SHOWN_VOID));
  }

  /** The revision in one slot. */
  at(place: number): number {
    return Number(Atomics.load(this.#revisions, place));
  }

  /** The highest revision that any replica may have shown, or SHOWN_VOID. O(replicas). */
  get newest(): number {
    let newest = 0;
    for (let place = 0; place < this.#revisions.length; place++) {
      const revision = this.at(place);
      if (revision === SHOWN_VOID) return SHOWN_VOID;
      if (revision > newest) newest = revision;
    }
    return newest;
  }
}

/** The slot of one replica. */
export type ShownPlace = { readonly revisions: ShownRevisions; readonly place: number };

/** Memory for so many replicas. */
export function createShownMemory(places: number): SharedArrayBuffer {
  return new SharedArrayBuffer(places * BigInt64Array.BYTES_PER_ELEMENT);
}
