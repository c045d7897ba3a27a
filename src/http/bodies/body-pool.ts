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

/** Long bodies of known length have memory of their own, of the next power of two, which is used again as well. */
const LARGE_BYTES_MAX = 8 * 1024 * 1024;
const LARGE_KEPT_BYTES_MAX = 16 * 1024 * 1024;

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
  readonly #large = new Map<number, Buffer[]>();
  #largeKeptBytes = 0;

  /** Memory for a body, or null when it is better off without: by its size, or as the pool is used up. */
  acquire(bytes: number): BodyLease | null {
    if (bytes < BODY_BYTES_MIN || bytes > BODY_BYTES_MAX) return null;
    let slab = this.#slab;
    if (slab === null || slab.used + bytes > SLAB_BYTES) {
      slab = this.#next();
      if (slab === null) return null;
    }
    const start = slab.used;
    slab.used += bytes;
    slab.leases += 1;
    return new SlabLease(this, slab, slab.bytes.subarray(start, start + bytes));
  }

  /** Memory for a body longer than those of `acquire`; its bytes are any. */
  acquireLarge(bytes: number): BodyLease {
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, BODY_BYTES_MAX)));
    if (size > LARGE_BYTES_MAX) return new LargeLease(this, Buffer.allocUnsafeSlow(bytes), bytes);
    const kept = this.#large.get(size)?.pop();
    if (kept !== undefined) this.#largeKeptBytes -= size;
    return new LargeLease(this, kept ?? Buffer.allocUnsafeSlow(size), bytes);
  }

  /** Of a large lease, once. */
  largeReturned(memory: Buffer): void {
    const size = memory.length;
    if (size > LARGE_BYTES_MAX || this.#largeKeptBytes + size > LARGE_KEPT_BYTES_MAX) return;
    const kept = this.#large.get(size) ?? [];
    kept.push(memory);
    this.#large.set(size, kept);
    this.#largeKeptBytes += size;
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

class SlabLease implements BodyLease {
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

class LargeLease implements BodyLease {
  readonly bytes: Uint8Array;
  readonly #pool: BodyPool;
  #memory: Buffer | null;

  constructor(pool: BodyPool, memory: Buffer, bytes: number) {
    this.bytes = memory.subarray(0, bytes);
    this.#pool = pool;
    this.#memory = memory;
  }

  release(): void {
    const memory = this.#memory;
    this.#memory = null;
    // One of another size is none of the kept.
    if (memory !== null && Number.isInteger(Math.log2(memory.length)))
      this.#pool.largeReturned(memory);
  }
}

/**
 * The connection takes a chunk back on return. Short copies come from Buffer's pool: an ArrayBuffer of
 * their own costs a fifth of the whole request (35 k against 43 k requests a CPU-second measured).
 */
export function copyOfChunk(chunk: Uint8Array): Uint8Array {
  const copy = Buffer.allocUnsafe(chunk.byteLength);
  copy.set(chunk);
  return copy;
}
