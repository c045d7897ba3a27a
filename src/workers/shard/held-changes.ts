import type { CommittedChange } from '../../model/packed-changes.ts';

const HELD_CHANGES_MAX = 256;
const HELD_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Committed changes that came while the index could not take them (a load, a catch-up, a suspended
 * evaluation). Bounded: what does not fit is dropped, and caught up from the store.
 */
export class HeldChanges {
  /** null: none, as in most shards. */
  #changes: CommittedChange[] | null = null;
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#changes === null;
  }

  /** Adds a change; returns whether it fits. */
  tryAdd(change: CommittedChange): boolean {
    if (
      (this.#changes?.length ?? 0) >= HELD_CHANGES_MAX ||
      this.#bytes + change.changes.length > HELD_BYTES_MAX
    ) {
      return false;
    }
    this.#changes ??= [];
    this.#changes.push(change);
    this.#bytes += change.changes.length;
    return true;
  }

  /** Everything held, by revision. Empties it. */
  drain(): readonly CommittedChange[] {
    const drained = this.#changes ?? [];
    this.#changes = null;
    this.#bytes = 0;
    if (drained.length > 1) drained.sort((a, b) => a.revision - b.revision);
    return drained;
  }
}
