/** Memory of one body, until `release`. */
export interface BodyLease {
  readonly bytes: Uint8Array;
  /** Gives the memory back; nobody may read `bytes` afterwards. Idempotent. */
  release(): void;
}

const SLAB_BYTES = 128 * 1024;
/** All together 8 MiB. One body that stays long keeps a slab; beyond this bodies get memory of their own. */
const SLABS_MAX = 64;
/** Smaller ones are cheaper from Buffer's pool, larger ones would leave slabs half empty. */
const BODY_BYTES_MIN = 2 * 1024;
const BODY_BYTES_MAX = 32 * 1024;

type Slab = { readonly bytes: Buffer; used: number; leases: number };

/**
 * Memory for bodies that are needed for milliseconds, used again and again: as garbage, at some thousand
 * batches a second, they are tens of megabytes outside of the heap, for which V8 marks and compacts all
 * of it several times a second. Bounded; O(1).
 */
export class BodyPool {
  #slab: Slab | null = null;
  readonly #free: Slab[] = [];
  #slabCount = 0;

  /** Memory for a body, or null when it is better off without: by its size, or as the pool is used up. */
  take(bytes: number): BodyLease | null {
    if (bytes < BODY_BYTES_MIN || bytes > BODY_BYTES_MAX) return null;
    let slab = this.#slab;
    if (slab === null || slab.used + bytes > SLAB_BYTES) {
      slab = this.#next();
      if (slab === null) return null;
    }
    const start = slab.used;
    slab.used += bytes;
    slab.leases += 1;
    return new Lease(this, slab, slab.bytes.subarray(start, start + bytes));
  }

  /** Of a lease, once. */
  returned(slab: Slab): void {
    slab.leases -= 1;
    if (slab.leases > 0) return;
    slab.used = 0;
    if (slab !== this.#slab) this.#free.push(slab);
  }

  /** The slab to go on with. The one before comes back when its last body has gone. */
  #next(): Slab | null {
    let next = this.#free.pop() ?? null;
    if (next === null) {
      if (this.#slabCount === SLABS_MAX) return null;
      this.#slabCount += 1;
      next = { bytes: Buffer.allocUnsafeSlow(SLAB_BYTES), used: 0, leases: 0 };
    }
    this.#slab = next;
    return next;
  }
}

class Lease implements BodyLease {
  readonly bytes: Uint8Array;
  readonly #pool: BodyPool;
  #slab: Slab | null;

  constructor(pool: BodyPool, slab: Slab, bytes: Uint8Array) {
    this.#pool = pool;
    this.#slab = slab;
    this.bytes = bytes;
  }

  release(): void {
    const slab = this.#slab;
    this.#slab = null;
    if (slab !== null) this.#pool.returned(slab);
  }
}
