import { IndexAudit } from '../../cache/index-audit.ts';
import { IndexDamage } from '../../cache/index-tally.ts';
import { packIndex } from '../../cache/pack-index.ts';
import { type RowPacker, unpackRows } from '../../cache/row-packer.ts';
import { BlockStore } from '../../cache/tables/block-store.ts';
import type { TupleIndex } from '../../cache/tuple-index.ts';
import { ROW_BOUNDS } from '../../cache/tuple-row.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { IndexUser, ShardIndex } from '../shard/ports.ts';
import { applyChanges, type RunningAudit } from './apply-changes.ts';
import {
  type IndexHolder,
  PACKED_BYTES_MAX,
  INDEX_OBJECT_BYTES,
  type SmallShards,
} from './small-shards.ts';

/**
 * Bytes of the objects of one loaded shard on the heaps of both threads: actor, keys, entries of maps and of lists,
 * head revision. By bench/small-tenants.ts some 1,400 bytes are in use, and the heaps take nearly twice as much as is
 * in use of them.
 */
export const SHARD_OBJECT_BYTES = 2_560;

/**
 * The index of one shard, which is small as long as the shard is: its tuples are packed in memory that all small shards of the
 * worker share, and are hydrated into a leased index when a query or a change comes. What was not changed is packed
 * by forgetting. A shard that has more tuples than are packed gets an index of its own, for good.
 *
 * I1 Whoever was given `reader` within a turn may use it until the turn ends; beyond it only while
 *    its user is in use of it. [test/workers/packed-shards.test.ts]
 * I2 A packed shard holds exactly the tuples that the index held: packIndex and unpackRows are each
 *    other's inverse. [test/workers/packed-shards.test.ts]
 */
export class PackingShardIndex implements ShardIndex, IndexHolder {
  usedAt = 0;
  readonly #shared: SmallShards;
  readonly #user: IndexUser;
  /** While rows are being loaded. */
  #packer: RowPacker | null = null;
  /** The block of the packed tuples; 0 if none, or they have changed since. */
  #handle = 0;
  #rows = 0;
  #index: TupleIndex | null = null;
  /** Whether the index is this shard's own for good. */
  #isOwn = false;
  /** A change was begun and not ended: the index is damaged. */
  #isChanging = false;
  #isDropped = false;
  #audit: RunningAudit | null = null;

  constructor(shared: SmallShards, user: IndexUser) {
    this.#shared = shared;
    this.#user = user;
  }

  get reader(): TupleReader {
    return this.#hydrated();
  }

  get ownReader(): TupleReader | null {
    return this.#isOwn ? this.#index : null;
  }

  get bytes(): number {
    if (this.#isOwn && this.#index !== null) {
      return this.#index.bytes + INDEX_OBJECT_BYTES + SHARD_OBJECT_BYTES;
    }
    const packed = this.#handle === 0 ? 0 : this.#shared.blocks.sizeOf(this.#handle);
    return BlockStore.bytesFor(packed) + SHARD_OBJECT_BYTES;
  }

  get tupleCount(): number {
    return this.#index?.tupleCount ?? this.#packer?.rows ?? this.#rows;
  }

  /** Whether its tuples are packed, and in no index. */
  get isPacked(): boolean {
    return this.#index === null;
  }

