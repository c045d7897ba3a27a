import { LRUCache } from 'lru-cache';
import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';

/** What the LRU holds: anything that knows its size. */
export type Sized = { readonly bytes: number };

export type IndexLruOptions<V extends Sized> = {
  /** Bytes that all indexes together may take. */
  readonly bytesMax: number;
  /** Called with each index that had to go; it is no longer held. Must not call back into the LRU. */
  readonly onEvict: (key: string, value: V) => void;
};

type Pinned<V> = { readonly value: V; pins: number; bytes: number };

/** Size is counted again after it changed by this part. */
const GROWTH = 1 / 8;

/**
 * Loaded shards by bytes, least recently used first to go. A pinned one (waiters, a load, a running slice) is held
 * outside the cache, so that it cannot be evicted, but counts in the budget. The budget may be exceeded by
 * what is pinned, never by what is not.
 */
export class IndexLru<V extends Sized> {
  readonly bytesMax: number;
  readonly #cache: LRUCache<string, V>;
  readonly #counted = new Map<string, number>();
  readonly #pinned = new Map<string, Pinned<V>>();
  readonly #onEvict: (key: string, value: V) => void;
  #pinnedBytes = 0;

  constructor(options: IndexLruOptions<V>) {
    assert(options.bytesMax > 0, 'the budget of the index cache is positive');
    this.bytesMax = options.bytesMax;
    this.#onEvict = options.onEvict;
    this.#cache = new LRUCache<string, V>({
      maxSize: Math.max(1, Math.floor(options.bytesMax)),
      maxEntrySize: Number.MAX_SAFE_INTEGER,
      dispose: (value, key, reason) => {
        if (reason !== 'evict') return;
        this.#counted.delete(key);
        this.#onEvict(key, value);
      },
    });
  }

  /** Bytes counted for all that is held. */
  get bytes(): number {
    return this.#cache.calculatedSize + this.#pinnedBytes;
  }

  /** Shards held. */
  get size(): number {
    return this.#cache.size + this.#pinned.size;
  }

  /** The index of a shard, which becomes the most recently used; undefined if it is not loaded. */
  get(key: string): V | undefined {
    return this.#pinned.get(key)?.value ?? this.#cache.get(key);
  }

  /**
   * Admits a loaded index and evicts others to make room. One that alone exceeds the budget is refused with
   * SHARD_TOO_LARGE: the caller remembers that, rather than load again for each request.
   */
  admit(key: string, value: V): void {
    assert(this.get(key) === undefined, 'an admitted shard is not yet held');
    const bytes = sizeOf(value);
    if (bytes > this.bytesMax) {
      throw new AppError(
        'SHARD_TOO_LARGE',
        'the tuple index of this shard exceeds the memory limit',
        {
          bytes: String(bytes),
          bytesMax: String(this.bytesMax),
        },
      );
    }
    this.#evictDownTo(this.bytesMax - bytes);
    this.#hold(key, value, bytes);
  }

  /** Keeps a held index from eviction until as many `unpin` calls. Returns it, undefined if not held. */
  pin(key: string): V | undefined {
    const pinned = this.#pinned.get(key);
    if (pinned !== undefined) {
      pinned.pins += 1;
      return pinned.value;
    }
    const value = this.#cache.get(key);
    if (value === undefined) return undefined;
    const bytes = this.#counted.get(key) ?? sizeOf(value);
    this.#cache.delete(key);
    this.#counted.delete(key);
    this.#pinned.set(key, { value, pins: 1, bytes });
    this.#pinnedBytes += bytes;
    return value;
  }

  /**
   * Undoes one `pin`. With the last the index is the most recently used again; one that outgrew the budget
   * meanwhile is evicted at once.
   */
  unpin(key: string): void {
    const pinned = this.#pinned.get(key);
    if (pinned === undefined) return; // dropped meanwhile
    pinned.pins -= 1;
    if (pinned.pins > 0) return;
    this.#pinned.delete(key);
    this.#pinnedBytes -= pinned.bytes;
    const bytes = sizeOf(pinned.value);
    if (bytes > this.bytesMax) {
      this.#onEvict(key, pinned.value);
      return;
    }
    this.#evictDownTo(this.bytesMax - bytes);
    this.#hold(key, pinned.value, bytes);
  }

  /**
   * To be called after changes of an index: counts its size anew if that grew or shrank by an eighth, and evicts
   * others for it. Returns false if the index exceeds the budget alone: it is held while pinned, no longer after.
   */
  recount(key: string): boolean {
    const pinned = this.#pinned.get(key);
    if (pinned !== undefined) {
      if (hasChanged(pinned.bytes, pinned.value.bytes)) {
        this.#pinnedBytes += sizeOf(pinned.value) - pinned.bytes;
        pinned.bytes = sizeOf(pinned.value);
        this.#evictDownTo(this.bytesMax);
      }
      return pinned.bytes <= this.bytesMax;
    }
    const value = this.#cache.peek(key);
    const counted = this.#counted.get(key);
    if (value === undefined || counted === undefined || !hasChanged(counted, value.bytes))
      return true;
    this.#cache.delete(key);
    this.#counted.delete(key);
    const bytes = sizeOf(value);
    if (bytes > this.bytesMax) {
      this.#onEvict(key, value);
      return false;
    }
    this.#evictDownTo(this.bytesMax - bytes);
    this.#hold(key, value, bytes);
    return true;
  }

  /** Forgets an index without `onEvict`, pinned or not. */
  drop(key: string): void {
    const pinned = this.#pinned.get(key);
    if (pinned !== undefined) {
      this.#pinned.delete(key);
      this.#pinnedBytes -= pinned.bytes;
    }
    this.#cache.delete(key);
    this.#counted.delete(key);
  }

  /** Evicts the least recently used until all that is held fits, or only pinned ones are left. */
  #evictDownTo(bytes: number): void {
    while (this.bytes > bytes && this.#cache.size > 0) this.#cache.pop();
  }

  /** Adds as the most recently used. If pinned indexes leave no room it is held all the same: it was just needed. */
  #hold(key: string, value: V, bytes: number): void {
    this.#counted.set(key, bytes);
    this.#cache.set(key, value, { size: bytes });
    assert(this.#cache.has(key), 'an index within the budget is held');
  }
}

function sizeOf(value: Sized): number {
  return Math.max(1, Math.ceil(value.bytes));
}

function hasChanged(counted: number, bytes: number): boolean {
  return Math.abs(bytes - counted) > counted * GROWTH;
}
