import type { ClientBase } from 'pg';
import { textArray } from '../../postgres/array-literals.ts';

/** An object of a shard, by namespace and id. */
export type ObjectKey = { readonly namespace: string; readonly objectId: string };

export type DeletedObjects = {
  readonly epoch: number;
  readonly revision: number;
  readonly forkId: string;
  readonly deleted: number;
  readonly changes: string;
  /** Version of the project's settings. */
  readonly settingsVersion: number;
};

type DeletedObjectRow = {
  readonly epoch: string;
  readonly seq: string;
  readonly stamp: string;
  readonly deleted: string;
  readonly changes: string;
  readonly settings_version: string;
};

/**
 * Deletes the tuples on `objects` and those whose subject is one of them or a userset of it. Inside
 * a transaction that holds the shard. Undefined where there were none. O(tuples deleted).
 */
export async function deleteObjectTuples(
  client: ClientBase,
  shard: { readonly projectId: string; readonly tenantId: string },
  objects: readonly ObjectKey[],
  record: {
    /** Same as in writeGroup. */
    readonly instanceId: string | null;
    readonly commitId: string;
    readonly rpc: string;
    readonly actingUserId: string | null;
    readonly requestId: string;
  },
): Promise<DeletedObjects | undefined> {
  const { rows } = await client.query<DeletedObjectRow>(
    `select epoch::text as epoch, seq::text as seq, stamp::text as stamp,
       deleted::text as deleted, changes, settings_version::text as settings_version
     from gatehouse_delete_objects($1::uuid, $2, $3, $4, $5, $6::uuid, $7, $8, $9)`,
    [
      record.instanceId,
      shard.projectId,
      shard.tenantId,
      textArray(objects.map((object) => object.namespace)),
      textArray(objects.map((object) => object.objectId)),
      record.commitId,
      record.rpc,
      record.actingUserId,
      record.requestId,
    ],
  );
  const row = rows[0];
  if (row === undefined) return undefined;
  return {
    epoch: Number(row.epoch),
    revision: Number(row.seq),
    forkId: row.stamp,
    deleted: Number(row.deleted),
    changes: row.changes,
    settingsVersion: Number(row.settings_version),
  };
}