  begin(): void {
    assert(this.#handle === 0, 'an index is loaded once');
    this.#packer?.clear();
    this.#index = null;
    this.#isOwn = false;
  }

  insertRow(bytes: Uint8Array, bounds: Int32Array): void {
    assert(this.#handle === 0, 'rows come before the end of the load');
    if (this.#index !== null) {
      this.#index.insertRows({ bytes, bounds, rows: 1, expiryFormat: 'binary' });
      return;
    }
    this.#packer ??= this.#shared.acquirePacker();
    this.#packer.add(bytes, bounds);
    if (!this.#shared.isSmall(this.#packer)) this.#growUp(this.#packer);
  }

  insertRows(bytes: Uint8Array, bounds: Int32Array, rows: number): void {
    let done = 0;
    for (; done < rows && this.#index === null; done++) {
      this.insertRow(bytes, bounds.subarray(done * ROW_BOUNDS, (done + 1) * ROW_BOUNDS));
    }
    if (done === rows) return;
    assert(this.#handle === 0, 'rows come before the end of the load');
    const left = bounds.subarray(done * ROW_BOUNDS);
    this.#index?.insertRows({ bytes, bounds: left, rows: rows - done, expiryFormat: 'binary' });
  }

  loaded(): void {
    if (this.#index !== null || this.#handle !== 0) return;
    const packer = this.#packer ?? this.#shared.acquirePacker();
    this.#packer = null;
    this.#rows = packer.rows;
    this.#handle = this.#shared.blocks.add(packer.packed);
    this.#shared.releasePacker(packer);
  }

  apply(changes: string): void {
    const index = this.#hydrated();
    assert(!this.#isChanging, 'a damaged index is changed no more');
    this.#isChanging = true;
    this.#evictPacked();
    applyChanges(index, changes, this.#audit);
    this.#isChanging = false;
    if (!this.#isOwn && index.tupleCount > this.#shared.packedRowsMax) this.#detach(index);
  }

  startAudit(revisionOf: () => number): IndexAudit {
    assert(this.#audit === null, 'an index is compared once at a time');
    const index = this.#hydrated();
    // The audit compares the index that answered; the next packed form is made of it.
    this.#evictPacked();
    const run = new IndexAudit(index);
    this.#audit = { run, revisionOf };
    return run;
  }

  endAudit(): void {
    this.#audit = null;
  }

  pack(): boolean {
    const index = this.#index;
    if (index === null || this.#isOwn || this.#isRead) return false;
    if (this.#handle === 0 && !this.#pack(index)) {
      this.#detach(index);
      return false;
    }
    this.#index = null;
    this.#shared.release(index);
    return true;
  }

  drop(): void {
    const index = this.#index;
    this.#isDropped = true;
    if (this.#packer !== null) this.#shared.releasePacker(this.#packer);
    this.#packer = null;
    this.#evictPacked();
    this.#index = null;
    if (index === null || this.#isOwn) return;
    // A partly sent answer continues over the tuples that it began with, and an audit checks once more whether it is
    // void.
    if (this.#isRead || this.#isChanging) this.#shared.detach(index);
    else this.#shared.release(index);
  }

  get #isRead(): boolean {
    return this.#audit !== null || this.#user.isInUse;
  }

  #hydrated(): TupleIndex {
    this.usedAt = this.#shared.tick();
    if (this.#index !== null) return this.#index;
    if (this.#isDropped) throw new Error('the index of the shard was dropped');
    this.loaded();
    const index = this.#shared.acquire(this);
    try {
      this.#shared.unpack(this.#handle, this.#rows, index);
    } catch (error) {
      // Half of the tuples: nobody may read it.
      this.#shared.detach(index);
      if (error instanceof AppError) throw error;
      throw new IndexDamage('tuples', error instanceof Error ? error.message : String(error));
    }
    this.#index = index;
    return index;
  }

  #pack(index: TupleIndex): boolean {
    if (index.tupleCount > this.#shared.packedRowsMax) return false;
    const packer = this.#shared.acquirePacker();
    const isSmallEnough =
      packIndex(index, packer, PACKED_BYTES_MAX) && this.#shared.isSmall(packer);
    if (isSmallEnough) {
      assert(packer.rows === index.tupleCount, 'as many tuples are folded as there are');
      this.#rows = packer.rows;
      this.#handle = this.#shared.blocks.add(packer.packed);
    }
    this.#shared.releasePacker(packer);
    return isSmallEnough;
  }

  #evictPacked(): void {
    if (this.#handle !== 0) this.#shared.blocks.remove(this.#handle);
    this.#handle = 0;
  }

  #detach(index: TupleIndex): void {
    this.#shared.detach(index);
    this.#isOwn = true;
  }

  /** More rows came than are packed. */
  #growUp(packer: RowPacker): void {
    const index = this.#shared.createIndex();
    const bounds = new Int32Array(packer.rows * ROW_BOUNDS);
    index.insertRows(unpackRows(packer.packed, packer.rows, bounds));
    this.#packer = null;
    this.#index = index;
    this.#isOwn = true;
    this.#shared.releasePacker(packer);
  }
}
