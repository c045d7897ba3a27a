// Yields nanoseconds per shard whose worker is found.
// Run: npm run bench -- shard-routing
import { slotOfShard } from '../../src/protocol/shard-routing.ts';
import { listOf, type MicroBench } from '../harness/micro-bench.ts';

const OPERATIONS = 1_000;

export const shardRouting: MicroBench = {
  name: 'shard-routing',
  yields: 'ns per shard whose worker is found',
  operations: OPERATIONS,
  prepare() {
    const shards = listOf(OPERATIONS, (i) => ({
      projectId: 'production',
      tenantId: `tenant-${i * 7919}`,
    }));
    return () => {
      let sum = 0;
      for (const shard of shards) sum += slotOfShard(shard, 7);
      return sum;
    };
  },
};
