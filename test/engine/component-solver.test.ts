import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { BACKSTOP_DEPTH } from '../../src/engine/bound/evaluator-api.ts';
import { ConditionCache, UNDETERMINED, FALSE, Scope, TRUE } from '../../src/engine/bound/scope.ts';
import { type Outcome, solveComponent } from '../../src/engine/general/component-solver.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

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
          lit: { computed: 'on' },
        },
      },
    },
  }),
);

function scopeOf(...tuples: readonly string[]): Scope {
  const reader = new TupleIndex();
  for (const tuple of tuples) reader.applyChange('insert', keyOf(tuple));
  return new Scope({
    reader,
    model: new BoundModel(MODEL, reader),
    clock: systemClock,
    conditions: new ConditionCache(),
    depthMax: 256,
    nowMs: 0,
    readBudget: 1_000_000,
    contextJson: '',
    relationText: 'cell#on',
  });
}

/** The solution of `cell:0#on` for `userset` (`cell:0#on`) or somebody unknown, and its steps. */
function solve(scope: Scope, relation: string, wanted: string, levelMax: number) {
  const { reader } = scope;
  const entityOf = (id: string): number => reader.entityId(reader.nameId('cell'), id);
  const [setId = '', setRelation = ''] = wanted.split('#');
  const target = {
    userNode: 0,
    setEntity: wanted === '' ? 0 : entityOf(setId),
    setRelation: wanted === '' ? 0 : reader.nameId(setRelation),
  };
  const work = solveComponent(
    scope,
    target,
    entityOf('c0'),
    reader.nameId(relation),
    false,
    levelMax,
  );
  for (let steps = 0; ; steps++) {
    const step = work.next();
    if (step.done === true) return { steps, ...(step.value satisfies Outcome) };
  }
}

const circle = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `cell:c${i}#next@cell:c${(i + 1) % count}`);

describe('a solution', () => {
  test('counts the set that is looked for among what it rests on', () => {
    for (let last = 0; last < 4; last++) {
      const scope = scopeOf(...circle(5));
      const { value, height } = solve(scope, 'lit', `c${last}#on`, 256);
      // The relation itself, `on` of each cell before, and the set.
      expect([last, value, height]).toEqual([last, TRUE, last + 2]);
      const short = solve(scope, 'lit', `c${last}#on`, last + 1);
      expect([last, short.value, short.isDepthExceeded]).toEqual([last, UNDETERMINED, true]);
      expect(scope.backstops).toBe(BACKSTOP_DEPTH);
    }
    expect(solve(scopeOf(...circle(5)), 'on', 'c0#on', 1)).toMatchObject({
      value: TRUE,
      height: 1,
    });
  });

  test('is false where nothing founds the circle, without a cut', () => {
    const scope = scopeOf(...circle(5));
    expect(solve(scope, 'on', '', 256)).toMatchObject({ value: FALSE, isDepthExceeded: false });
    // Of each cell: its own tuples, those that name the next, and twice the way to `off`.
    expect(scope.reads).toBe(5 * 4);
    expect(scope.backstops).toBe(0);
  });

  test('of a long circle is made in steps of at most 64 pieces each', () => {
    const count = 640;
    const scope = scopeOf(...circle(count));
    const { steps, value } = solve(scope, 'on', '', count * 2);
    expect(value).toBe(FALSE);
    // A step for each userset, `on` and `off`; all else is counted in pieces: each cell has 24, in
    // the first look at its five vertices, along its edges, and in one search for what is unfounded, which decides all.
    const pieces = ((steps - count * 2) * 64) / count;
    expect(pieces).toBeGreaterThan(23);
    expect(pieces).toBeLessThan(25);
  });
});
