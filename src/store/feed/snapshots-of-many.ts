import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { assert } from '../../shared/assert.ts';
import type { StoredHeadRevision } from './changes.ts';
import { SNAPSHOT_COLUMNS, streamHeadRevisionsAndRows } from './snapshot.ts';

/** Shards of one query at most. */
export const SNAPSHOTS_MAX = 128;
/** Rows of one shard at most: a larger one is to be loaded alone. */
export const SNAPSHOT_ROWS_MAX = 512;

/** Takes the snapshot of one of many shards. Called synchronously; what is given is valid during the call. */
export interface SmallSnapshotSink {
  /** A row, as in `SnapshotSink.row`; `bounds` continue behind those of its columns. */
  row(bytes: Uint8Array, bounds: Int32Array): void;
}

/**
 * Loads many shards with few tuples each in one query, from one snapshot; `sinks` has one for each
 * of them. Returns the head revisions in their order. Undefined: the shard has more rows than
 * SNAPSHOT_ROWS_MAX and its sink has only part of them; load it alone. Errors: as `loadSnapshot`,
 * and then for all of them. Cost: one round trip, a look-up by key for each shard, O(rows).
 */
export async function loadSnapshotsOfMany(
  pool: Pool,
  shards: readonly ShardKey[],
  sinks: readonly SmallSnapshotSink[],
  signal?: AbortSignal,
): Promise<readonly (StoredHeadRevision | undefined)[]> {
  assert(shards.length <= SNAPSHOTS_MAX && sinks.length === shards.length, 'shards of one query');
  const counts = new Int32Array(shards.length);
  // The number of the shard comes behind the columns of its row.
  const at = SNAPSHOT_COLUMNS.length * 2;
  const headRevisions = await streamHeadRevisionsAndRows(
    pool,
    (client) => textOf(client, shards),
    { headRevisions: shards.length, columns: SNAPSHOT_COLUMNS.length + 1 },
    {
      row: (bytes, bounds) => {
        const from = bounds[at] as number;
        const n = ((bytes[from + 2] as number) << 8) | (bytes[from + 3] as number);
        const count = (counts[n] as number) + 1;
        counts[n] = count;
        const sink = sinks[n];
        assert(sink !== undefined, 'a row is of a shard that was asked for');
        if (count <= SNAPSHOT_ROWS_MAX) sink.row(bytes, bounds);
      },
    },
    signal,
  );
  return headRevisions.map((headRevision, n) =>
    (counts[n] as number) > SNAPSHOT_ROWS_MAX ? undefined : headRevision,
  );
}

/** COPY takes no parameters. */
function textOf(client: ClientBase, shards: readonly ShardKey[]): string {
  const arrayOf = (texts: readonly string[]): string =>
    `array[${texts.map((text) => client.escapeLiteral(text)).join(', ')}]`;
  const projects = arrayOf(shards.map(({ projectId }) => projectId));
  const tenants = arrayOf(shards.map(({ tenantId }) => tenantId));
  const keys = `unnest(${projects}::text[], ${tenants}::text[]) with ordinality k (project_id, tenant_id, n)`;
  const columns = SNAPSHOT_COLUMNS.map((column) => `r.${column}`).join(', ');
  return `begin isolation level repeatable read, read only;
    select coalesce(s.epoch, gatehouse_epoch())::text, coalesce(s.seq, 0)::text,
      coalesce(s.stamp, 0)::text, coalesce(s.retained_from, 1)::text,
      coalesce(s.settings_version, 0)::text
    from ${keys} left join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id
    order by k.n;
    copy (select ${columns}, (k.n - 1)::int4 from ${keys} cross join lateral (
      select ${SNAPSHOT_COLUMNS.join(', ')} from relation_tuple t
      where t.project_id = k.project_id and t.tenant_id = k.tenant_id
      limit ${SNAPSHOT_ROWS_MAX + 1}) r) to stdout (format binary);
    commit`;
}
