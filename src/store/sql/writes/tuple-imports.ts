import type { ClientBase, Pool } from 'pg';
import {
  type RelationTuple,
  type ShardKey,
  subjectFromColumns,
} from '../../../model/relation-tuple.ts';
import { copyIn } from '../../feed/copy-in.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { StoredTupleRow } from '../reads/select-tuples.ts';

/** A part of an import that has arrived. */
export type ImportPart = { readonly rowCount: number; readonly digest: Buffer };

/** State of an import. */
export type ImportState = {
  readonly importNo: string;
  /** Rows of the whole; null: its stream has not ended yet. */
  readonly total: number | null;
  readonly applied: number;
  readonly written: number;
  /** Position of the last write; null: there was none. */
  readonly position: { readonly epoch: number; readonly revision: number } | null;
  /** In order. */
  readonly parts: readonly ImportPart[];
};

/** Values that are stored with a commit of an import. */
export type ImportCommit = {
  readonly forkId: string;
  readonly commitId: string;
  readonly rpc: string;
  readonly actingUserId: string | null;
  readonly requestId: string;
};

const ROW_COLUMNS = `namespace, object_id, relation, subject_namespace, subject_id, subject_relation,
  expires_at_us, condition_name, condition_params`;
const KEY_COLUMNS = `namespace, object_id, relation, subject_namespace, subject_id, subject_relation`;

/**
 * Begins an import, or continues with the one of this id (null: none does), as `attempt`: what an earlier attempt does from
 * now on is refused.
 */
export async function beginImport(
  pool: Pool,
  { projectId, tenantId }: ShardKey,
  importId: string | null,
  attempt: string,
): Promise<ImportState> {
  return await inTransaction(pool, async (client) => {
    const { rows } = await client.query<{
      import_no: string;
      total: string | null;
      applied: string;
      written: string;
      epoch: string | null;
      seq: string | null;
    }>(
      `insert into tuple_import as i (project_id, tenant_id, import_id, attempt)
       values ($1, $2, $3, $4)
       on conflict (project_id, tenant_id, import_id) do update
         set attempt = excluded.attempt, touched_at = now()
       returning i.import_no::text as import_no, i.total::text as total, i.applied::text as applied,
         i.written::text as written, i.epoch::text as epoch, i.seq::text as seq`,
      [projectId, tenantId, importId, attempt],
    );
    const row = rows[0];
    if (row === undefined) throw new Error('an upsert has a row');
    const parts = await client.query<{ row_count: number; digest: Buffer }>(
      'select row_count, digest from tuple_import_part where import_no = $1 order by part',
      [row.import_no],
    );
    return {
      importNo: row.import_no,
      total: row.total === null ? null : Number(row.total),
      applied: Number(row.applied),
      written: Number(row.written),
      position:
        row.epoch === null ? null : { epoch: Number(row.epoch), revision: Number(row.seq ?? 0) },
      parts: parts.rows.map((part) => ({ rowCount: part.row_count, digest: part.digest })),
    };
  });
}

/**
 * Stages a part: `lines` are its rows in the text format of COPY, as `copyLine` makes them. All or nothing. Errors: `isAdopted`; `isUnavailable`: the
 * outcome is unknown, and the next attempt finds out.
 */
export async function stagePart(
  client: ClientBase,
  importNo: string,
  attempt: string,
  part: number,
  staged: ImportPart,
  lines: Buffer,
): Promise<void> {
  const literal = (text: string): string => client.escapeLiteral(text);
  const digest = literal(`\\x${staged.digest.toString('hex')}`);
  await copyIn(
    client,
    `select gatehouse_import_part(${literal(importNo)}::bigint, ${literal(attempt)}::uuid,
       ${Math.trunc(part)}, ${Math.trunc(staged.rowCount)}, ${digest}::bytea);
     copy tuple_import_row (import_no, n, ${ROW_COLUMNS}, written_at) from stdin`,
    lines,
  );
}

