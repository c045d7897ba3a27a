import type { ClientBase, Pool } from 'pg';
import type { ShardKey } from '../../../model/relation-tuple.ts';

/** A write that named a key. */
export type KeyedWrite = {
  /** Digest of the request. */
  readonly digest: Buffer;
  readonly epoch: number;
  readonly revision: number;
};

/** Position of a shard that the caller's transaction has locked, and the write of this key. */
export type GuardedShard = {
  readonly epoch: number;
  readonly revision: number;
  readonly write: KeyedWrite | undefined;
};

/** Reads both in one statement; `key` '' if none. The shard has a row. */
export async function selectGuardedShard(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  key: string,
): Promise<GuardedShard> {
  const { rows } = await client.query<{
    epoch: string;
    seq: string;
    digest: Buffer | null;
    key_epoch: string;
    key_seq: string;
  }>({
    name: 'select_guarded_shard',
    text: `select s.epoch::text as epoch, s.seq::text as seq, k.digest,
        k.epoch::text as key_epoch, k.seq::text as key_seq
      from shard s left join tuple_write_key k
        on k.project_id = s.project_id and k.tenant_id = s.tenant_id and k.key = $3
      where s.project_id = $1 and s.tenant_id = $2`,
    values: [projectId, tenantId, key],
  });
  const row = rows[0];
  if (row === undefined) throw new Error('a locked shard has a row');
  const { digest } = row;
  const write =
    digest === null
      ? undefined
      : { digest, epoch: Number(row.key_epoch), revision: Number(row.key_seq) };
  return { epoch: Number(row.epoch), revision: Number(row.seq), write };
}

/** Remembers the write of a key, in the transaction of the write. */
export async function insertWriteKey(
  client: ClientBase,
  { projectId, tenantId }: ShardKey,
  key: string,
  { digest, epoch, revision }: KeyedWrite,
): Promise<void> {
  await client.query({
    name: 'insert_write_key',
    text: `insert into tuple_write_key (project_id, tenant_id, key, digest, epoch, seq)
      values ($1, $2, $3, $4, $5, $6)`,
    values: [projectId, tenantId, key, digest, String(epoch), String(revision)],
  });
}

/** Forgets up to `rowsMax` keys that are older; returns how many. */
export async function deleteWriteKeys(
  pool: Pool,
  ageMaxMs: number,
  rowsMax: number,
): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from tuple_write_key k where k.ctid = any (array(
       select o.ctid from tuple_write_key o
       where o.created_at < now() - $1::float8 * interval '1 millisecond'
       order by o.created_at limit $2))`,
    [ageMaxMs, rowsMax],
  );
  return rowCount ?? 0;
}
