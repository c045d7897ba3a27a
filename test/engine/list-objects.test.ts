import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BACKSTOP_DEPTH, type EvaluationTask } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: {
        relations: {
          viewer: {},
          stored: { computed: 'viewer' },
          banned: {},
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
        },
      },
    },
  }),
);

function listOf(
  tuples: Iterable<string>,
  relation: string,
  { namespace = 'doc', userId = 'u', depthMax = 256 } = {},
): EvaluationTask<readonly string[]> {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', keyOf(tuple));
  const options = { depthMax, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  return evaluator.startListObjects({ namespace, relation, userId }, 0, 1_000_000);
}

/** Ends of slices of which each ends as soon as it may, and the answer. */
function sliced(task: EvaluationTask<readonly string[]>) {
  let slices = 0;
  while (task.run(0) === 'more') slices++;
  return { slices, ids: task.result() };
}
const answer = (task: EvaluationTask<readonly string[]>): readonly string[] => {
  expect(task.run(Infinity)).toBe('done');
  return task.result();
};
const many = (count: number, relation: string): string[] =>
  Array.from({ length: count }, (_, i) => `doc:d${(i * 7919) % count}#${relation}@user:u`);

describe('a list of objects', () => {
  test.each([1, 64, 65, 1000])('of %i is sorted by id', (count) => {
    const ids = answer(listOf(many(count, 'viewer'), 'viewer'));
    expect(ids).toEqual(Array.from({ length: count }, (_, i) => `d${i}`).toSorted());
    expect(answer(listOf(many(count, 'viewer'), 'reader'))).toEqual(ids);
  });

  test('does not name what is too deep, and tells that it is', () => {
    const tuples = [
      'doc:a#viewer@group:g#member',
      'group:g#member@group:h#member',
      'group:h#member@user:u',
      'doc:b#viewer@user:u',
    ];
    for (const [depthMax, ids, backstops] of [
      [4, ['a', 'b'], 0],
      [3, ['a', 'b'], BACKSTOP_DEPTH], // what is computed from it
      [2, ['b'], BACKSTOP_DEPTH],
    ] as const) {
      const task = listOf(tuples, 'viewer', { depthMax });
      expect([depthMax, answer(task), task.backstops]).toEqual([depthMax, ids, backstops]);
    }
  });

  test('of what nothing mentions is empty, and costs no read', () => {
    const tuples = ['doc:a#viewer@user:u', 'doc:a#viewer@*'];
    for (const [relation, of] of [
      ['none', {}],
      ['viewer', { namespace: 'none' }],
      ['none', { namespace: 'none' }],
    ] as const) {
      const task = listOf(tuples, relation, of);
      expect([relation, answer(task), task.reads]).toEqual([relation, [], 0]);
    }
    expect(answer(listOf(tuples, 'viewer', { userId: 'nobody' }))).toEqual(['a']);
  });
});

// A slice ends at the first look at the clock: every 32 steps, or four pieces of a list or a sort, or 256 texts.
describe('slices of a list', () => {
  test('end while tuples are read that lead nowhere', () => {
    const { slices, ids } = sliced(listOf(many(20_000, 'stored'), 'viewer'));
    expect(ids).toEqual([]);
    expect(slices).toBe(Math.floor(Math.ceil(20_000 / 512) / 4));
  });

  test('end while objects are visited, sorted and named', () => {
    const count = 20_000;
    const { slices, ids } = sliced(listOf(many(count, 'viewer'), 'viewer'));
    expect(ids).toHaveLength(count);
    const visits = (count * 3) / 32; // as `viewer`, and as the two that are computed from it
    const answers = count / 64 / 32;
    // What all begin with, keys, runs, three passes of merges, and equal ones.
    const sorts = (2 * Math.ceil(count / 256) + 2 * Math.ceil(count / 4096) + 3 + 2 + 1) / 4;
    const texts = Math.ceil(count / 256);
    const wanted = Math.ceil(count / 512) / 4 + visits + answers + sorts + texts;
    expect(Math.abs(slices - wanted)).toBeLessThan(8);
  });
});
