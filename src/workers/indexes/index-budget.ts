import { LRUCache } from 'lru-cache';
import type { ShardActor } from '../shard/shard-actor.ts';

/** An index is accounted again after it grew by this share. */
const GROWTH_SHARE = 1 / 8;

/**
 * Keeps the indexes of one worker within its bytes. Idle ones are in an LRU; one with waiters, a catch-up or a
 * suspended evaluation is pinned outside of it, and counts all the same.
 */
export class IndexBudget {
  readonly #bytesMax: number;
  readonly #besideBytes: () => number;
  readonly #idle: LRUCache<ShardActor, ShardActor>;
  readonly #pinned = new Map<ShardActor, number>();
  #pinnedBytes = 0;
  #evictions = 0;

  /** `besideBytes`: of what no single shard is accounted with. */
  constructor(bytesMax: number, besideBytes: () => number = () => 0) {
    this.#bytesMax = bytesMax;
    this.#besideBytes = besideBytes;
    // Sizes only: what goes is decided by #fit, which counts the pinned ones too.
    this.#idle = new LRUCache({ maxSize: Number.MAX_SAFE_INTEGER });
  }

  /** Accounted bytes: of the shards, pinned and idle, and of what they share. */
  get bytes(): number {
    return this.#pinnedBytes + this.#idle.calculatedSize + this.#besideBytes();
  }

  /** Evictions since the last call. */
  takeEvictions(): number {
    const taken = this.#evictions;
    this.#evictions = 0;
    return taken;
  }

  isPinned(actor: ShardActor): boolean {
    return this.#pinned.has(actor);
  }

  /** Up to `countMax` loaded shards, those in use first, then the most recently used. O(countMax). */
  recent(countMax: number): readonly ShardActor[] {
    const recent: ShardActor[] = [];
    for (const actors of [this.#pinned.keys(), this.#idle.keys()]) {
      for (const actor of actors) {
        if (recent.length >= countMax) return recent;
        recent.push(actor);
      }
    }
    return recent;
  }

  /** The shard was used. */
  touch(actor: ShardActor): void {
    this.#idle.get(actor);
  }

  /** State or idleness of the shard changed. */
  settled(actor: ShardActor): void {
    const bytes = actor.indexBytes;
    if (!actor.isLoaded) {
      this.#unpin(actor);
      this.#idle.delete(actor);
      return;
    }
    if (!actor.isEvictable) {
      this.#idle.delete(actor);
      this.#unpin(actor);
      this.#pinned.set(actor, bytes);
      this.#pinnedBytes += bytes;
      this.#fit(actor);
      return;
    }
    this.#unpin(actor);
    this.#account(actor, bytes);
    this.#fit(actor);
  }

  /** Accounts an index again that may have grown by changes. */
  reaccount(actor: ShardActor): void {
    if (!actor.isLoaded) return;
    const known = this.#pinned.get(actor) ?? this.#idle.info(actor)?.size ?? 0;
    if (Math.abs(actor.indexBytes - known) > known * GROWTH_SHARE) this.settled(actor);
  }

  #account(actor: ShardActor, bytes: number): void {
    const known = this.#idle.info(actor)?.size;
    if (known !== undefined && Math.abs(bytes - known) <= known * GROWTH_SHARE) return;
    // An entry keeps its size when it is set again, hence delete and set.
    this.#idle.delete(actor);
    this.#idle.set(actor, actor, { size: Math.max(1, bytes) });
  }

  #unpin(actor: ShardActor): void {
    const bytes = this.#pinned.get(actor);
    if (bytes === undefined) return;
    this.#pinned.delete(actor);
    this.#pinnedBytes -= bytes;
  }

  /** Like `bytes`, but what is shared leaves at least half of the limit to the shards, however small that is. */
  get #fittedBytes(): number {
    const own = this.#pinnedBytes + this.#idle.calculatedSize;
    return own + Math.min(this.#besideBytes(), this.#bytesMax / 2);
  }

  /** Evicts the least recently used; `latest` only when nothing else is left (admitted alone). */
  #fit(latest: ShardActor): void {
    if (this.#fittedBytes <= this.#bytesMax) return;
    this.#idle.get(latest);
    while (this.#fittedBytes > this.#bytesMax && this.#idle.size > 0) {
      const victim = this.#idle.pop();
      if (victim === undefined) return;
      if (victim === latest) {
        this.#idle.set(victim, victim, { size: Math.max(1, victim.indexBytes) });
        return;
      }
      if (!victim.isEvictable) {
        // Busy since it was put here: pinned, as its next report will say.
        this.#pinned.set(victim, victim.indexBytes);
        this.#pinnedBytes += victim.indexBytes;
        continue;
      }
      this.#evictions += 1;
      victim.evict();
    }
  }
}
