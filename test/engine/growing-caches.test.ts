import { expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { CHECK_ALLOWED, CHECK_GENERAL } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { READ_AHEAD_MAX } from '../../src/engine/hot/read-ahead.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { DATASET_MODEL_JSON } from '../support/dataset/model.ts';
import { mixedQuestions } from '../support/dataset/questions.ts';
import { World } from '../support/dataset/world.ts';
import { byLength } from '../support/test-length.ts';

const SEED = Number(process.env['SEED'] ?? 7);
const BUDGET = 10_000;

const subjectOf = (text: string): Subject => {
  const [namespace = '', rest = ''] = text.split(':');
  const [objectId = '', relation = ''] = rest.split('#');
  if (namespace === 'user') return { kind: 'user', userId: rest };
  return { kind: 'set', namespace, objectId, relation };
};

const indexOf = (world: World): TupleIndex => {
  const index = new TupleIndex();
  for (const { object_id: objectId, subject, ...rest } of world.tuples) {
    index.applyChange('insert', { ...rest, objectId, subject: subjectOf(subject) });
  }
  return index;
};

const ASKED = byLength(2_000, 5_000);
const EVALUATORS = byLength(4, 10);

// Caches grow, and move, while an evaluation holds offsets into them; a fresh evaluator grows most.
test(`every answer of fresh evaluators is right (SEED=${SEED})`, () => {
  const world = new World(byLength(0.2, 0.5), SEED);
  const questions = mixedQuestions(world, byLength(2_500, 10_000), 'uniform');
  const index = indexOf(world);
  const model = parseModel(DATASET_MODEL_JSON);
  const options = { depthMax: 256, membershipBytesMax: 64 * 1_048_576 };
  let decided = 0;
  const wrong: string[] = [];
  for (let first = 0; first < EVALUATORS; first++) {
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
  expect(decided).toBeGreaterThan(3_000 * EVALUATORS);
});

// Small tables: lines, chains and closures that were read ahead are replaced before they are asked for.
test(`reading ahead changes no answer, whatever the group holds (SEED=${SEED})`, () => {
  const world = new World(byLength(0.1, 0.2), SEED);
  const questions = mixedQuestions(world, ASKED, 'uniform');
  const index = indexOf(world);
  const model = parseModel(DATASET_MODEL_JSON);
  const options = { depthMax: 256, membershipBytesMax: 128 * 1024, readAheadBytesMin: 0 };
  const evaluator = new Evaluator(index, model, options, systemClock);
  const group = {
    objects: new Uint32Array(READ_AHEAD_MAX),
    relations: new Int32Array(READ_AHEAD_MAX),
    users: new Uint32Array(READ_AHEAD_MAX),
  };
  const wrong: string[] = [];
  let decided = 0;
  for (let first = 0, size = 1; first < questions.length; first += size) {
    size = 1 + ((first + SEED) % READ_AHEAD_MAX);
    const asked = questions.slice(first, first + size);
    asked.forEach((question, i) => {
      // Every eleventh question names something that nothing mentions.
      const unknown = (first + i) % 11 === 0 ? (first + i) % 3 : -1;
      group.objects[i] = unknown === 0 ? 0 : index.entityId(index.nameId('doc'), question.objectId);
      group.relations[i] = unknown === 1 ? -1 : index.nameId('viewer');
      group.users[i] = unknown === 2 ? 0 : index.entityId(EMPTY_NAME, question.userId);
    });
    evaluator.readAhead(group, asked.length);
    asked.forEach((question, i) => {
      const [object = 0, relation = 0, user = 0] = [
        group.objects[i],
        group.relations[i],
        group.users[i],
      ];
      const code = evaluator.checkUser(object, relation, user, 0, BUDGET);
      if (code === CHECK_GENERAL) return;
      decided++;
      const isKnown = object !== 0 && relation > 0 && user !== 0;
      if ((code === CHECK_ALLOWED) !== (isKnown && question.allow)) wrong.push(question.objectId);
    });
  }
  expect(wrong).toEqual([]);
  expect(decided).toBeGreaterThan(ASKED * 0.8);
});
