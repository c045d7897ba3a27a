import type { ClientBase } from 'pg';
import { plainArray, textArray } from '../../postgres/array-literals.ts';

/** Known position of a shard when the index is read; epoch 0: nothing is known. */
export type IndexParams = {
  readonly projectId: string;
  readonly tenantId: string;
  readonly epoch: number;
  readonly revision: number;
  /** Fork id of `revision`; '' is unknown. */
  readonly forkId: string;
  /** Version of the project's settings; 0 is unknown. */
  readonly settingsVersion: number;
};

/** A change row that was carried along. */
export type IndexChange = {
  readonly revision: number;
  readonly forkId: string;
  readonly settingsVersion: number;
  readonly changes: string;
};

/** Position of a shard that has moved, or whose project has changed, since it was known. */
export type IndexRow = {
  /** Position of the ask. */
  readonly at: number;
  readonly epoch: number;
  readonly revision: number;
  readonly forkId: string;
  /** null: there is no such project. */
  readonly settingsVersion: number | null;
  /** Fork id of the known seq; '' where its row is gone or the epoch is another. */
  readonly forkIdAtKnown: string;
  /** Changes after the known seq, in order, as far as they fit. */
  readonly changes: readonly IndexChange[];
};

/** Asks of one query at most: about as many as the server answers within 10 ms. */
export const INDEX_SHARDS_MAX = 1_000;
const CARRIED_BYTES_MAX = 64 * 1024;
const CARRIED_ROWS_PER_SHARD = 64;

/**
 * Settings of a connection that runs no other query: every access is by key, and one plan serves
 * every call.
 */
export const INDEX_SESSION = `set enable_seqscan = off; set enable_hashjoin = off;
  set enable_mergejoin = off; set jit = off; set plan_cache_mode = force_generic_plan`;

// Shares out changes by their distance from the known revision, so that one shard that moved far does not
// starve many that moved a little.
const TEXT = `
  select m.n::int as n, m.epoch, m.seq, m.stamp, m.version, m.stamp_at_known,
    m.change_seq, m.change_stamp, m.change_version,
    case when m.bytes_so_far <= ${CARRIED_BYTES_MAX} then m.changes end as changes
  from (
    select h.n, h.epoch, h.seq, h.stamp, h.version,
      case when h.epoch = h.known_epoch and h.known_seq > 0 and h.seq > h.known_seq then (
        select a.stamp from tuple_change a
        where a.project_id = h.project_id and a.tenant_id = h.tenant_id and a.seq = h.known_seq
      ) end as stamp_at_known,
      c.seq as change_seq, c.stamp as change_stamp, c.settings_version as change_version, c.changes,
      c.seq - h.known_seq as distance,
      sum(octet_length(c.changes)) over (order by c.seq - h.known_seq, h.n) as bytes_so_far
    from (
      select k.n, k.project_id, k.tenant_id, k.epoch as known_epoch, k.seq as known_seq,
        coalesce(s.epoch, gatehouse_epoch()) as epoch, coalesce(s.seq, 0) as seq,
        coalesce(s.stamp, 0) as stamp, coalesce(s.retained_from, 1) as retained_from, p.version
      from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
        with ordinality k (project_id, tenant_id, epoch, seq, stamp, version, n)
      left join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id
      left join project p on p.id = k.project_id
      where coalesce(s.seq, 0) <> k.seq or coalesce(s.stamp, 0) is distinct from k.stamp
        or coalesce(s.epoch, gatehouse_epoch()) <> k.epoch or p.version is distinct from k.version
    ) h
    left join lateral (
      select t.seq, t.stamp, t.settings_version, t.changes from tuple_change t
      where t.project_id = h.project_id and t.tenant_id = h.tenant_id and t.seq > h.known_seq
        and h.epoch = h.known_epoch and h.seq > h.known_seq and h.known_seq + 1 >= h.retained_from
      order by t.seq limit ${CARRIED_ROWS_PER_SHARD}
    ) c on true
  ) m
  where m.change_seq is null or m.bytes_so_far <= ${CARRIED_BYTES_MAX} or m.distance = 1
  order by m.n, m.change_seq`;

type ReadIndexRow = {
  readonly n: number;
  readonly epoch: string;
  readonly seq: string;
  readonly stamp: string;
  readonly version: string | null;
  readonly stamp_at_known: string | null;
  readonly change_seq: string | null;
  readonly change_stamp: string | null;
  readonly change_version: string | null;
  readonly changes: string | null;
};

/**
 * Positions of the shards that moved: unmoved ones, with unchanged settings, have no row. Also, up
 * to 64 KiB in all, the changes after the known revisions. Errors: the driver's; after `timeoutMs`
 * the connection is useless. Cost: one prepared statement, two lookups by key for each ask.
 */
export async function readIndex(
  client: ClientBase,
  params: readonly IndexParams[],
  timeoutMs: number,
): Promise<readonly IndexRow[]> {
  const { rows } = await client.query<ReadIndexRow>({
    name: 'read-index',
    text: TEXT,
    values: [
      textArray(params.map((ask) => ask.projectId)),
      textArray(params.map((ask) => ask.tenantId)),
      plainArray(params.map((ask) => ask.epoch)),
      plainArray(params.map((ask) => ask.revision)),
      plainArray(params.map((ask) => (ask.forkId === '' ? null : ask.forkId))),
      plainArray(params.map((ask) => ask.settingsVersion)),
    ],
    query_timeout: timeoutMs,
  } as { name: string; text: string; values: string[] });
  return rowsOf(rows);
}

function rowsOf(rows: readonly ReadIndexRow[]): readonly IndexRow[] {
  const found: (IndexRow & { readonly changes: IndexChange[] })[] = [];
  for (const row of rows) {
    const at = row.n - 1;
    let last = found.at(-1);
    if (last?.at !== at) {
      last = {
        at,
        epoch: Number(row.epoch),
        revision: Number(row.seq),
        forkId: row.stamp,
        settingsVersion: row.version === null ? null : Number(row.version),
        forkIdAtKnown: row.stamp_at_known ?? '',
        changes: [],
      };
      found.push(last);
    }
    if (row.change_seq === null || row.changes === null) continue;
    last.changes.push({
      revision: Number(row.change_seq),
      forkId: row.change_stamp ?? '',
      settingsVersion: Number(row.change_version),
      changes: row.changes,
    });
  }
  return found;
}
