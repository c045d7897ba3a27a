import { expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { systemClock } from '../../src/shared/time/clock.ts';

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      cell: {
        relations: {
          off: {},
          next: {},
          on: {
            exclusion: {
              include: {
                union: [{ this: {} }, { tuple_to_userset: { tupleset: 'next', computed: 'on' } }],
              },
              exclude: { computed: 'off' },
            },
          },
        },
      },
    },
  }),
);

/** Ends of slices in a check of which each slice ends as soon as it may. */
function slicesOf(
  index: TupleIndex,
  namespace: string,
  relation: string,
  objectId: string,
): number {
  const options = { depthMax: 256, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  const subject = { kind: 'user', userId: 'nobody' } as const;
  const input = { namespace, objectId, relation, subject, contextJson: '' };
  const task = evaluator.startCheck(input, 0, 1_000_000);
  let slices = 1;
  while (task.run(0) === 'more') slices++;
  expect(task.result()).toBe(false);
  return slices;
}

test('one visit of a long list of sets is interrupted', () => {
  const index = new TupleIndex();
  for (let i = 0; i < 40_000; i++) {
    // Objects without members: nothing is left to visit but the list itself.
    const subject = { kind: 'set', namespace: 'thing', objectId: `t${i}`, relation: '' } as const;
    index.applyChange('insert', { namespace: 'group', objectId: 'g', relation: 'member', subject });
  }
  expect(slicesOf(index, 'group', 'member', 'g')).toBeGreaterThan(10);
});

test('the solution of one large cyclic component is interrupted', () => {
  const index = new TupleIndex();
  for (let i = 0; i < 400; i++) {
    const objectId = `c${(i + 1) % 400}`;
    const subject = { kind: 'set', namespace: 'cell', objectId, relation: '' } as const;
    const tuple = { namespace: 'cell', objectId: `c${i}`, relation: 'next', subject };
    index.applyChange('insert', tuple);
  }
  expect(slicesOf(index, 'cell', 'on', 'c0')).toBeGreaterThan(100);
});

test('a list of all that a user holds is interrupted from its first slice on', () => {
  const index = new TupleIndex();
  const subject = { kind: 'user', userId: 'reader' } as const;
  const rows = 20_000;
  for (let i = 0; i < rows; i++) {
    index.applyChange('insert', {
      namespace: 'doc',
      objectId: `d${i}`,
      relation: 'viewer',
      subject,
    });
  }
  const options = { depthMax: 256, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  const query = { namespace: 'doc', relation: 'viewer', userId: 'reader' };
  const task = evaluator.startListObjects(query, 0, 1_000_000);
  let slices = 1;
  while (task.run(0) === 'more') slices++;
  expect(task.result()).toHaveLength(rows);
  // Reading holders, walking, sorting and making texts all end at a slice's end.
  expect(slices).toBeGreaterThan(rows / 64);
});
