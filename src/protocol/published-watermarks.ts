/** Value of a slot whose replica has met another history: nothing that was shown before counts any more. */
export const WATERMARK_VOID = -1;

/**
 * How far each replica of one shard has shown it: the watermarks of all workers that answer for it, in memory shared
 * with the gateway's thread. A replica raises its slot before it answers anything at the new watermark. The sender of
 * a read takes the highest of them for its minRevision. So no read goes back behind what an earlier one may have seen,
 * whichever replicas answered the two. A replica may be ahead of what the gateway knows, as it reads commits from
 * PostgreSQL whose acknowledgement is still under way. Each slot has one writer.
 */
export class PublishedWatermarks {
  readonly memory: SharedArrayBuffer;
  readonly #watermarks: BigInt64Array;

  /** `memory` is of `createWatermarksMemory`. */
  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.#watermarks = new BigInt64Array(memory);
  }

  /** Raises `slot`: its replica's watermark is at least `revision` now. */
  raise(slot: number, revision: number): void {
    const known = Atomics.load(this.#watermarks, slot);
    if (known !== BigInt(WATERMARK_VOID) && BigInt(revision) > known) {
      Atomics.store(this.#watermarks, slot, BigInt(revision));
    }
  }

  /** Voids `slot`: its replica was of another history than what is stored now. */
  void(slot: number): void {
    Atomics.store(this.#watermarks, slot, BigInt(WATERMARK_VOID));
  }

  /** The revision in one slot. */
  at(slot: number): number {
    return Number(Atomics.load(this.#watermarks, slot));
  }

  /** The highest revision that any replica may have shown, or WATERMARK_VOID. O(replicas). */
  get newest(): number {
    let newest = 0;
    for (let slot = 0; slot < this.#watermarks.length; slot++) {
      const revision = this.at(slot);
      if (revision === WATERMARK_VOID) return WATERMARK_VOID;
      if (revision > newest) newest = revision;
    }
    return newest;
  }
}

/** The slot of one replica. */
export type WatermarkSlot = { readonly watermarks: PublishedWatermarks; readonly slot: number };

/** Memory for so many replicas. */
export function createWatermarksMemory(slots: number): SharedArrayBuffer {
  return new SharedArrayBuffer(slots * BigInt64Array.BYTES_PER_ELEMENT);
}
