/** Tests that are run against mutants of files below a path; the first path that fits counts. */
const TESTS: readonly (readonly [paths: readonly string[], tests: readonly string[]])[] = [
  [
    ['src/engine/hot/hot-evaluator.ts'],
    ['test/engine/{cached-forms,long-evaluations,exact-sets}.test.ts'],
  ],
  [
    ['src/engine/hot/hot-set-check.ts', 'src/engine/hot/set-target.ts'],
    ['test/engine/{exact-sets,userset-cases}.test.ts'],
  ],
  [
    ['src/engine/hot/hot-conditions.ts'],
    ['test/engine/{hot-trees,declared-conditions,engine-equals-reference}.test.ts'],
  ],
  [['src/engine/hot/object-table.ts'], ['src/engine/hot/object-table.test.ts']],
  [
    ['src/engine/hot/membership-cache.ts'],
    ['test/engine/{closure-cache,cached-forms,hot-caches}.test.ts'],
  ],
  [['src/engine/hot/ancestor-cache.ts'], ['test/engine/{cached-forms,hot-caches}.test.ts']],
  [
    ['src/engine/hot/'],
    [
      'src/engine/hot/*.test.ts',
      'test/engine/{hot-check,hot-search,hot-trees,hot-caches,warm-caches,cached-forms}.test.ts',
      'test/engine/{read-ahead,growing-caches,evaluator,long-evaluations,engine-equals-reference}.test.ts',
    ],
  ],
  [['src/engine/bound/pair-table.ts'], ['src/engine/bound/pair-table.test.ts']],
  [
    ['sliced-sort', 'utf8-order'].map((name) => `src/engine/general/${name}.ts`),
    ['test/engine/{sorting,list-objects,expand}.test.ts'],
  ],
  [
    ['src/engine/general/expand.ts'],
    ['test/engine/{expand,long-evaluations,engine-equals-reference}.test.ts'],
  ],
  [
    ['private-ids', 'changed-nodes'].map((name) => `src/engine/overlay/${name}.ts`),
    ['src/engine/overlay/*.test.ts', 'test/engine/private-ids.test.ts'],
  ],
  [
    ['src/engine/overlay/'],
    ['test/engine/{overlay-reader,overlay-equals-reference,previewed-models}.test.ts'],
  ],
  [
    ['src/engine/queries/explain', 'src/engine/queries/blame', 'src/engine/queries/derivation'],
    ['test/engine/{explain,explain-equals-reference}.test.ts'],
  ],
  [
    ['src/engine/queries/remed', 'src/engine/queries/obstacle', 'src/engine/queries/proof'],
    ['test/engine/{explain,explain-equals-reference}.test.ts'],
  ],
  [
    ['listed-kind', 'subject-graph'].map((name) => `src/engine/queries/${name}.ts`),
    ['test/engine/{list-subjects,list-by-type,list-questions-equal-check}.test.ts'],
  ],
  [
    ['src/engine/queries/'],
    ['test/engine/{list-subjects,list-objects,list-questions-equal-check,explain}.test.ts'],
  ],
  [
    ['src/engine/general-evaluator.ts'],
    [
      'test/engine/{general-evaluator,evaluator,subject-sets,expand,explain,slices}.test.ts',
      'test/engine/{exact-sets,userset-cases}.test.ts',
      'test/engine/list-{objects,subjects}.test.ts',
    ],
  ],
  [['src/engine/general/gate-system.ts'], ['test/engine/{gate-system,component-solver}.test.ts']],
  [['src/engine/general/region.ts'], ['test/engine/{region,check-run,conformance}.test.ts']],
  [
    ['src/engine/general/subject-set-run.ts'],
    [
      'test/engine/{subject-sets,subject-set-decisions,conformance,explain,list-subjects}.test.ts',
      'test/engine/{exact-sets,userset-cases}.test.ts',
    ],
  ],
  [
    ['list-objects-run', 'member-search'].map((name) => `src/engine/general/${name}.ts`),
    [
      'test/engine/{list-objects,member-search,subject-sets,subject-set-decisions}.test.ts',
      'test/engine/{evaluator,slices}.test.ts',
      'test/engine/{conformance,long-evaluations,killer-graphs,engine-equals-reference}.test.ts',
    ],
  ],
  [
    ['src/engine/'],
    [
      'test/engine/{evaluator,scope,check-run,component-solver,slices}.test.ts',
      'test/engine/{conformance,long-evaluations,killer-graphs,hot-check,hot-caches}.test.ts',
      'test/engine/{outcomes-equal,engine-equals}-reference.test.ts',
    ],
  ],
  [['src/cache/change-journal.ts'], ['src/cache/index-changes.test.ts']],
  // The tests of whole indexes run for seconds: they are for the parts that no test of their own has.
  ...[
    'adjacency',
    'check-index',
    'dictionary',
    'entity-lookup',
    'list-store',
    'name-table',
    'node-table',
    'segmented-hash',
    'text-scratch',
  ].map((name) => [[`src/cache/${name}.ts`], [`src/cache/${name}.test.ts`]] as const),
  [['src/cache/page'], ['src/cache/pages.test.ts']],
  [
    ['edge-writer', 'row-loader', 'qualifier-store', 'tuple-index', 'tuple-row'].map(
      (name) => `src/cache/${name}.ts`,
    ),
    ['src/cache/{index-changes,tuple-index}.test.ts'],
  ],
  [
    ['index-audit', 'structure-audit', 'index-tally', 'index-damage', 'sound-'].map(
      (name) => `src/cache/${name}`,
    ),
    ['src/cache/index-audit.test.ts'],
  ],
  [['src/cache/'], ['src/cache/{entity-lookup,index-changes,parts,tuple-index}.test.ts']],
  [['src/model/consistency-token.ts'], ['src/model/consistency-token.test.ts']],
  [['src/model/conditions.ts', 'src/model/ip-address.ts'], ['src/model/conditions.test.ts']],
  [
    ['src/model/cel-', 'src/model/condition-', 'src/model/declared-condition.ts'],
    ['src/model/declared-condition.test.ts', 'test/model/*.test.ts'],
  ],
  [
    ['src/model/namespace-model.ts', 'src/model/model-document.ts', 'src/model/model-json.ts'],
    ['src/model/{namespace-model,duplicate-key,model-references,model-admission}.test.ts'],
  ],
  [['src/services/head-revisions.ts'], ['src/services/{shard-heads,read-positions}.test.ts']],
  [
    ['src/services/read-index.ts'],
    ['test/services/read-index*.test.ts', 'src/services/head-revisions.test.ts'],
  ],
  [['src/services/head-revision-loads.ts'], ['src/services/head-revision-loads.test.ts']],
  [['src/services/read-positions.ts'], ['src/services/read-positions.test.ts']],
  [['src/services/commit-publisher.ts'], ['src/services/commit-publisher.test.ts']],
  [['src/services/write-group.ts'], ['src/services/write-group.test.ts']],
  [['src/store/member-state.ts'], ['src/store/member-state.test.ts']],
  [
    ['src/workers/shard/packing-index.ts', 'src/workers/shard/apply-changes.ts'],
    ['src/workers/shard/packing-index.test.ts', 'test/workers/packed-shards.test.ts'],
  ],
  [['src/workers/shard/index-budget.ts'], ['src/workers/shard/index-budget.test.ts']],
  [['src/workers/shard/shard-turns.ts'], ['src/workers/shard/shard-turns.test.ts']],
  [['src/workers/shard/worker-port.ts'], ['src/workers/shard/worker-port.test.ts']],
  [
    ['shard-host.ts', 'host-', 'shard-inbox', 'shard-actors', 'head-poll'].map(
      (name) => `src/workers/shard/${name}`,
    ),
    ['test/workers/{host-steps,turns}.test.ts'],
  ],
  [
    ['src/workers/shard/shard-fsck.ts', 'src/workers/shard/index-fsck.ts'],
    ['test/workers/index-fsck.test.ts'],
  ],
  [['src/workers/shard/shard-revision.ts'], ['src/workers/shard/shard-revision.test.ts']],
  [
    ['shard-actor.ts', 'shard-mailbox.ts', 'catch-up.ts'].map(
      (name) => `src/workers/shard/${name}`,
    ),
    ['test/workers/{actor-steps,actor-lives,turns}.test.ts'],
  ],
  [
    ['shard-actor-state', 'shard-jobs', 'held-changes', 'load-places', 'model-registry'].map(
      (name) => `src/workers/shard/${name}.ts`,
    ),
    ['src/workers/shard/shard-parts.test.ts'],
  ],
  [
    ['src/workers/shard/'],
    [
      'src/workers/shard/*.test.ts',
      'test/workers/{actor-steps,turns,shard-actor,worker-pool}.test.ts',
    ],
  ],
  [['src/gateway/hot/scope-scan.ts'], ['src/gateway/hot/scope-scan.test.ts']],
  [['src/http/connect/encoded-answer.ts'], ['test/gateway/encoded-answer.test.ts']],
  [
    [
      'src/gateway/hot/raw-decisions.ts',
      'src/gateway/hot/decision-call.ts',
      'src/gateway/hot/exchange-call.ts',
    ],
    ['src/gateway/hot/raw-decisions.host.test.ts'],
  ],
];

/** Globs of the tests for a source file. Errors: throws for one that has none. */
export function testsOf(file: string): readonly string[] {
  const found = TESTS.find(([paths]) => paths.some((path) => file.startsWith(path)));
  if (found === undefined) throw new Error(`${file}: name its tests in test/mutation/tests-of.ts`);
  return found[1];
}
