// Yields nanoseconds per check of a concrete user in a small world (10,000 tuples, ids interned, uniform mix).
// Run: npm run bench -- engine-check
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { CHECK_ALLOWED } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace-model.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { DATASET_MODEL_JSON } from '../../test/support/dataset/model.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { World } from '../../test/support/dataset/world.ts';
import { type MicroBench, mustHold } from '../harness/micro-bench.ts';
import { BENCH_SEED, insertOf } from '../worker-data.ts';

const OPERATIONS = 5_000;
const READ_BUDGET = 10_000;

export const engineCheck: MicroBench = {
  name: 'engine-check',
  yields: 'ns per check of a user, 10,000 tuples, ids interned',
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
    const [doc, viewer] = [index.nameId('doc'), index.nameId('viewer')];
    const objects = questions.map(({ objectId }) => index.entityId(doc, objectId));
    const users = questions.map(({ userId }) => index.entityId(EMPTY_NAME, userId));
    const nowMs = Date.now();
    const check = (i: number): number =>
      evaluator.checkUser(objects[i] as number, viewer, users[i] as number, nowMs, READ_BUDGET);
    // A first round fills the caches, and its answers may take the general path.
    for (let i = 0; i < OPERATIONS; i++) check(i);
    mustHold(
      questions.every(({ allow }, i) => (check(i) === CHECK_ALLOWED) === allow),
      'every answer is right',
    );
    return () => {
      let allowed = 0;
      for (let i = 0; i < OPERATIONS; i++) if (check(i) === CHECK_ALLOWED) allowed++;
      return allowed;
    };
  },
};
