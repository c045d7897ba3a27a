import type { Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { StoredHeadRevision } from './changes.ts';
import { SNAPSHOT_COLUMNS, rowsText, streamRows } from './snapshot.ts';

/** Columns that identify a tuple within its shard, in the order of the primary key. */
const KEY = SNAPSHOT_COLUMNS.slice(0, 6);
/** A page ends after the row that reaches this size, so that its memory is bounded. */
const PAGE_BYTES_MAX = 1024 * 1024;

/** Rows of a shard in the order of their keys, which is that of their bytes, as the state of one revision. */
export type SnapshotPage = {
  readonly headRevision: StoredHeadRevision;
  /** Row i has its columns as in `SnapshotSink.row`, with its bounds from `bounds[18 i]` on. */
  readonly bytes: Uint8Array;
  readonly bounds: Int32Array;
  readonly rows: number;
  /** Key of the last row, to continue behind; null when there are no more rows. */
  readonly next: readonly string[] | null;
};

/**
 * Reads up to `limit` rows behind the key `after` (null: from the start), in a transaction of its own: however large the
 * shard is, no snapshot stays open. Errors: as `loadSnapshot`. Cost: one round trip, O(rows) by the primary key.
 */
export async function readSnapshotPage(
  pool: Pool,
  shard: ShardKey,
  after: readonly string[] | null,
  limit: number,
  signal?: AbortSignal,
): Promise<SnapshotPage> {
  const rows = new PageRows();
  const headRevision = await streamRows(
    pool,
    (client) => {
      const from = (after ?? []).map((text) => client.escapeLiteral(text)).join(', ');
      const behind = after === null ? '' : `and (${KEY.join(', ')}) > (${from})`;
      return rowsText(client, shard, '', `${behind} order by ${KEY.join(', ')} limit ${limit}`);
    },
    { begin: () => undefined, row: (bytes, bounds) => rows.add(bytes, bounds) },
    signal,
  );
  return rows.page(headRevision, limit);
}

/** Copies rows, which are valid while they are handed over only. */
class PageRows {
  readonly #parts: Uint8Array[] = [];
  readonly #bounds: number[] = [];
  #bytes = 0;
  #rows = 0;
  #isFull = false;

  add(bytes: Uint8Array, bounds: Int32Array): void {
    this.#isFull ||= this.#bytes >= PAGE_BYTES_MAX;
    if (this.#isFull) return;
    // Columns follow each other, each behind its length.
    const start = bounds[0] as number;
    let end = start;
    for (let i = 1; i < bounds.length; i += 2) end = Math.max(end, bounds[i] as number);
    this.#parts.push(Uint8Array.prototype.slice.call(bytes, start, end));
    for (const bound of bounds) this.#bounds.push(bound < 0 ? -1 : bound - start + this.#bytes);
    this.#bytes += end - start;
    this.#rows += 1;
  }

  page(headRevision: StoredHeadRevision, limit: number): SnapshotPage {
    const bytes = Buffer.concat(this.#parts);
    const bounds = Int32Array.from(this.#bounds);
    const width = SNAPSHOT_COLUMNS.length * 2;
    const last = (this.#rows - 1) * width;
    const isEnd = this.#rows < limit && !this.#isFull;
    const next = isEnd
      ? null
      : KEY.map((_, i) => bytes.toString('utf8', bounds[last + 2 * i], bounds[last + 2 * i + 1]));
    return { headRevision, bytes, bounds, rows: this.#rows, next };
  }
}
