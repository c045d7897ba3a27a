// The dataset as workers take it, shared by benchmarks; yields nothing by itself.
import type { ShardKey } from '../src/model/relation-tuple.ts';
import type { TupleChange } from '../src/model/relation-tuple.ts';
import type { NeutralTuple, World } from '../test/support/dataset/world.ts';
import { MemoryShardSource } from '../test/workers/memory-shard-source.ts';

export const BENCH_SHARD: ShardKey = { projectId: 'bench', tenantId: '' };
export const BENCH_SEED = 7;

/** The dataset as a store in memory, for workers without Postgres. */
export function memorySourceOf(world: World): MemoryShardSource {
  const source = new MemoryShardSource();
  source.rowsPerSlice = 1_000_000_000;
  source.commit(BENCH_SHARD, world.tuples.map(insertOf));
  return source;
}

/** The write that makes a tuple of the dataset. */
export function insertOf(tuple: NeutralTuple): TupleChange {
  const colon = tuple.subject.indexOf(':');
  const hash = tuple.subject.indexOf('#');
  const namespace = tuple.subject.slice(0, colon);
  const objectId = tuple.subject.slice(colon + 1, hash < 0 ? undefined : hash);
  const relation = hash < 0 ? '' : tuple.subject.slice(hash + 1);
  return {
    op: 'insert',
    tuple: {
      namespace: tuple.namespace,
      objectId: tuple.object_id,
      relation: tuple.relation,
      subject:
        namespace === 'user'
          ? { kind: 'user', userId: objectId }
          : { kind: 'set', namespace, objectId, relation },
    },
  };
}
