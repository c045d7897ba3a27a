import type { ClientBase } from 'pg';
import { textArray } from '../../postgres/array-literals.ts';

/**
 * Locks the rows of these shards, sorted by the caller, until the transaction ends, which may then write
 * as `instanceId` (null: none is registered at all). Errors: `isFenced` where that is not registered.
 */
export async function lockShards(
  client: ClientBase,
  instanceId: string | null,
  shards: readonly { readonly projectId: string; readonly tenantId: string }[],
): Promise<void> {
  await client.query({
    name: 'gatehouse_lock_shards',
    text: 'select epochs, seqs from gatehouse_lock_shards($1::uuid, $2, $3)',
    values: [
      instanceId,
      textArray(shards.map((shard) => shard.projectId)),
      textArray(shards.map((shard) => shard.tenantId)),
    ],
  });
}
