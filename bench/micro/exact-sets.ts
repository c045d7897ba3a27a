// Yields nanoseconds per exact Check of a userset, and of an object itself, in a small world (10,000 tuples, uniform mix), by
// the hot path and by the general evaluation; names are looked up in both.
// Run: npm run bench -- exact-set exact-set-general exact-object exact-object-general
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { TRUE } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { CheckQuery } from '../../src/model/check-query.ts';
import { parseModel } from '../../src/model/namespace-model.ts';
import type { Subject } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { World } from '../../test/support/dataset/world.ts';
import { type MicroBench, mustHold } from '../harness/micro-bench.ts';
import { BENCH_SEED, insertOf } from '../worker-data.ts';

const OPERATIONS = 1_000;
const READ_BUDGET = 10_000;
/** Groups that are named on documents: every third is, and only those questions are allowed. */
const GROUPS = 3;

function exactBench(name: string, yields: string, relation: string, isHot: boolean): MicroBench {
  return {
    name,
    yields,
    operations: OPERATIONS,
    prepare() {
      const world = new World(0.1, BENCH_SEED);
      const index = new TupleIndex();
      for (const tuple of world.tuples) {
        const { op, tuple: key } = insertOf(tuple);
        index.applyChange(op, key);
      }
      const of = (objectId: string): Subject => ({
        kind: 'set',
        namespace: 'group',
        objectId,
        relation,
      });
      const questions = mixedQuestions(world, OPERATIONS, 'uniform').map(
        ({ objectId }, i): CheckQuery => ({
          namespace: 'doc',
          objectId,
          relation: 'viewer',
          subject: of(`exact-${i % GROUPS}`),
          contextJson: '',
          isExact: true,
        }),
      );
      for (const { objectId } of questions) {
        const tuple = { namespace: 'doc', objectId, relation: 'viewer', subject: of('exact-0') };
        index.applyChange('insert', tuple);
      }
      // Known to the index, and named on no document.
      for (const id of ['exact-1', 'exact-2']) {
        const tuple = { namespace: 'other', objectId: 'o', relation: 'r', subject: of(id) };
        index.applyChange('insert', tuple);
      }
      const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
      const evaluator = new Evaluator(index, parseModel(DATASET_MODEL_JSON), options, systemClock);
      const decider = isHot ? evaluator : evaluator.general;
      const nowMs = Date.now();
      const check = (i: number): boolean => {
        const task = decider.startDecision(questions[i] as CheckQuery, nowMs, READ_BUDGET);
        task.run(Infinity);
        return task.result() === TRUE;
      };
      mustHold(
        questions.every((_, i) => check(i) === (i % GROUPS === 0)),
        'every answer is right',
      );
      return () => {
        let allowed = 0;
        for (let i = 0; i < OPERATIONS; i++) if (check(i)) allowed++;
        return allowed;
      };
    },
  };
}

export const exactSet = exactBench(
  'exact-set',
  'ns per exact check of a userset, 10,000 tuples',
  'member',
  true,
);
export const exactSetGeneral = exactBench(
  'exact-set-general',
  'ns per exact check of a userset by the general evaluation, 10,000 tuples',
  'member',
  false,
);
export const exactObject = exactBench(
  'exact-object',
  'ns per exact check of an object itself, 10,000 tuples',
  '',
  true,
);
export const exactObjectGeneral = exactBench(
  'exact-object-general',
  'ns per exact check of an object itself by the general evaluation, 10,000 tuples',
  '',
  false,
);
