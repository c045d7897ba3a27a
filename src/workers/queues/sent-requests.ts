import type { PendingRequest } from './shard-queue.ts';

const FIRST_CAPACITY = 1_024;

/**
 * Requests that a worker has, by id. An open-addressed table that stays one array: a Map whose entries come and go is
 * rehashed every few dozen of them, and V8 leaves in each table a pointer to the next one. Once a table is in the old
 * generation (after any full collection under load) each of its successors is kept, with the requests that it held,
 * until the next full collection, which begins it anew: that was 600 bytes promoted for each Check. Capacity is at
 * least twice what it holds, and is not released: 8 bytes a slot. O(1), ids being mostly consecutive.
 */
export class SentRequests {
  #slots: (PendingRequest | null)[] = emptySlots(FIRST_CAPACITY);
  #mask = FIRST_CAPACITY - 1;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds one whose id is not there. */
  add(request: PendingRequest): void {
    if (this.#size * 2 >= this.#slots.length) this.#grow();
    this.#insert(request);
    this.#size += 1;
  }

  get(id: number): PendingRequest | undefined {
    return this.#slots[this.#slotOf(id)] ?? undefined;
  }

  /** Whether it was there. */
  delete(id: number): boolean {
    const slots = this.#slots;
    const mask = this.#mask;
    let hole = this.#slotOf(id);
    if (slots[hole] === null) return false;
    this.#size -= 1;
    // Entries behind the hole that are farther from their home slot move up, so that no search ends at it.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const request = slots[at] as PendingRequest | null; // below the mask
      if (request === null) break;
      const fromHome = (at - request.id) & mask;
      if (fromHome < ((at - hole) & mask)) continue;
      slots[hole] = request;
      hole = at;
    }
    slots[hole] = null;
    return true;
  }

  /** All, in no order. O(capacity). */
  values(): PendingRequest[] {
    return this.#slots.filter((request) => request !== null);
  }

  /** The slot of `id`, or the free one where it would be put. */
  #slotOf(id: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    // `&` takes the low 32 bits also of an id beyond them.
    for (let at = id & mask; ; at = (at + 1) & mask) {
      const request = slots[at] as PendingRequest | null; // below the mask
      if (request === null || request.id === id) return at;
    }
  }

  #insert(request: PendingRequest): void {
    this.#slots[this.#slotOf(request.id)] = request;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = emptySlots(old.length * 2);
    this.#mask = this.#slots.length - 1;
    for (const request of old) if (request !== null) this.#insert(request);
    old.fill(null);
  }
}

function emptySlots(capacity: number): (PendingRequest | null)[] {
  return Array.from({ length: capacity }, () => null);
}
