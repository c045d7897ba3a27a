/* The data of `npm run bench -- list-exclusions`: what it calls right is what the engine finds, list by list. */
import { expect, test } from 'vitest';
import {
  BANNED_WORLD_GATE,
  BannedWorld,
  LISTED_RELATIONS,
} from '../../bench/dataset/banned-world.ts';
import { insertOf } from '../../bench/worker-data.ts';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { parseModel } from '../../src/model/namespace-model.ts';
import { systemClock } from '../../src/shared/clock.ts';

const DOCUMENTS = 2_000;
const world = new BannedWorld(DOCUMENTS);
const index = new TupleIndex();
for (const { op, tuple } of world.tuples.map(insertOf)) index.applyChange(op, tuple);
const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
const model = parseModel(parseGate(BANNED_WORLD_GATE).json);
const evaluator = new Evaluator(index, model, options, systemClock);

test.each(LISTED_RELATIONS)(
  'the list of %s of each user is the one that the engine finds',
  (relation) => {
    world.users.forEach((userId, user) => {
      const query = { namespace: 'doc', relation, userId };
      const task = evaluator.startListObjects(query, 0, 1_000_000);
      while (task.run(Infinity) === 'more');
      expect(task.result()).toEqual(world.list(relation, user));
    });
  },
);

test('each user sees all, less a few per cent of bans, and has signed for half', () => {
  const shares = LISTED_RELATIONS.map((relation) =>
    world.users.map((_, user) => world.list(relation, user).length / DOCUMENTS),
  );
  const [viewer = [], view = [], open = [], sign = []] = shares;
  expect(new Set(viewer)).toEqual(new Set([1]));
  for (const share of [...view, ...open]) {
    expect(share).toBeGreaterThan(0.9);
    expect(share).toBeLessThan(0.98);
  }
  for (const share of sign) expect(share).toBeCloseTo(0.5625, 2);
  const lists = new Set(world.users.map((_, user) => world.list('can_view', user).join()));
  expect(lists.size).toBe(world.users.length);
});