/** Notes that the stream has ended. False: another attempt has adopted. */
export async function endImportStream(
  pool: Pool,
  importNo: string,
  attempt: string,
  total: number,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update tuple_import set total = $3, touched_at = now() where import_no = $1 and attempt = $2`,
    [importNo, attempt, total],
  );
  return rowCount === 1;
}

/** Result of a chunk. */
export type AppliedChunk = {
  readonly epoch: number;
  /** Reached before, where nothing was written. */
  readonly revision: number;
  readonly written: number;
  readonly changes: string | null;
  readonly settingsVersion: number;
};

/** Writes the rows after `from` up to `to` to the shard, which the caller's transaction has locked. Errors: `isAdopted`. */
export async function applyImportChunk(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  {
    importNo,
    attempt,
    rules,
  }: { readonly importNo: string; readonly attempt: string; readonly rules: number },
  from: number,
  to: number,
  commit: ImportCommit,
): Promise<AppliedChunk> {
  const { rows } = await client.query<{
    epoch: string;
    seq: string;
    written: string;
    changes: string | null;
    settings_version: string;
  }>({
    name: 'gatehouse_import_rows',
    text: `select epoch::text as epoch, seq::text as seq, written::text as written, changes,
        settings_version::text as settings_version
      from gatehouse_import_rows($1::bigint, $2::uuid, $3::bigint, $4::bigint, $5::bigint, $6, $7,
        $8::bigint, $9::uuid, $10, $11, $12)`,
    values: [
      importNo,
      attempt,
      String(rules),
      String(from),
      String(to),
      projectId,
      tenantId,
      commit.forkId,
      commit.commitId,
      commit.rpc,
      commit.actingUserId,
      commit.requestId,
    ],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('a function with results has a row');
  return {
    epoch: Number(row.epoch),
    revision: Number(row.seq),
    written: Number(row.written),
    changes: row.changes,
    settingsVersion: Number(row.settings_version),
  };
}

/** Head revision of a shard, and whether it holds no tuple. */
export type EmptyCheck = {
  readonly epoch: number;
  readonly revision: number;
  readonly isEmpty: boolean;
};

/** In one snapshot. Cost: two lookups by key. */
export async function checkEmpty(
  client: ClientBase | Pool,
  { projectId, tenantId }: ShardKey,
): Promise<EmptyCheck> {
  const { rows } = await client.query<{ epoch: string; seq: string; is_empty: boolean }>({
    name: 'look_whether_empty',
    text: `select coalesce(s.epoch, gatehouse_epoch())::text as epoch,
        coalesce(s.seq, 0)::text as seq,
        not exists (select from relation_tuple t where t.project_id = $1 and t.tenant_id = $2)
          as is_empty
      from (values (1)) one left join shard s on s.project_id = $1 and s.tenant_id = $2`,
    values: [projectId, tenantId],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('a left join of one row has a row');
  return { epoch: Number(row.epoch), revision: Number(row.seq), isEmpty: row.is_empty };
}

/**
 * Inserts the rows after `from` up to `to` as they will be at `revision`, without the shard's lock: nobody sees them before the
 * transaction ends with `finishWhole`. Returns how many tuples were new or changed. `isDistinct`: no tuple of these was inserted before,
 * which saves a fifth of the time; one that was is a conflict, which ends the transaction (`violatedConstraint`).
 */
export async function insertWhole(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  importNo: string,
  from: number,
  to: number,
  revision: number,
  isDistinct: boolean,
): Promise<number> {
  const onConflict = `on conflict (project_id, tenant_id, ${KEY_COLUMNS}) do update
        set expires_at_us = excluded.expires_at_us, condition_name = excluded.condition_name,
          condition_params = excluded.condition_params
        where (t.expires_at_us, t.condition_name, t.condition_params)
          is distinct from (excluded.expires_at_us, excluded.condition_name, excluded.condition_params)`;
  const { rowCount } = await client.query({
    name: `insert_whole_import_${isDistinct}`,
    text: `insert into relation_tuple as t (project_id, tenant_id, ${ROW_COLUMNS}, seq, written_at)
      select distinct on (${KEY_COLUMNS}) $1::text, $2::text, ${ROW_COLUMNS}, $6::bigint,
        coalesce(r.written_at, now())
      from tuple_import_row r where r.import_no = $3::bigint and r.n > $4::bigint and r.n <= $5::bigint
      order by ${KEY_COLUMNS}, r.n desc ${isDistinct ? '' : onConflict}`,
    values: [projectId, tenantId, importNo, String(from), String(to), String(revision)],
  });
  return rowCount ?? 0;
}

/** Whether another transaction waits for a row that this one has inserted. */
export async function isWaitedFor(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ waited: boolean }>({
    name: 'is_waited_for',
    text: `select exists (select from pg_locks l where l.locktype = 'transactionid'
      and not l.granted and l.transactionid = pg_current_xact_id()::xid) as waited`,
  });
  return rows[0]?.waited === true;
}

/** Arguments of the last step of an import into an empty shard. */
export type WholeImport = {
  readonly importNo: string;
  readonly attempt: string;
  /** Version of the rules against which the rows were checked. */
  readonly rules: number;
  readonly total: number;
  readonly written: number;
  /** Epoch of the shard when it was found empty. */
  readonly epoch: number;
  /** That the rows carry: two above the one at which the shard was found empty. */
  readonly revision: number;
};

/**
 * Moves the shard, which is locked by now, to the inserted rows. Returns the version of the project's settings, or
 * undefined where the shard is not as it was found: the transaction must be given up. Errors: `isAdopted`.
 */
export async function finishWhole(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  whole: WholeImport,
  commit: ImportCommit,
): Promise<number | undefined> {
  const { rows } = await client.query<{ found_as_left: boolean; settings_version: string }>({
    name: 'gatehouse_import_whole',
    text: `select found_as_left, settings_version::text as settings_version
      from gatehouse_import_whole($1::bigint, $2::uuid, $3::bigint, $4::bigint, $5::bigint, $6, $7,
        $8::bigint, $9::bigint, $10::bigint, $11::uuid, $12, $13, $14)`,
    values: [
      whole.importNo,
      whole.attempt,
      String(whole.rules),
      String(whole.total),
      String(whole.written),
      projectId,
      tenantId,
      String(whole.epoch),
      String(whole.revision),
      commit.forkId,
      commit.commitId,
      commit.rpc,
      commit.actingUserId,
      commit.requestId,
    ],
  });
  const row = rows[0];
  return row?.found_as_left === true ? Number(row.settings_version) : undefined;
}

/** Staged rows after `from`, in the order of the stream, at most `limit`. */
export async function selectStaged(
  pool: Pool,
  importNo: string,
  from: number,
  limit: number,
): Promise<readonly RelationTuple[]> {
  const { rows } = await pool.query<StoredTupleRow>(
    `select namespace, object_id, relation, subject_namespace, subject_id, subject_relation,
       expires_at_us::text as expires_at_us, condition_name, condition_params
     from tuple_import_row where import_no = $1 and n > $2 order by n limit $3`,
    [importNo, from, limit],
  );
  return rows.map((row) => ({
    namespace: row.namespace,
    objectId: row.object_id,
    relation: row.relation,
    subject: subjectFromColumns(row.subject_namespace, row.subject_id, row.subject_relation),
    expiresAtUs: row.expires_at_us === null ? undefined : BigInt(row.expires_at_us),
    conditionName: row.condition_name ?? undefined,
    conditionParams: row.condition_params ?? undefined,
  }));
}

/** The rows after `from` up to `to` in the form of a change, for records of what was imported. */
export async function selectImportedChanges(
  pool: Pool,
  importNo: string,
  from: number,
  to: number,
): Promise<string> {
  const { rows } = await pool.query<{ changes: string | null }>(
    `select '[' || string_agg(json_build_array(1, r.namespace, r.object_id, r.relation,
        r.subject_namespace, r.subject_id, r.subject_relation,
        r.expires_at_us::text, r.condition_name, r.condition_params)::text, ',' order by r.n) || ']'
        as changes
      from tuple_import_row r where r.import_no = $1 and r.n > $2 and r.n <= $3`,
    [importNo, String(from), String(to)],
  );
  return rows[0]?.changes ?? '[]';
}

/** Deletes up to `rowsMax` staged rows of an import; returns how many. */
export async function deleteStagedRows(
  pool: Pool,
  importNo: string,
  rowsMax: number,
): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from tuple_import_row r where r.ctid = any (array(
       select o.ctid from tuple_import_row o where o.import_no = $1 limit $2))`,
    [importNo, rowsMax],
  );
  return rowCount ?? 0;
}

