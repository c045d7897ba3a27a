import type { IndexAudit } from '../../cache/index-audit.ts';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { TupleReader } from '../../model/tuple-reader.ts';
import type { ChangePage, StoredHeadRevision, ShardPosition } from '../../store/feed/changes.ts';
import type { SnapshotPage } from '../../store/feed/snapshot-page.ts';
import type { SnapshotSink } from '../../store/feed/snapshot.ts';

/** The owner of an index. */
export interface IndexUser {
  /** Whether an evaluation over the index has begun and not ended. */
  readonly isInUse: boolean;
}

/** The index of one shard as its actor sees it. */
export interface ShardIndex {
  /** Read it anew in each turn: it may change between two turns unless an evaluation has begun. */
  readonly reader: TupleReader;
  /** Memory that it takes, all of it. */
  readonly bytes: number;
  readonly tupleCount: number;
  /** `reader`, if it is of this shard alone for as long as the index lives; null: asking for `reader` may cost something. */
  readonly ownReader?: TupleReader | null;
  /** One row of a snapshot, as in `SnapshotSink.row`. */
  insertRow(bytes: Uint8Array, bounds: Int32Array): void;
  /** Many of them, as in `SnapshotSink.rows`. */
  insertRows?(bytes: Uint8Array, bounds: Int32Array, rows: number): void;
  /** Rows of a snapshot begin, anew if some have come. */
  begin?(): void;
  /** All rows have come. */
  loaded?(): void;
  /** Releases memory for others once the shard is no longer held. Nothing is called afterwards. */
  drop?(): void;
  /** All changes of one revision, as packed in `tuple_change.changes`. */
  apply(changes: string): void;
  /**
   * Begins to compare the index with what is stored: every change is passed to the audit from now on, until
   * `endAudit`. `revisionOf`: the revision of the changes being applied. One at a time.
   */
  startAudit(revisionOf: () => number): IndexAudit;
  endAudit(): void;
}

/** How a load leaves time to others on its thread. */
export type LoadPace = Pick<SnapshotSink, 'sliceMs' | 'ready'>;

/** The truth about shards: Postgres, or memory in tests. */
export interface ShardSource {
  /** Loads at once that it takes, where it shares connections among them by itself. */
  readonly loadSlots?: number;
  /** Streams the shard into `sink` in slices; rows that came before `sink.begin` are void. Resolves with the position that it is the state of. */
  loadSnapshot(
    shard: ShardKey,
    sink: SnapshotSink,
    signal: AbortSignal,
  ): Promise<StoredHeadRevision>;
  /** About how many rows the shard has; absent, or an error: not known. */
  estimateRows?(shard: ShardKey): Promise<number>;
  /** Changes after `afterRevision`, one page. */
  readChanges(shard: ShardKey, afterRevision: number): Promise<ChangePage>;
  /** Rows of a shard behind a key (null: from the start) in the order of keys; see `readSnapshotPage`. */
  readPage(
    shard: ShardKey,
    after: readonly string[] | null,
    limit: number,
    signal: AbortSignal,
  ): Promise<SnapshotPage>;
  /** Positions of those of the shards that exist; one query. */
  readHeadRevisions(shards: readonly ShardKey[]): Promise<readonly (ShardKey & ShardPosition)[]>;
}
