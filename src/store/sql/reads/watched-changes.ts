import type { Pool } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';

/** A write of one shard, with what is known of it. */
export type WatchedRow = {
  readonly tenantId: string;
  readonly epoch: number;
  readonly revision: number;
  /** Changes packed like `tuple_change.changes`. */
  readonly changes: string;
  readonly committedAtUs: bigint;
  readonly rpc: string;
  readonly actingUserId: string;
  readonly requestId: string;
};

/** Head revision of a shard, and the range of its changes that are kept. */
export type WatchedHeadRevision = {
  readonly epoch: number;
  readonly revision: number;
  readonly retainedFrom: number;
  /** Version of the newest model in force; 0 if none. */
  readonly modelVersion: number;
  readonly rows: readonly WatchedRow[];
};

/** Writes of a project that a later snapshot of the database shows, and an earlier one did not. */
export type WatchedWindow = {
  /** Epoch of the deployment. */
  readonly epoch: number;
  /** The later snapshot, as text; rows of it that are left come with the next call. */
  readonly to: string;
  readonly modelVersion: number;
  /** By tenant and seq. */
  readonly rows: readonly WatchedRow[];
  /** Whether rows of the window are left. */
  readonly hasMore: boolean;
  /** Tenants whose changes since the earlier snapshot are not all kept, with their head revisions; undefined: too many to name. */
  readonly pruned:
    | readonly {
        readonly tenantId: string;
        readonly epoch: number;
        readonly revision: number;
        /** By an import as a whole into a tenant without tuples; what came after it is kept. */
        readonly isReplaced: boolean;
      }[]
    | undefined;
};

/** A page ends after the row that reaches either. */
const ROWS_MAX = 500;
const BYTES_MAX = 1024 * 1024;
/** Rows of `WatchedWindow.pruned` at most. */
const PRUNED_MAX = 1_000;

type WatchedChangeRow = {
  readonly tenant_id: string;
  readonly epoch: string;
  readonly seq: string | null;
  readonly changes: string;
  readonly committed_us: string;
  readonly rpc: string;
  readonly acting_user: string | null;
  readonly request_id: string;
};

type PrunedRow = {
  readonly tenant_id: string;
  readonly epoch: string;
  readonly seq: string;
  readonly is_replaced: boolean;
};

const MODEL_VERSION = `coalesce((select max(v.version) from model_version v
      where v.project_id = $1 and v.state = 2), 0)`;
const COLUMNS = `c.tenant_id, c.seq, c.changes, c.rpc, c.acting_user, c.request_id,
    (extract(epoch from c.created_at) * 1000000)::bigint as committed_us`;

const SHARD = `
  select h.epoch, h.head_seq, h.retained_from, h.model_version, ${COLUMNS}
  from (
    select coalesce(s.epoch, gatehouse_epoch()) as epoch, coalesce(s.seq, 0) as head_seq,
      coalesce(s.retained_from, 1) as retained_from, ${MODEL_VERSION} as model_version
    from (values (1)) one left join shard s on s.project_id = $1 and s.tenant_id = $2
  ) h left join lateral (
    select p.* from (
      select t.*, sum(octet_length(t.changes)) over (order by t.seq) - octet_length(t.changes) as before
      from tuple_change t
      where t.project_id = $1 and t.tenant_id = $2 and t.seq > $3::bigint and $3::bigint + 1 >= h.retained_from
      order by t.seq limit ${ROWS_MAX}
    ) p where p.before < ${BYTES_MAX}
  ) c on true
  order by c.seq`;

/** The changes of a shard after `afterRevision`, of one snapshot. Errors: the driver's. Cost: one index range. */
export async function selectWatchedShard(
  pool: Pool,
  { projectId, tenantId }: ShardKey,
  afterRevision: number,
): Promise<WatchedHeadRevision> {
  type Found = WatchedChangeRow & {
    readonly head_seq: string;
    readonly retained_from: string;
    readonly model_version: string;
  };
  const { rows } = await pool.query<Found>({
    name: 'watched-shard',
    text: SHARD,
    values: [projectId, tenantId, afterRevision],
  });
  const [first] = rows;
  if (first === undefined) throw new Error('a shard has a head');
  return {
    epoch: Number(first.epoch),
    revision: Number(first.head_seq),
    retainedFrom: Number(first.retained_from),
    modelVersion: Number(first.model_version),
    rows: rows.filter(({ seq: revision }) => revision !== null).map(rowOf),
  };
}

