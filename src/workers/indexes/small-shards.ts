import { RowPacker, unpackRows } from '../../cache/row-packer.ts';
import { BlockStore } from '../../cache/tables/block-store.ts';
import { TupleIndex } from '../../cache/tuple-index.ts';
import { ROW_BOUNDS } from '../../cache/tuple-row.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import { assert } from '../../shared/assert.ts';

/** A shard with more is not packed: hydrating one takes some 0.3 µs a tuple, at a query that finds it packed. */
const PACKED_ROWS_MAX = 512;
export const PACKED_BYTES_MAX = 24 * 1024;
/** Indexes for shards that are hydrated, and what they may take of the worker's share, with their caches. */
const HYDRATED_MAX = 256;
const HYDRATED_BYTES_MAX = 16 * 1024 * 1024;
const HYDRATED_SHARE_MAX = 1 / 8;
/** An index that grew beyond this, caches included, or holds names of many models, is not pooled again. */
const USED_AGAIN_BYTES_MAX = 256 * 1024;
const USED_AGAIN_NAMES_MAX = 2_048;
/** Objects of an index and its evaluators on the heap; by bench/small-tenants.ts. */
export const INDEX_OBJECT_BYTES = 24 * 1024;
const PACKERS_KEPT = 64;

/** Holder of the lease of an index. */
export interface IndexHolder {
  /** When it was used last, on the store's own count. */
  readonly usedAt: number;
  /** Packs and releases the index, unless it is in use: then returns false. */
  pack(): boolean;
}

export type SmallShardsOptions = {
  /** Bound of all indexes of the worker, and of one. */
  readonly bytesMax: number;
  /** Shards that are hydrated at once, unless more are in use; absent: HYDRATED_MAX. */
  readonly hydratedMax?: number | undefined;
  /** Tuples of a shard that is packed at most; absent: PACKED_ROWS_MAX, which is also the most. 0: none is. */
  readonly packedRowsMax?: number | undefined;
  /** Bytes of what evaluators remember beside an index. */
  readonly cacheBytesOf: (reader: TupleReader) => number;
};

/** `usedAt`: when the holder had used the index last, as of its turn at the end of the line. */
type IndexLease = { readonly holder: IndexHolder; readonly bytes: number; readonly usedAt: number };

/**
 * Memory that the small shards of one worker share: their packed tuples, and a few indexes into which those in use are
 * hydrated. An index is leased to one shard at a time and emptied before the next one gets it. It keeps what
 * evaluators have bound to it: the model's names keep their ids.
 */
export class SmallShards {
  readonly blocks = new BlockStore();
  readonly #options: SmallShardsOptions;
  readonly #leases = new Map<TupleIndex, IndexLease>();
  readonly #free: { readonly index: TupleIndex; readonly bytes: number }[] = [];
  readonly #packers: RowPacker[] = [];
  readonly #bytes = new Uint8Array(PACKED_BYTES_MAX);
  readonly #bounds = new Int32Array(PACKED_ROWS_MAX * ROW_BOUNDS);
  #freeBytes = 0;
  #leasedBytes = 0;
  #clock = 0;

  constructor(options: SmallShardsOptions) {
    this.#options = options;
  }

  /** Tuples of a shard that is packed at most. */
  get packedRowsMax(): number {
    return Math.min(this.#options.packedRowsMax ?? PACKED_ROWS_MAX, PACKED_ROWS_MAX);
  }

  /** Whether a shard of what was packed is packed. */
  isSmall({ rows, size }: RowPacker): boolean {
    return rows <= this.packedRowsMax && size <= PACKED_BYTES_MAX;
  }

  /** Bytes that no shard counts as its own: indexes for leases, and free memory between blocks. */
  get bytes(): number {
    return this.#leasedBytes + this.#freeBytes + this.blocks.bytes - this.blocks.usedBytes;
  }

  /** Shards that are hydrated now. */
  get hydrated(): number {
    return this.#leases.size;
  }

  /** Grows at every use. */
  tick(): number {
    return ++this.#clock;
  }

  /** An empty index without a lease, for a shard that is too large to be packed, or whose index will be released. */
  createIndex(): TupleIndex {
    return new TupleIndex({ bytesMax: this.#options.bytesMax });
  }

  /** An empty index, until `release` or `detach`. Packs whoever was used least recently if there are many. */
  acquire(holder: IndexHolder): TupleIndex {
    const { hydratedMax = HYDRATED_MAX } = this.#options;
    const bytesMax = Math.min(HYDRATED_BYTES_MAX, this.#options.bytesMax * HYDRATED_SHARE_MAX);
    if (this.#free.length === 0) {
      const isFull = this.#leases.size >= hydratedMax || this.#leasedBytes >= bytesMax;
      if (isFull) this.#packOldest();
    }
    const free = this.#free.pop();
    this.#freeBytes -= free?.bytes ?? 0;
    const index = free?.index ?? this.createIndex();
    const bytes = this.#bytesOf(index);
    this.#leases.set(index, { holder, bytes, usedAt: this.#clock });
    this.#leasedBytes += bytes;
    return index;
  }

  /** Takes an index back that nobody reads any more. */
  release(index: TupleIndex): void {
    this.detach(index);
    const bytes = this.#bytesOf(index);
    if (bytes > USED_AGAIN_BYTES_MAX || index.pinnedCount > USED_AGAIN_NAMES_MAX) return;
    index.reset();
    this.#free.push({ index, bytes });
    this.#freeBytes += bytes;
  }

  /** Ends the lease without reuse: the holder keeps the index for good, or a reader may still use what it holds. */
  detach(index: TupleIndex): void {
    const lease = this.#leases.get(index);
    assert(lease !== undefined, 'an index that was lent');
    this.#leases.delete(index);
    this.#leasedBytes -= lease.bytes;
  }

  /** Accounts the indexes again, which grow by changes and what evaluators remember. O(hydrated). */
  reaccount(): void {
    this.#leasedBytes = 0;
    for (const [index, lease] of this.#leases) {
      const bytes = this.#bytesOf(index);
      this.#leases.set(index, { ...lease, bytes });
      this.#leasedBytes += bytes;
    }
  }

  /** An empty packer, until `releasePacker`. */
  acquirePacker(): RowPacker {
    return this.#packers.pop() ?? new RowPacker();
  }

  releasePacker(packer: RowPacker): void {
    packer.clear();
    if (this.#packers.length < PACKERS_KEPT) this.#packers.push(packer);
  }

  /** Inserts what a block holds into an empty index. Errors: those of damaged bytes. */
  unpack(handle: number, rows: number, index: TupleIndex): void {
    const size = this.blocks.read(handle, this.#bytes);
    index.insertRows(unpackRows(this.#bytes.subarray(0, size), rows, this.#bounds));
    assert(index.tupleCount === rows, 'a folded shard has the tuples that were put into it');
  }

  /** Packs one that is not in use, about the least recently used: who was used since it came to its turn has another one. O(1) mostly. */
  #packOldest(): void {
    let turns = this.#leases.size * 2;
    for (const [index, lease] of this.#leases) {
      if (turns-- === 0) return;
      const { holder } = lease;
      const isFresh = holder.usedAt > lease.usedAt;
      if (!isFresh && holder.pack()) return;
      // The holder may have made it its own.
      if (this.#leases.delete(index)) this.#leases.set(index, { ...lease, usedAt: holder.usedAt });
    }
  }

  #bytesOf(index: TupleIndex): number {
    return index.bytes + this.#options.cacheBytesOf(index) + INDEX_OBJECT_BYTES;
  }
}
