import { PackingShardIndex } from '../../src/workers/indexes/packing-index.ts';
import { SmallShards } from '../../src/workers/indexes/small-shards.ts';
import type { IndexUser } from '../../src/workers/shard/ports.ts';

/** What small shards share, without evaluators; `packedRowsMax` 0 folds none. */
export function smallShards(
  bytesMax = 1e9,
  packedRowsMax?: number,
  hydratedMax?: number,
): SmallShards {
  const cacheBytesOf = (): number => 0;
  return new SmallShards({ bytesMax, packedRowsMax, hydratedMax, cacheBytesOf });
}

/** The index of the only shard of a worker. */
export function packingIndex(
  user: IndexUser = { isInUse: false },
  shared: SmallShards = smallShards(),
): PackingShardIndex {
  return new PackingShardIndex(shared, user);
}
