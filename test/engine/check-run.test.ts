import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BACKSTOP_CYCLE, type EvaluationTask } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const [own, near, far] = [{ this: {} }, { computed: 'near' }, { computed: 'far' }];
const notThe = (exclude: unknown) => ({ exclusion: { include: { computed: 'here' }, exclude } });
const both = (...of: readonly string[]) => ({
  intersection: of.map((computed) => ({ computed })),
});
const less = (include: string, exclude: string) => ({
  exclusion: { include: { computed: include }, exclude: { computed: exclude } },
});
/** Ways to grant by what lies at an object (`short`), and by what lies below groups (`tall`, `clean`). */
const GATES = {
  all_of: both('short', 'tall'),
  all_turned: both('tall', 'short'),
  pass: less('tall', 'none'),
  unless: less('short', 'clean'),
  tall_unless: less('tall', 'clean'),
  unless_short: less('short', 'none'),
  one_of: { union: [less('tall', 'none'), less('clean', 'none')] },
  one_turned: { union: [less('clean', 'none'), less('tall', 'none')] },
  none_of: less('clean', 'none'),
  all_but_one: both('tall', 'clean'),
  never: less('tall', 'short'),
  never_tall: less('short', 'tall'),
};
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: {
        relations: {
          here: {},
          near: {},
          far: {},
          banned: {},
          not_near: notThe(near),
          not_far: notThe(far),
          both: { intersection: [near, far] },
          both_turned: { intersection: [far, near] },
          either: { union: [{ intersection: [near, near] }, { intersection: [far, far] }] },
          either_turned: { union: [{ intersection: [far, far] }, { intersection: [near, near] }] },
          neither: { intersection: [notThe(near), notThe(far)] },
          neither_turned: { intersection: [notThe(far), notThe(near)] },
          reader: { exclusion: { include: own, exclude: { computed: 'banned' } } },
          viewer: { union: [own, { computed: 'reader' }] },
          open: notThe({ computed: 'banned' }),
        },
      },
      gate: { relations: { short: {}, tall: {}, clean: {}, none: {}, ...GATES } },
    },
  }),
);
const READS = 100_000;
const UNDECIDED = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };
const undecided = (text: string): RelationTuple => ({ ...keyOf(text), ...UNDECIDED });

function evaluatorOf(tuples: readonly (string | RelationTuple)[], depthMax = 256): Evaluator {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  return new Evaluator(index, MODEL, { depthMax, membershipBytesMax: 1 << 16 }, systemClock);
}

/** A check that is done, by its text as a tuple: `doc:d#viewer@user:u`. */
function done(evaluator: Evaluator, question: string, contextJson = ''): EvaluationTask<boolean> {
  const task = evaluator.startCheck({ ...keyOf(question), contextJson }, 0, READS);
  expect(task.run(Infinity)).toBe('done');
  return task;
}
const ask = (evaluator: Evaluator, question: string, contextJson = ''): boolean =>
  done(evaluator, question, contextJson).result();

/** Groups `name`0 ⊃ `name`1 ⊃ …; the last one holds the member. */
function nest(name: string, levels: number, member: string): string[] {
  const tuples = [`group:${name}${levels - 1}#member@${member}`];
  for (let i = 0; i + 1 < levels; i++) {
    tuples.push(`group:${name}${i}#member@group:${name}${i + 1}#member`);
  }
  return tuples;
}

