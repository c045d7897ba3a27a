import { expect, test } from 'vitest';
import { DATASET_MODEL_JSON } from '../../bench/dataset/model.ts';
import { mixedQuestions } from '../../bench/dataset/questions.ts';
import { World } from '../../bench/dataset/world.ts';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../../src/engine/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace-model.ts';
import type { Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/clock.ts';

const SEED = Number(process.env['SEED'] ?? 7);
const BUDGET = 10_000;

const subjectOf = (text: string): Subject => {
  const [namespace = '', rest = ''] = text.split(':');
  const [objectId = '', relation = ''] = rest.split('#');
  if (namespace === 'user') return { kind: 'user', userId: rest };
  return { kind: 'set', namespace, objectId, relation };
};

// Caches grow, and move, while an evaluation holds offsets into them; a fresh evaluator grows most.
test(`every answer of fresh evaluators is right (SEED=${SEED})`, () => {
  const world = new World(0.5, SEED);
  const questions = mixedQuestions(world, 10_000, 'uniform');
  const index = new TupleIndex();
  for (const { object_id: objectId, subject, ...rest } of world.tuples) {
    index.applyChange('insert', { ...rest, objectId, subject: subjectOf(subject) });
  }
  const model = parseModel(DATASET_MODEL_JSON);
  const options = { depthMax: 256, closureBytesMax: 64 * 1_048_576 };
  let decided = 0;
  const wrong: string[] = [];
  for (let first = 0; first < 10; first++) {
    const evaluator = new Evaluator(index, model, options, systemClock);
    for (let n = 0; n < 4_000; n++) {
      const question = questions[(first * 977 + n) % questions.length];
      if (question === undefined) continue;
      const object = index.entityId(index.nameId('doc'), question.objectId);
      const user = index.entityId(EMPTY_NAME, question.userId);
      const code = evaluator.checkUser(object, index.nameId('viewer'), user, 0, BUDGET);
      if (code === CHECK_GENERAL) continue;
      decided++;
      if ((code === CHECK_ALLOWED) !== question.allow) wrong.push(`${first}: ${question.objectId}`);
    }
  }
  expect(wrong).toEqual([]);
  expect(decided).toBeGreaterThan(30_000);
});
