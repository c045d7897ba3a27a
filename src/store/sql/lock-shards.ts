import type { ClientBase } from 'pg';
import { textArray } from './write-group.ts';

/** Locks the rows of these shards, sorted by the caller, until the transaction ends. */
export async function lockShards(
  client: ClientBase,
  shards: readonly { readonly projectId: string; readonly tenantId: string }[],
): Promise<void> {
  await client.query({
    name: 'gatehouse_lock_shards',
    text: 'select epochs, seqs from gatehouse_lock_shards($1, $2)',
    values: [
      textArray(shards.map((shard) => shard.projectId)),
      textArray(shards.map((shard) => shard.tenantId)),
    ],
  });
}
