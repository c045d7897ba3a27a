/**
 * Yields what explaining an answer costs, in evaluations: CPU time of Explain (answer included) over that of the general
 * evaluation of the same questions, one thread, and the reads of both; allows and denies apart.
 * Run: npm run bench -- explain [--scale 1]
 *
 * Documents in folders with users and nested groups (the data set), plain and with a ban on top. A deny is explained with
 * no remedies, then with ten, each of which is an evaluation of its own. The two sides take turns; each counts by its
 * fastest pass. Prints one JSON line a workload.
 */
import { TupleIndex } from '../src/cache/tuple-index.ts';
import type { EvaluationTask } from '../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../src/engine/evaluator.ts';
import { OverlayReader } from '../src/engine/overlay/overlay-reader.ts';
import type { ExplainGround } from '../src/engine/queries/explain-ground.ts';
import { ExplainRun } from '../src/engine/queries/explain-run.ts';
import type { CheckQuery } from '../src/model/check-query.ts';
import { parseModel } from '../src/model/namespace-model.ts';
import { systemClock } from '../src/shared/clock.ts';
import { DATASET_MODEL_JSON } from '../test/support/dataset/model.ts';
import { mixedQuestions } from '../test/support/dataset/questions.ts';
import { World } from '../test/support/dataset/world.ts';
import { mustHold } from './harness/micro-bench.ts';
import { BENCH_SEED, insertOf } from './worker-data.ts';

const READ_BUDGET = 10_000;
const QUESTIONS = 2_000;
const PASSES = 9;

const world = new World(Number(process.env['BENCH_SCALE'] ?? '1'), BENCH_SEED);
const questions = mixedQuestions(world, QUESTIONS, 'uniform');
const nowMs = Date.now();

/** The data set's model, with a ban on top of each document's viewers if wanted. */
function modelOf(withBan: boolean): string {
  const model = JSON.parse(DATASET_MODEL_JSON) as {
    namespaces: { doc: { relations: Record<string, unknown> } };
  };
  const { relations } = model.namespaces.doc;
  if (withBan) {
    const include = relations['viewer'];
    relations['viewer'] = { exclusion: { include, exclude: { computed: 'banned' } } };
    relations['banned'] = {};
  }
  return JSON.stringify(model);
}

function groundOf(withBan: boolean): ExplainGround {
  const index = new TupleIndex();
  for (const tuple of world.tuples) {
    const { op, tuple: key } = insertOf(tuple);
    index.applyChange(op, key);
  }
  const model = parseModel(modelOf(withBan));
  const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
  const evaluator = new Evaluator(index, model, options, systemClock);
  return {
    evaluator: evaluator.over(index),
    withTuple: (tuple) => evaluator.over(new OverlayReader(index, [{ op: 'insert', tuple }])),
    model,
    contextual: [],
    nowMs,
    readBudget: READ_BUDGET,
  };
}

type Side = { cpuUs: number; reads: number };

/** One pass over all questions. */
function pass(tasks: () => Iterable<EvaluationTask<unknown>>): Side {
  let reads = 0;
  const start = process.cpuUsage();
  for (const task of tasks()) {
    mustHold(task.run(Infinity) === 'done', 'an evaluation without a slice ends');
    reads += task.reads ?? 0;
  }
  const { user, system } = process.cpuUsage(start);
  return { cpuUs: user + system, reads };
}

function compared(
  ground: ExplainGround,
  queries: readonly CheckQuery[],
  remediesMax: number,
): { readonly check: Side; readonly explain: Side } {
  const { evaluator } = ground;
  const check = { cpuUs: Infinity, reads: 0 };
  const explain = { cpuUs: Infinity, reads: 0 };
  for (let i = 0; i < PASSES; i++) {
    const checked = pass(function* () {
      for (const query of queries) yield evaluator.startDecision(query, nowMs, READ_BUDGET);
    });
    const explained = pass(function* () {
      for (const query of queries) yield new ExplainRun(ground, query, remediesMax, systemClock);
    });
    check.cpuUs = Math.min(check.cpuUs, checked.cpuUs);
    explain.cpuUs = Math.min(explain.cpuUs, explained.cpuUs);
    [check.reads, explain.reads] = [checked.reads, explained.reads];
  }
  return { check, explain };
}

for (const withBan of [false, true]) {
  const ground = groundOf(withBan);
  for (const isAllowed of [true, false]) {
    const queries = questions
      .filter(({ allow }) => allow === isAllowed)
      .map(({ objectId, userId }): CheckQuery => ({
        namespace: 'doc',
        objectId,
        relation: 'viewer',
        subject: { kind: 'user', userId },
        contextJson: '',
      }));
    for (const query of queries) {
      const task = new ExplainRun(ground, query, 1, systemClock);
      mustHold(task.run(Infinity) === 'done', 'an explanation without a slice ends');
      const { allowed, derivation, remedies } = task.result();
      mustHold(allowed === isAllowed, 'every answer is right');
      mustHold(allowed ? derivation !== undefined : remedies.length === 1, 'and is explained');
    }
    for (const remediesMax of isAllowed ? [0] : [0, 10]) {
      const { check, explain } = compared(ground, queries, remediesMax);
      console.log(
        JSON.stringify({
          bench: 'explain',
          model: withBan ? 'with a ban' : 'unions',
          answer: isAllowed ? 'allow' : 'deny',
          remediesMax,
          questions: queries.length,
          checkUs: Number((check.cpuUs / queries.length).toFixed(2)),
          explainUs: Number((explain.cpuUs / queries.length).toFixed(2)),
          times: Number((explain.cpuUs / check.cpuUs).toFixed(2)),
          readsTimes: Number((explain.reads / check.reads).toFixed(2)),
        }),
      );
    }
  }
}