describe('what was found of a gate on one path', () => {
  const [height, length] = [4, 3];
  const tuplesOf = (gate: string): string[] => [
    ...nest('t', height, 'user:u'),
    ...nest('c', height, 'user:other'),
    'gate:x#short@user:u',
    'gate:x#tall@group:t0#member',
    'gate:x#clean@group:c0#member',
    'doc:d#here@user:u',
    `doc:d#near@gate:x#${gate}`,
    'doc:d#far@group:k0#member',
    ...nest('k', length, `gate:x#${gate}`),
  ];

  // One node less is left to each operand of its own than to the relation that names both.
  test.each(Object.keys(GATES))('counts on a longer one only as far as it reaches: %s', (gate) => {
    const tuples = tuplesOf(gate);
    let changes = 0;
    for (let depthMax = 2; depthMax < height + length + 8; depthMax++) {
      const evaluator = evaluatorOf(tuples, depthMax);
      const single = (relation: string): boolean =>
        ask(evaluatorOf(tuples, depthMax - 1), `doc:d#${relation}@user:u`);
      const negated = (relation: string): boolean =>
        ask(evaluatorOf(tuples, depthMax), `doc:d#${relation}@user:u`);
      const answers = (...relations: readonly string[]): boolean[] =>
        relations.map((relation) => ask(evaluator, `doc:d#${relation}@user:u`));
      const [isNear, isFar] = [single('near'), single('far')];
      const isBoth = isNear && isFar;
      const isEither = isNear || isFar;
      const isNeither = negated('not_near') && negated('not_far');
      expect([depthMax, ...answers('both', 'both_turned')]).toEqual([depthMax, isBoth, isBoth]);
      expect([depthMax, ...answers('either', 'either_turned')]).toEqual([
        depthMax,
        isEither,
        isEither,
      ]);
      expect([depthMax, ...answers('neither', 'neither_turned')]).toEqual([
        depthMax,
        isNeither,
        isNeither,
      ]);
      if (isNear !== isFar || negated('not_near') !== negated('not_far')) changes++;
    }
    expect(changes).toBe(length);
  });
});

describe('what cannot be decided', () => {
  test('does not hide what holds by a rule', () => {
    const evaluator = evaluatorOf([undecided('doc:d#viewer@user:u'), 'doc:d#reader@user:u']);
    expect(ask(evaluator, 'doc:d#viewer@user:u')).toBe(true);
    expect(ask(evaluator, 'doc:d#viewer@user:other')).toBe(false);
  });

  test('bans by way of a rule, alone and beside other sets', () => {
    for (const others of [[], ['doc:d#banned@doc:a#reader', 'doc:d#banned@doc:z#reader']]) {
      const evaluator = evaluatorOf([
        'doc:d#here@user:u',
        ...others,
        undecided('doc:d#banned@doc:e#reader'),
        'doc:e#reader@user:u',
      ]);
      expect(ask(evaluator, 'doc:d#open@user:u')).toBe(false);
      expect(ask(evaluator, 'doc:d#open@user:u', '{"age":18}')).toBe(false);
      expect(ask(evaluator, 'doc:d#open@user:u', '{"age":17}')).toBe(true);
    }
  });

  test('is no bound that was met', () => {
    const evaluator = evaluatorOf([
      'doc:d#near@doc:e#reader',
      'doc:e#reader@user:u',
      undecided('doc:e#banned@user:u'),
      'doc:d#far@doc:e#reader',
      'doc:d#here@user:u',
    ]);
    for (const relation of ['near', 'both', 'either', 'neither']) {
      const task = done(evaluator, `doc:d#${relation}@user:u`);
      expect([relation, task.result(), task.backstops]).toEqual([relation, false, 0]);
    }
  });
});

describe('a circle of groups', () => {
  const circle = [
    'group:a#member@group:b#member',
    'group:b#member@group:a#member',
    'group:b#member@user:w',
  ];

  test('is told where it denies, not where it was left by a grant', () => {
    const evaluator = evaluatorOf(['doc:d#near@group:a#member', ...circle]);
    expect(done(evaluator, 'doc:d#near@user:u')).toMatchObject({ backstops: BACKSTOP_CYCLE });
    expect(done(evaluator, 'doc:d#near@user:w')).toMatchObject({ backstops: 0 });
  });

  test('is not told by a ban that was found', () => {
    const banned = ['doc:d#banned@group:a#member', 'doc:d#here@user:u', 'doc:d#here@user:w'];
    const evaluator = evaluatorOf([...banned, ...circle]);
    const task = done(evaluator, 'doc:d#open@user:w');
    expect([task.result(), task.backstops]).toEqual([false, 0]);
    expect(ask(evaluator, 'doc:d#open@user:u')).toBe(true);
  });
});

test('a grant that is found ends the search: what else the object names is not evaluated', () => {
  const tuples = [
    'doc:d#near@doc:e#open',
    'doc:d#near@group:g#member',
    'group:g#member@user:u',
    'doc:e#here@user:other',
  ];
  expect(done(evaluatorOf(tuples), 'doc:d#near@user:u').reads).toBe(2);
});
