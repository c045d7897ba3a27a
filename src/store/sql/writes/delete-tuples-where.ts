import type { ClientBase } from 'pg';
import { textArray } from '../../postgres/array-literals.ts';

export type DeleteWhere = {
  /** Same as in writeGroup. */
  readonly instanceId: string | null;
  readonly projectId: string;
  /** Sorted; their shards are locked in this order. */
  readonly tenantIds: readonly string[];
  /** All tuples of this concrete user… */
  readonly userId: string | null;
  /** …or those that expired at or before this time. */
  readonly expiredByUs: bigint | null;
  /** Rows of each shard, at most: they become one change. */
  readonly rowsMax: number;
  readonly commitId: string;
  readonly rpc: string;
  readonly actingUserId: string | null;
  readonly requestId: string;
};

export type DeletedRow = {
  readonly tenantId: string;
  readonly epoch: number;
  readonly revision: number;
  readonly forkId: string;
  readonly deleted: number;
  readonly changes: string;
  /** Version of the project's settings. */
  readonly settingsVersion: number;
};

type DeletedColumns = {
  readonly tenant: string;
  readonly epoch: string;
  readonly seq: string;
  readonly stamp: string;
  readonly deleted: string;
  readonly changes: string;
  readonly settings_version: string;
};

/** Deletes tuples by condition; one row per shard that held any. A repetition finds the first run's. */
export async function deleteTuplesWhere(
  client: ClientBase,
  where: DeleteWhere,
): Promise<DeletedRow[]> {
  const { rows } = await client.query<DeletedColumns>(
    `select tenant, epoch::text as epoch, seq::text as seq, stamp::text as stamp,
       deleted::text as deleted, changes, settings_version::text as settings_version
     from gatehouse_delete_where(
       $1::uuid, $2, $3, $4, $5::bigint, $6::int, $7::uuid, $8, $9, $10)`,
    [
      where.instanceId,
      where.projectId,
      textArray(where.tenantIds),
      where.userId,
      where.expiredByUs === null ? null : where.expiredByUs.toString(),
      where.rowsMax,
      where.commitId,
      where.rpc,
      where.actingUserId,
      where.requestId,
    ],
  );
  return rows.map((row) => ({
    tenantId: row.tenant,
    epoch: Number(row.epoch),
    revision: Number(row.seq),
    forkId: row.stamp,
    deleted: Number(row.deleted),
    changes: row.changes,
    settingsVersion: Number(row.settings_version),
  }));
}
