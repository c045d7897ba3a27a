import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import { assert } from '../../shared/assert.ts';
import type { ChangePage, StoredChange } from './changes.ts';

/** Query for one of many shards. */
export type ChangesAsk = { readonly shard: ShardKey; readonly afterRevision: number };

/** Shards of one query at most: their pages are applied in one go, within the slice of a worker (2 ms). */
export const CHANGES_SHARDS_MAX = 64;
/** Rows of one shard: one that is further behind gets its rest in pages of its own. */
const ROWS_PER_SHARD = 64;
/** Bytes of one query: the rows nearest after the known revisions come first. */
const BYTES_MAX = 4 * 1024 * 1024;

// One statement, hence one snapshot: head revision, retention and changes of a shard belong together. As in
// readChanges (changes.ts), but for many shards with few changes each.
const TEXT = `
  select m.n::int as n, m.epoch, m.head_seq, m.head_stamp, m.retained_from, m.head_settings,
    m.stamp_at_start, m.seq, m.stamp, m.settings_version,
    case when m.bytes_so_far <= ${BYTES_MAX} then m.changes end as changes
  from (
    select h.n, h.epoch, h.head_seq, h.head_stamp, h.retained_from, h.head_settings,
      case when h.after_seq = h.head_seq then h.head_stamp else (
        select a.stamp from tuple_change a
        where a.project_id = h.project_id and a.tenant_id = h.tenant_id and a.seq = h.after_seq
      ) end as stamp_at_start,
      c.seq, c.stamp, c.settings_version, c.changes,
      sum(octet_length(c.changes)) over (order by c.seq - h.after_seq, h.n) as bytes_so_far
    from (
      select k.n, k.project_id, k.tenant_id, k.after_seq,
        coalesce(s.epoch, gatehouse_epoch()) as epoch, coalesce(s.seq, 0) as head_seq,
        coalesce(s.stamp, 0) as head_stamp, coalesce(s.retained_from, 1) as retained_from,
        coalesce(s.settings_version, 0) as head_settings
      from unnest($1::text[], $2::text[], $3::bigint[])
        with ordinality k (project_id, tenant_id, after_seq, n)
      left join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id
    ) h
    left join lateral (
      select t.seq, t.stamp, t.settings_version, t.changes from tuple_change t
      where t.project_id = h.project_id and t.tenant_id = h.tenant_id and t.seq > h.after_seq
        and h.after_seq + 1 >= h.retained_from
      order by t.seq limit ${ROWS_PER_SHARD}
    ) c on true
  ) m
  order by m.n, m.seq`;

type ChangesOfManyRow = {
  readonly n: number;
  readonly epoch: string;
  readonly head_seq: string;
  readonly head_stamp: string;
  readonly retained_from: string;
  readonly head_settings: string;
  readonly stamp_at_start: string | null;
  readonly seq: string | null;
  readonly stamp: string;
  readonly settings_version: string;
  readonly changes: string | null;
};

/**
 * The changes of many shards after their revisions, in the order given, each as `readChanges`
 * gives a page of it. Undefined: none of a shard's changes fitted, ask for it alone. Errors:
 * whatever the driver throws (pg-errors.ts). Cost: one prepared statement, about three lookups by
 * key for each shard; at most about 4 MiB.
 */
export async function readChangesOfMany(
  client: ClientBase | Pool,
  asks: readonly ChangesAsk[],
): Promise<readonly (ChangePage | undefined)[]> {
  assert(asks.length <= CHANGES_SHARDS_MAX, 'asks of one query');
  const { rows } = await client.query<ChangesOfManyRow>({
    name: 'read-changes-of-many',
    text: TEXT,
    values: [
      asks.map(({ shard }) => shard.projectId),
      asks.map(({ shard }) => shard.tenantId),
      asks.map(({ afterRevision }) => afterRevision),
    ],
  });
  const pages: (ChangePage | undefined)[] = [];
  for (let at = 0; at < rows.length;) {
    let end = at + 1;
    while (rows[end]?.n === rows[at]?.n) end += 1;
    const ask = asks[pages.length];
    assert(ask !== undefined && rows[at]?.n === pages.length + 1, 'every ask has its rows');
    pages.push(pageOf(ask.afterRevision, rows.slice(at, end)));
    at = end;
  }
  assert(pages.length === asks.length, 'every ask has a page');
  return pages;
}

function pageOf(afterRevision: number, rows: readonly ChangesOfManyRow[]): ChangePage | undefined {
  const first = rows[0] as ChangesOfManyRow; // of a group, which is never empty
  const headRevision = {
    epoch: Number(first.epoch),
    revision: Number(first.head_seq),
    forkId: first.head_stamp,
    retainedFrom: Number(first.retained_from),
    settingsVersion: Number(first.head_settings),
  };
  const changes: StoredChange[] = [];
  for (const { seq: revision, stamp: forkId, settings_version, changes: packed } of rows) {
    if (revision === null || packed === null) break;
    // A gap is for readChanges to find, which reads this shard alone.
    if (Number(revision) !== afterRevision + changes.length + 1) return undefined;
    const settingsVersion = Number(settings_version);
    changes.push({ revision: Number(revision), forkId, settingsVersion, changes: packed });
  }
  const isPruned = afterRevision + 1 < headRevision.retainedFrom;
  if (!isPruned && afterRevision < headRevision.revision && changes.length === 0) return undefined;
  const forkIdAtStart = afterRevision === 0 ? '0' : (first.stamp_at_start ?? undefined);
  return { headRevision, forkIdAtStart, changes };
}
