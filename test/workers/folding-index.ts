import { FoldingShardIndex } from '../../src/workers/shard/folding-index.ts';
import type { IndexUser } from '../../src/workers/shard/ports.ts';
import { SmallShards } from '../../src/workers/shard/small-shards.ts';

/** What small shards share, without evaluators; `foldedRowsMax` 0 folds none. */
export function smallShards(
  bytesMax = 1e9,
  foldedRowsMax?: number,
  unfoldedMax?: number,
): SmallShards {
  const cacheBytesOf = (): number => 0;
  return new SmallShards({ bytesMax, foldedRowsMax, unfoldedMax, cacheBytesOf });
}

/** The index of the only shard of a worker. */
export function foldingIndex(
  user: IndexUser = { isInUse: false },
  shared: SmallShards = smallShards(),
): FoldingShardIndex {
  return new FoldingShardIndex(shared, user);
}
