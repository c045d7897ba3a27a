/**
 * Yields how many times as long a Check by @gatehouse/engine takes as one by the evaluator as the service calls it: from
 * names and ids as text, one thread, one uniform mix. Every answer is compared first.
 * Run: npm run bench -- engine-library [--scale 10] [-- ROUNDS]
 *
 * Both take turns over the same checks; each pair gives a ratio, of which the median is printed, one JSON line for all
 * checks, the allowed and the denied ones.
 */
import { textOfTuple } from '../src/assertions/tuple-text.ts';
import { TupleIndex } from '../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { Engine, parseModel } from '../src/library/index.ts';
import { parseModel as parseRules } from '../src/model/namespace-model.ts';
import { EMPTY_NAME } from '../src/model/tuple-reader.ts';
import { systemClock } from '../src/shared/clock.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { World } from '../test/support/dataset/world.ts';
import { median } from './harness/median.ts';
import { mustHold } from './harness/micro-bench.ts';
import { BENCH_SEED, insertOf } from './worker-data.ts';

const READ_BUDGET = 10_000;
const rounds = Number(process.argv[2] ?? 41);

type Query = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
  readonly subject: string;
};

const world = new World(Number(process.env['BENCH_SCALE'] ?? '1'), BENCH_SEED);
const questions = mixedQuestions(world, 50_000, 'uniform');
const index = new TupleIndex();
const engine = new Engine(parseModel(DATASET_MODEL_JSON));
for (const tuple of world.tuples) {
  const { op, tuple: key } = insertOf(tuple);
  index.applyChange(op, key);
  engine.write([textOfTuple(key)]);
}
const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
const evaluator = new Evaluator(index, parseRules(DATASET_MODEL_JSON), options, systemClock);

function checkByEvaluator({ namespace, objectId, relation, subject }: Query): boolean {
  const nowMs = systemClock.nowMs();
  const name = index.nameId(relation);
  const entity = index.entityId(index.nameId(namespace), objectId);
  const user = index.entityId(EMPTY_NAME, subject);
  const code = evaluator.checkUser(entity, name, user, nowMs, READ_BUDGET);
  if (code !== CHECK_GENERAL) return code === CHECK_ALLOWED;
  const task = evaluator.startCheckIds(entity, name, user, nowMs, READ_BUDGET);
  mustHold(task.run(Infinity) === 'done', 'an evaluation without a slice ends');
  return task.result();
}

function nsOfCheck(queries: readonly Query[], check: (query: Query) => boolean): number {
  const start = performance.now();
  let allowed = 0;
  for (const query of queries) if (check(query)) allowed += 1;
  const ns = ((performance.now() - start) * 1e6) / queries.length;
  return allowed < 0 ? 0 : ns;
}

const asked = questions.map(({ objectId, userId, allow }) => {
  const query: Query = { namespace: 'doc', objectId, relation: 'viewer', subject: userId };
  return { query, allow };
});
const byEngine = (query: Query): boolean => engine.check(query);
for (let pass = 0; pass < 4; pass++) {
  const isRight = asked.every(
    ({ query, allow }) => byEngine(query) === allow && checkByEvaluator(query) === allow,
  );
  mustHold(isRight, 'every answer is right');
}
const groups = [
  ['all', asked],
  ['allowed', asked.filter(({ allow }) => allow)],
  ['denied', asked.filter(({ allow }) => !allow)],
] as const;
for (const [workload, group] of groups) {
  const queries = group.map(({ query }) => query);
  const pairs = Array.from({ length: rounds }, (_, i) => {
    const first = i % 2 === 0 ? nsOfCheck(queries, byEngine) : 0;
    const evaluated = nsOfCheck(queries, checkByEvaluator);
    return { engine: first === 0 ? nsOfCheck(queries, byEngine) : first, evaluator: evaluated };
  });
  console.log(
    JSON.stringify({
      bench: 'engine-library',
      workload,
      tuples: engine.tupleCount,
      checks: queries.length,
      engineNs: Math.round(median(pairs.map((pair) => pair.engine))),
      evaluatorNs: Math.round(median(pairs.map((pair) => pair.evaluator))),
      ratio: Number(median(pairs.map((pair) => pair.engine / pair.evaluator)).toFixed(3)),
    }),
  );
}
