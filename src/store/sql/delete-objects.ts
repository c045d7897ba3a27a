import type { ClientBase } from 'pg';
import type { ShardKey } from '../../model/relation-tuple.ts';
import type { DeletedRow } from './delete-tuples-where.ts';
import { textArray } from './write-group.ts';

export type ObjectName = { readonly namespace: string; readonly objectId: string };

export type DeleteObjects = {
  readonly shard: ShardKey;
  readonly objects: readonly ObjectName[];
  readonly commitId: string;
  readonly rpc: string;
  readonly actingUserId: string | null;
  readonly requestId: string;
};

type Row = {
  readonly epoch: string;
  readonly seq: string;
  readonly stamp: string;
  readonly deleted: string;
  readonly changes: string;
};

/**
 * Deletes every tuple on the objects, and every one whose subject is one of them or a userset of it,
 * as one seq; undefined where there were none. The caller's transaction holds the shard.
 */
export async function deleteObjects(
  client: ClientBase,
  options: DeleteObjects,
): Promise<DeletedRow | undefined> {
  const { shard, objects } = options;
  const { rows } = await client.query<Row>(
    `select epoch::text as epoch, seq::text as seq, stamp::text as stamp, deleted::text as deleted,
       changes
     from gatehouse_delete_objects($1, $2, $3, $4, $5::uuid, $6, $7, $8)`,
    [
      shard.projectId,
      shard.tenantId,
      textArray(objects.map((object) => object.namespace)),
      textArray(objects.map((object) => object.objectId)),
      options.commitId,
      options.rpc,
      options.actingUserId,
      options.requestId,
    ],
  );
  const row = rows[0];
  if (row === undefined) return undefined;
  return {
    tenantId: shard.tenantId,
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    stamp: row.stamp,
    deleted: Number(row.deleted),
    changes: row.changes,
  };
}
