/** Tests that are run against mutants of files below a path; the first path that fits counts. */
const TESTS: readonly (readonly [path: string, tests: readonly string[]])[] = [
  [
    'src/engine/hot/',
    ['src/engine/hot/*.test.ts', 'test/engine/{hot-caches,warm-caches,cached-forms}.test.ts'],
  ],
  ['src/engine/bound/pair-table', ['src/engine/bound/pair-table.test.ts']],
  [
    'src/engine/',
    [
      'src/engine/{bound,general}/*.test.ts',
      'test/engine/{long-evaluations,slices,killer-graphs,engine-equals-reference}.test.ts',
    ],
  ],
  ['src/cache/', ['src/cache/*.test.ts']],
  ['src/model/consistency-token', ['src/model/consistency-token.test.ts']],
  ['src/model/conditions', ['src/model/conditions.test.ts']],
  ['src/model/namespace-model', ['src/model/{namespace-model,duplicate-key}.test.ts']],
  ['src/services/shard-heads', ['src/services/{shard-heads,read-positions}.test.ts']],
  ['src/services/read-positions', ['src/services/read-positions.test.ts']],
  ['src/services/commit-publisher', ['src/services/commit-publisher.test.ts']],
  ['src/services/write-group', ['src/services/write-group.test.ts']],
  ['src/workers/shard/shard-actor-state', ['src/workers/shard/shard-parts.test.ts']],
  ['src/workers/shard/shard-jobs', ['src/workers/shard/shard-parts.test.ts']],
  ['src/workers/shard/held-changes', ['src/workers/shard/shard-parts.test.ts']],
  ['src/workers/shard/load-places', ['src/workers/shard/shard-parts.test.ts']],
  ['src/workers/shard/model-registry', ['src/workers/shard/shard-parts.test.ts']],
  ['src/workers/shard/shard-index', ['test/workers/actor-steps.test.ts']],
  ['src/workers/shard/shard-actor', ['test/workers/{actor-steps,turns}.test.ts']],
  [
    'src/workers/shard/',
    [
      'src/workers/shard/*.test.ts',
      'test/workers/{actor-steps,turns,shard-actor,worker-pool}.test.ts',
    ],
  ],
  ['src/gateway/hot/', ['src/gateway/hot/*.test.ts']],
];

/** Globs of the tests for a source file. */
export function testsOf(file: string): readonly string[] {
  const found = TESTS.find(([path]) => file.startsWith(path));
  if (found === undefined) throw new Error(`no tests are known for ${file}: add them here`);
  return found[1];
}