/** Notes that an import is still under way. */
export async function touchImport(pool: Pool, importNo: string): Promise<void> {
  await pool.query('update tuple_import set touched_at = now() where import_no = $1', [importNo]);
}

/** Ends what an attempt may still have under way: nothing is staged any more. null: whichever attempt it is. */
export async function retireImport(
  pool: Pool,
  importNo: string,
  attempt: string | null,
): Promise<void> {
  await pool.query(
    `update tuple_import set attempt = gen_random_uuid()
     where import_no = $1 and ($2::uuid is null or attempt = $2)`,
    [importNo, attempt],
  );
}

/** Forgets an import whose staged rows are gone. */
export async function deleteImport(pool: Pool, importNo: string): Promise<void> {
  await pool.query('delete from tuple_import where import_no = $1', [importNo]);
}

/** Imports that nobody has touched for this long, the oldest first. */
export async function selectOldImports(
  pool: Pool,
  ageMaxMs: number,
  limit: number,
): Promise<readonly string[]> {
  const { rows } = await pool.query<{ import_no: string }>(
    `select import_no::text as import_no from tuple_import
     where touched_at < now() - $1::float8 * interval '1 millisecond'
     order by touched_at limit $2`,
    [ageMaxMs, limit],
  );
  return rows.map((row) => row.import_no);
}