const PROJECT = `
  with w as materialized (
    select $2::pg_snapshot as since, coalesce($3::pg_snapshot, pg_current_snapshot()) as upto
  )
  select w.upto::text as upto, gatehouse_epoch() as deployment_epoch, ${MODEL_VERSION} as model_version,
    s.epoch, ${COLUMNS}
  from w left join lateral (
    select p.* from (
      select t.*, row_number() over (order by t.tenant_id, t.seq) as n,
        sum(octet_length(t.changes)) over (order by t.tenant_id, t.seq) - octet_length(t.changes) as before
      from tuple_change t
        join shard o on o.project_id = t.project_id and o.tenant_id = t.tenant_id and o.epoch_base_seq < t.seq
      where t.project_id = $1 and t.txid >= pg_snapshot_xmin(w.since) and t.txid < pg_snapshot_xmax(w.upto)
        and not pg_visible_in_snapshot(t.txid, w.since) and pg_visible_in_snapshot(t.txid, w.upto)
        and (t.tenant_id, t.seq) > ($4, $5::bigint)
      order by t.tenant_id, t.seq limit ${ROWS_MAX}
    ) p where p.before < ${BYTES_MAX}
  ) c on true left join shard s on s.project_id = $1 and s.tenant_id = c.tenant_id
  order by c.tenant_id, c.seq`;

// Changes that some snapshot after this one would show, and that are gone. An import as a whole
// leaves one that names no tuple, the first that is kept, by the transaction that pruned the
// others; retention leaves none such.
const PRUNED = `
  select s.tenant_id, s.epoch, s.seq, exists (
    select 1 from tuple_change t
    where t.project_id = s.project_id and t.tenant_id = s.tenant_id and t.seq = s.retained_from
      and t.txid = s.pruned_txid and t.changes = '[]'
  ) as is_replaced
  from shard s
  where s.project_id = $1 and s.pruned_txid >= pg_snapshot_xmin($2::pg_snapshot)
    and not pg_visible_in_snapshot(s.pruned_txid, $2::pg_snapshot)
  order by s.tenant_id limit ${PRUNED_MAX + 1}`;

/**
 * Writes of a project's tenants between the snapshot `since` and `upto` (null: now), after
 * (`afterTenant`, `afterRevision`) in the order of the window. A write that holds its shard's lock
 * sees all earlier ones of the shard, hence so does each snapshot that shows it: windows that
 * follow each other show every write once, and those of a shard in order. Errors: the driver's.
 * Cost: the changes since the oldest transaction that was open at `since`.
 */
export async function selectWatchedProject(
  pool: Pool,
  projectId: string,
  since: string,
  upto: string | null,
  after: readonly [tenant: string, revision: number],
): Promise<WatchedWindow> {
  type Found = WatchedChangeRow & {
    readonly upto: string;
    readonly deployment_epoch: string;
    readonly model_version: string;
  };
  const { rows } = await pool.query<Found>({
    name: 'watched-project',
    text: PROJECT,
    values: [projectId, since, upto, after[0], after[1]],
  });
  const [first] = rows;
  if (first === undefined) throw new Error('a window has its borders');
  const found = rows.filter(({ seq: revision }) => revision !== null).map(rowOf);
  // After the rows were read: what was pruned before that is seen here.
  const { rows: pruned } = await pool.query<PrunedRow>({
    name: 'watched-pruned',
    text: PRUNED,
    values: [projectId, since],
  });
  const bytes = found.reduce((sum, { changes }) => sum + Buffer.byteLength(changes), 0);
  return {
    epoch: Number(first.deployment_epoch),
    to: first.upto,
    modelVersion: Number(first.model_version),
    rows: found,
    hasMore: found.length === ROWS_MAX || bytes >= BYTES_MAX,
    pruned:
      pruned.length > PRUNED_MAX
        ? undefined
        : pruned.map(({ tenant_id: tenantId, epoch, seq: revision, is_replaced: isReplaced }) => ({
            tenantId,
            epoch: Number(epoch),
            revision: Number(revision),
            isReplaced,
          })),
  };
}

/** The present snapshot, the deployment's epoch and the project's model: where a follower of all begins. */
export async function selectWatchStart(
  pool: Pool,
  projectId: string,
): Promise<{ readonly snapshot: string; readonly epoch: number; readonly modelVersion: number }> {
  const { rows } = await pool.query<{ snapshot: string; epoch: string; model_version: string }>({
    name: 'watch-start',
    text: `select pg_current_snapshot()::text as snapshot, gatehouse_epoch() as epoch,
      ${MODEL_VERSION} as model_version`,
    values: [projectId],
  });
  const [row] = rows;
  if (row === undefined) throw new Error('there is a snapshot');
  return {
    snapshot: row.snapshot,
    epoch: Number(row.epoch),
    modelVersion: Number(row.model_version),
  };
}

function rowOf(row: WatchedChangeRow): WatchedRow {
  return {
    tenantId: row.tenant_id,
    epoch: Number(row.epoch),
    revision: Number(row.seq),
    changes: row.changes,
    committedAtUs: BigInt(row.committed_us),
    rpc: row.rpc,
    actingUserId: row.acting_user ?? '',
    requestId: row.request_id,
  };
}
