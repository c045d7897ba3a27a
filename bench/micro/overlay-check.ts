// Yields nanoseconds per Check by the general evaluation in a small world (10,000 tuples, uniform mix), by itself and
// with tuples of its own laid over the index; making the overlay counts.
// Run: npm run bench -- general-check overlay-check-1 overlay-check-100
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { TRUE } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { GeneralEvaluator } from '../../src/engine/general-evaluator.ts';
import { OverlayReader } from '../../src/engine/overlay/overlay-reader.ts';
import { parseModel } from '../../src/model/namespace-model.ts';
import type { TupleChange } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { World } from '../../test/support/dataset/world.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';
import { BENCH_SEED, insertOf } from '../worker-data.ts';

const OPERATIONS = 1_000;
const READ_BUDGET = 10_000;

function overlayBench(name: string, yields: string, contextual: number): MicroBench {
  return {
    name,
    yields,
    operations: OPERATIONS,
    prepare() {
      const world = new World(0.1, BENCH_SEED);
      const questions = mixedQuestions(world, OPERATIONS, 'uniform');
      const index = new TupleIndex();
      for (const tuple of world.tuples) {
        const { op, tuple: key } = insertOf(tuple);
        index.applyChange(op, key);
      }
      const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
      const evaluator = new Evaluator(index, parseModel(DATASET_MODEL_JSON), options, systemClock);
      const nowMs = Date.now();
      // Of the question's own document, for somebody else: they are read, and change no answer.
      const changesOf = (objectId: string): readonly TupleChange[] =>
        listOf(contextual, (i) => ({
          op: 'insert',
          tuple: {
            namespace: 'doc',
            objectId,
            relation: 'viewer',
            subject: { kind: 'user', userId: `somebody-else-${i}` },
          },
        }));
      const changes = questions.map(({ objectId }) => changesOf(objectId));
      const evaluatorOf = (i: number): GeneralEvaluator =>
        contextual === 0
          ? evaluator.general
          : evaluator.over(new OverlayReader(index, changes[i] as readonly TupleChange[]));
      const check = (i: number): boolean => {
        const { objectId, userId } = questions[i] as (typeof questions)[number];
        const task = evaluatorOf(i).startDecision(
          {
            namespace: 'doc',
            objectId,
            relation: 'viewer',
            subject: { kind: 'user', userId },
            contextJson: '',
          },
          nowMs,
          READ_BUDGET,
        );
        task.run(Infinity);
        return task.result() === TRUE;
      };
      mustHold(
        questions.every(({ allow }, i) => check(i) === allow),
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

export const generalCheck = overlayBench(
  'general-check',
  'ns per check of a user by the general evaluation, 10,000 tuples',
  0,
);
export const overlayCheck1 = overlayBench(
  'overlay-check-1',
  'ns per check of a user with a contextual tuple, 10,000 tuples',
  1,
);
export const overlayCheck100 = overlayBench(
  'overlay-check-100',
  'ns per check of a user with 100 contextual tuples, 10,000 tuples',
  100,
);
