import { describe, expect, test } from 'vitest';
import { tupleFromText } from '../../src/assertions/tuple-text.ts';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../../src/engine/bound/evaluator-api.ts';
import { FALSE, TRUE, UNDETERMINED } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, TupleKey } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { createRandom } from '../support/dataset/random.ts';
import { contextOf, finish } from './support.ts';

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      group: { relations: { member: {}, lead: {}, anyone: { union: [{}, { computed: 'lead' }] } } },
      folder: {
        relations: {
          parent: {},
          editor: {},
          viewer: {
            union: [
              {},
              { computed: 'editor' },
              { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
            ],
          },
        },
      },
      doc: {
        relations: {
          parent: {},
          viewer: {
            union: [{}, { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } }],
          },
          banned: {},
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
          allowed: {
            exclusion: { include: { computed: 'banned' }, exclude: { computed: 'viewer' } },
          },
          both: { intersection: [{ computed: 'viewer' }, {}] },
          deep: { union: [{ computed: 'reader' }, { computed: 'both' }] },
        },
      },
    },
  }),
);
/** As operators write it: `@group:*` is every group, `@*` every user. */
function keyOf(text: string): TupleKey {
  const tuple = tupleFromText(text.replace(/@\*$/, '@user:*'));
  if ('problem' in tuple) throw new Error(`${text}: ${tuple.problem}`);
  return tuple;
}

type Tuples = readonly (string | RelationTuple)[];
const undecided = (text: string): RelationTuple => ({
  ...keyOf(text),
  conditionName: 'age_at_least',
  conditionParams: '{"min_age":18}',
});
const CODES = { [TRUE]: CHECK_ALLOWED, [FALSE]: CHECK_DENIED, [UNDETERMINED]: CHECK_GENERAL };

type Bounds = { readonly depthMax?: number; readonly reads?: number; readonly context?: string };

function evaluatorOf(tuples: Tuples, depthMax = 256): Evaluator {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  return new Evaluator(index, MODEL, { depthMax, membershipBytesMax: 1 << 16 }, systemClock);
}

/** The answers of the hot path and of the general evaluation. */
function answersOf(evaluator: Evaluator, question: string, bounds: Bounds = {}) {
  const { reads = 10_000, context = '' } = bounds;
  const query = { ...keyOf(question), contextJson: context, isExact: true };
  const hot = evaluator.checkExact(query, 0, reads, contextOf(context));
  const value = finish(evaluator.general.startDecision(query, 0, 100_000));
  return { hot, value };
}

/** What both say: the hot path must decide it, unless it is undecided. */
function decided(tuples: Tuples, question: string, bounds: Bounds = {}): number {
  const { hot, value } = answersOf(evaluatorOf(tuples, bounds.depthMax), question, bounds);
  expect([question, hot]).toEqual([question, CODES[value]]);
  return value;
}

const ENG = 'group:eng#member';

describe('an exact userset holds', () => {
  test.each([
    ['what names it', [`doc:d#viewer@${ENG}`], `doc:d#viewer@${ENG}`, TRUE],
    [
      'not what one of its members holds',
      [`${ENG}@user:a`, 'doc:d#viewer@user:a'],
      `doc:d#viewer@${ENG}`,
      FALSE,
    ],
    ['what names it while it is empty', [`doc:d#viewer@${ENG}`], `doc:d#reader@${ENG}`, TRUE],
    [
      'what a set that contains it holds',
      ['doc:d#viewer@group:all#member', `group:all#member@${ENG}`],
      `doc:d#viewer@${ENG}`,
      TRUE,
    ],
    [
      'what a set deep above it holds',
      ['doc:d#viewer@group:x#anyone', 'group:x#anyone@group:y#member', `group:y#member@${ENG}`],
      `doc:d#viewer@${ENG}`,
      TRUE,
    ],
    [
      'not what a set that it contains holds',
      ['doc:d#viewer@group:sub#member', `${ENG}@group:sub#member`],
      `doc:d#viewer@${ENG}`,
      FALSE,
    ],
    [
      'not what another relation of its object holds',
      ['doc:d#viewer@group:eng#lead'],
      `doc:d#viewer@${ENG}`,
      FALSE,
    ],
    [
      'what its relation is computed into',
      ['doc:d#viewer@group:eng#anyone'],
      'doc:d#viewer@group:eng#lead',
      TRUE,
    ],
    ['not what everybody holds', ['doc:d#viewer@*', `${ENG}@user:a`], `doc:d#viewer@${ENG}`, FALSE],
    [
      'not what every group holds',
      ['doc:d#viewer@group:*', `${ENG}@user:a`],
      `doc:d#viewer@${ENG}`,
      FALSE,
    ],
    [
      'not what its object holds',
      ['doc:d#viewer@group:eng', `${ENG}@user:a`],
      `doc:d#viewer@${ENG}`,
      FALSE,
    ],
    [
      'what is above in a tree of objects',
      ['doc:d#parent@folder:f', 'folder:f#parent@folder:g', `folder:g#viewer@${ENG}`],
      `doc:d#viewer@${ENG}`,
      TRUE,
    ],
    [
      'what an object above computes from it',
      ['doc:d#parent@folder:f', 'folder:f#parent@folder:g'],
      'doc:d#viewer@folder:g#editor',
      TRUE,
    ],
    [
      'not what an object beside computes from it',
      ['doc:d#parent@folder:f', 'folder:h#parent@folder:g'],
      'doc:d#viewer@folder:g#editor',
      FALSE,
    ],
    ['itself', ['doc:d#viewer@user:a'], 'folder:f#viewer@folder:f#editor', TRUE],
  ])('%s', (_, tuples, question, wanted) => {
    const query = { ...keyOf(question), contextJson: '', isExact: true };
    const evaluator = evaluatorOf(tuples);
    expect(finish(evaluator.startDecision(query, 0, 10_000))).toBe(wanted);
    const { hot, value } = answersOf(evaluator, question);
    // Of an object that no tuple has only the model can say.
    const isKnown = !question.startsWith('folder:f#');
    expect([hot, value]).toEqual([isKnown ? CODES[wanted as 0 | 1] : CHECK_GENERAL, wanted]);
  });

  test('itself, whether stored or not, and not the other way round', () => {
    for (const tuples of [[], [`${ENG}@user:a`]]) {
      const query = { ...keyOf(`${ENG}@${ENG}`), contextJson: '', isExact: true };
      expect(finish(evaluatorOf(tuples).startDecision(query, 0, 10))).toBe(TRUE);
      const other = { ...keyOf('group:eng#lead@group:eng#anyone'), contextJson: '', isExact: true };
      expect(finish(evaluatorOf(tuples).startDecision(other, 0, 10))).toBe(FALSE);
    }
  });
});

describe('intersections and exclusions', () => {
  const viewer = `doc:d#viewer@${ENG}`;

  test.each([
    ['a banned set does not read', [viewer, `doc:d#banned@${ENG}`], 'reader', FALSE],
    [
      'nor does one within a banned set',
      [viewer, 'doc:d#banned@group:all#member', `group:all#member@${ENG}`],
      'reader',
      FALSE,
    ],
    [
      'one of which a member is banned does',
      [viewer, `${ENG}@user:a`, 'doc:d#banned@user:a'],
      'reader',
      TRUE,
    ],
    ['and where everybody is banned', [viewer, 'doc:d#banned@*'], 'reader', TRUE],
    ['and where every group is banned', [viewer, 'doc:d#banned@group:*'], 'reader', TRUE],
    ['both sides name it', [viewer, `doc:d#both@${ENG}`], 'both', TRUE],
    [
      'one side names it, the other one a set above',
      ['doc:d#viewer@group:all#member', `group:all#member@${ENG}`, `doc:d#both@${ENG}`],
      'both',
      TRUE,
    ],
    ['one side names a member only', [viewer, `${ENG}@user:a`, 'doc:d#both@user:a'], 'both', FALSE],
    ['an operand is the set itself', [viewer, 'doc:d#banned@user:a'], 'reader', TRUE],
  ])('%s', (_, tuples, relation, wanted) => {
    expect(decided(tuples, `doc:d#${relation}@${ENG}`)).toBe(wanted);
  });

  test('an operand that is the target holds it, and excludes it', () => {
    const tuples = ['doc:d#viewer@user:a'];
    expect(decided(tuples, 'doc:d#reader@doc:d#viewer')).toBe(TRUE);
    expect(decided(tuples, 'doc:d#reader@doc:d#banned')).toBe(FALSE);
    expect(decided(tuples, 'doc:d#both@doc:d#viewer')).toBe(FALSE);
  });

  test('an operand without a rewrite is the target, too, and of its own object alone', () => {
    expect(decided(['doc:d#viewer@user:a'], 'doc:d#allowed@doc:d#banned')).toBe(TRUE);
    const other = ['doc:d#viewer@user:a', 'doc:e#viewer@user:a'];
    expect(decided(other, 'doc:d#allowed@doc:e#banned')).toBe(FALSE);
    expect(decided(['doc:d#viewer@doc:d#banned'], 'doc:d#allowed@doc:d#banned')).toBe(FALSE);
    expect(decided(['doc:d#viewer@doc:d#banned'], 'doc:d#reader@doc:d#banned')).toBe(FALSE);
  });

  test('a set below whose relation has operators is left to the general evaluation', () => {
    const tuples = ['doc:d#viewer@doc:e#reader', `doc:e#viewer@${ENG}`];
    const answers = answersOf(evaluatorOf(tuples), viewer);
    expect(answers).toEqual({ hot: CHECK_GENERAL, value: TRUE });
    // Unless it is the target.
    expect(decided(tuples, 'doc:d#viewer@doc:e#reader')).toBe(TRUE);
  });

  test('operators below operators are left to the general evaluation', () => {
    const { hot, value } = answersOf(evaluatorOf([viewer]), `doc:d#deep@${ENG}`);
    expect([hot, value]).toEqual([CHECK_GENERAL, TRUE]);
  });
});

describe('an object itself', () => {
  test.each([
    ['is named', ['doc:d#viewer@group:eng'], TRUE],
    ['is one of all of its namespace', ['doc:d#viewer@group:*', 'doc:x#viewer@group:eng'], TRUE],
    ['is so where no tuple names it', ['doc:d#viewer@group:*'], TRUE],
    [
      'is in a group with all of its namespace',
      ['doc:d#viewer@group:x#member', 'group:x#member@group:*'],
      TRUE,
    ],
    [
      'is not one of all of another namespace',
      ['doc:d#viewer@folder:*', 'doc:x#viewer@group:eng'],
      FALSE,
    ],
    ['is not everybody', ['doc:d#viewer@*', 'doc:x#viewer@group:eng'], FALSE],
    ['is not its usersets', [`doc:d#viewer@${ENG}`], FALSE],
    [
      'is not the object that is written as a wildcard',
      ['doc:d#viewer@group:*#', 'doc:x#viewer@group:eng'],
      FALSE,
    ],
    ['is in a group', ['doc:d#viewer@group:x#member', 'group:x#member@group:eng'], TRUE],
  ])('%s', (_, tuples, wanted) => {
    expect(decided(tuples, 'doc:d#viewer@group:eng')).toBe(wanted);
  });

  test('is excluded by its wildcard, and by no other', () => {
    const viewer = 'doc:d#viewer@group:eng';
    const reads = (banned: string) => decided([viewer, banned], 'doc:d#reader@group:eng');
    expect(reads('doc:d#banned@group:*')).toBe(FALSE);
    expect(reads('doc:d#banned@folder:*')).toBe(TRUE);
    expect(reads('doc:d#banned@*')).toBe(TRUE);
    expect(reads('doc:d#banned@group:eng')).toBe(FALSE);
    expect(reads('doc:d#banned@group:other')).toBe(TRUE);
  });
});

describe('what tuples carry', () => {
  const grown = '{"age":30}';
  const young = '{"age":3}';

  test('conditions decide with the context; without one a denial is undecided', () => {
    for (const tuple of [`doc:d#viewer@${ENG}`, 'doc:d#viewer@group:all#member']) {
      const tuples = [undecided(tuple), `group:all#member@${ENG}`];
      expect(decided(tuples, `doc:d#viewer@${ENG}`, { context: grown })).toBe(TRUE);
      expect(decided(tuples, `doc:d#viewer@${ENG}`, { context: young })).toBe(FALSE);
      expect(decided(tuples, `doc:d#viewer@${ENG}`)).toBe(UNDETERMINED);
    }
    const allowed = [undecided('doc:d#viewer@group:x#member'), `doc:d#viewer@${ENG}`];
    expect(decided(allowed, `doc:d#viewer@${ENG}`)).toBe(TRUE);
  });

  test('an undecided ban leaves it undecided', () => {
    const tuples = [`doc:d#viewer@${ENG}`, undecided(`doc:d#banned@${ENG}`)];
    expect(decided(tuples, `doc:d#reader@${ENG}`, { context: young })).toBe(TRUE);
    expect(decided(tuples, `doc:d#reader@${ENG}`, { context: grown })).toBe(FALSE);
    expect(decided(tuples, `doc:d#reader@${ENG}`)).toBe(UNDETERMINED);
  });

  test('what has expired is not there', () => {
    const expired = { ...keyOf(`doc:d#viewer@${ENG}`), expiresAtUs: 0n };
    expect(decided([expired], `doc:d#viewer@${ENG}`)).toBe(FALSE);
    // In a list as well, where the target is looked for by itself.
    const listed = [expired, 'doc:d#viewer@group:x#member', 'doc:d#viewer@group:y#member'];
    expect(decided(listed, `doc:d#viewer@${ENG}`)).toBe(FALSE);
    const later = { ...expired, expiresAtUs: 1n };
    expect(decided([later, `doc:x#viewer@${ENG}`], `doc:d#viewer@${ENG}`)).toBe(TRUE);
  });
});

describe('bounds', () => {
  test('of a long list the target is found at once; without it the general evaluation reads on', () => {
    const groups = Array.from({ length: 500 }, (_, i) => `doc:d#viewer@group:g${i}#member`);
    const evaluator = evaluatorOf([...groups, `doc:x#viewer@${ENG}`]);
    expect(answersOf(evaluator, 'doc:d#viewer@group:g499#member').hot).toBe(CHECK_ALLOWED);
    expect(answersOf(evaluator, `doc:d#viewer@${ENG}`)).toEqual({
      hot: CHECK_GENERAL,
      value: FALSE,
    });
    const objects = Array.from({ length: 500 }, (_, i) => `doc:d#viewer@group:o${i}`);
    const all = evaluatorOf([...objects, 'doc:d#viewer@group:*']);
    expect(answersOf(all, 'doc:d#viewer@group:never')).toEqual({ hot: CHECK_ALLOWED, value: TRUE });
  });

  test('the target counts as a userset of the path, as in the general evaluation', () => {
    const tuples = [
      'doc:d#viewer@group:a#member',
      'group:a#member@group:b#member',
      `group:b#member@${ENG}`,
    ];
    const answers = [1, 2, 3, 4, 5, 6, 7].map((depthMax) => {
      const { hot, value } = answersOf(evaluatorOf(tuples, depthMax), `doc:d#viewer@${ENG}`);
      if (hot !== CHECK_GENERAL) expect(hot).toBe(CODES[value]);
      return value;
    });
    expect(answers).toEqual([2, 2, 2, TRUE, TRUE, TRUE, TRUE]);
  });

  test('a budget that could end is for the general evaluation', () => {
    const tuples = [
      'doc:d#viewer@group:a#anyone',
      `group:a#anyone@group:b#anyone`,
      `group:b#anyone@${ENG}`,
    ];
    const evaluator = evaluatorOf(tuples);
    expect(answersOf(evaluator, `doc:d#viewer@${ENG}`, { reads: 3 }).hot).toBe(CHECK_GENERAL);
    expect(answersOf(evaluator, `doc:d#viewer@${ENG}`, { reads: 100 }).hot).toBe(CHECK_ALLOWED);
    expect(evaluator.lastReads).toBeLessThan(10);
  });

  test('a set that contains itself ends, and says that it does', () => {
    const tuples = [
      'doc:d#viewer@group:a#member',
      'group:a#member@group:a#member',
      `doc:x#viewer@${ENG}`,
    ];
    const evaluator = evaluatorOf(tuples);
    expect(answersOf(evaluator, `doc:d#viewer@${ENG}`)).toEqual({
      hot: CHECK_DENIED,
      value: FALSE,
    });
    expect(evaluator.lastBackstops).toBe(BACKSTOP_CYCLE);
    const folders = evaluatorOf([
      'folder:f#parent@folder:g',
      'folder:g#parent@folder:f',
      `doc:x#viewer@${ENG}`,
    ]);
    expect(answersOf(folders, `folder:f#viewer@${ENG}`)).toEqual({
      hot: CHECK_GENERAL,
      value: FALSE,
    });
    expect(answersOf(folders, 'folder:f#viewer@folder:g#editor').hot).toBe(CHECK_ALLOWED);
  });

  test('what two ways lead to is looked at once, and is no cycle', () => {
    const tuples = ['a', 'b'].flatMap((id) => [
      `doc:d#viewer@group:${id}#anyone`,
      `group:${id}#anyone@group:c#anyone`,
    ]);
    const evaluator = evaluatorOf([
      ...tuples,
      'group:c#anyone@group:e#anyone',
      `doc:x#viewer@${ENG}`,
    ]);
    expect(answersOf(evaluator, `doc:d#viewer@${ENG}`)).toEqual({
      hot: CHECK_DENIED,
      value: FALSE,
    });
    expect(evaluator.lastBackstops).toBe(0);
  });

  test('an object of many relations is asked by relation', () => {
    const many = Array.from({ length: 40 }, (_, i) => `folder:f#other${i}@user:a`);
    const tuples = [...many, `folder:f#editor@${ENG}`, 'folder:f#parent@folder:g'];
    expect(decided(tuples, `folder:f#viewer@${ENG}`)).toBe(TRUE);
    expect(
      decided([...tuples, 'folder:g#viewer@group:x#member'], 'folder:f#viewer@group:x#member'),
    ).toBe(TRUE);
    expect(
      decided([...tuples, 'folder:h#viewer@group:x#member'], 'folder:f#viewer@group:x#member'),
    ).toBe(FALSE);
  });

  test('only exact questions about sets are decided', () => {
    const evaluator = evaluatorOf([`doc:d#viewer@${ENG}`, 'doc:d#viewer@user:a']);
    const query = { ...keyOf(`doc:d#viewer@${ENG}`), contextJson: '' };
    expect(evaluator.checkExact(query, 0, 100)).toBe(CHECK_GENERAL);
    const user = { ...keyOf('doc:d#viewer@user:a'), contextJson: '', isExact: true };
    expect(evaluator.checkExact(user, 0, 100)).toBe(CHECK_GENERAL);
  });
});

describe('worlds drawn at random', () => {
  const SUBJECTS = [0, 1, 2, 3, 4].flatMap((i) => [
    `group:g${i}#member`,
    `group:g${i}#anyone`,
    `group:g${i}`,
  ]);
  const PLACES = [
    ...[0, 1, 2, 3, 4].flatMap((i) => [`group:g${i}#member`, `group:g${i}#lead`]),
    ...['f', 'g', 'h'].flatMap((id) => [`folder:${id}#viewer`, `folder:${id}#editor`]),
    ...['viewer', 'banned', 'both'].map((relation) => `doc:d#${relation}`),
  ];
  const PARENTS = ['doc:d#parent@folder:f', 'folder:f#parent@folder:g', 'folder:g#parent@folder:h'];

  /** Compares all questions of some worlds; returns how many the hot path decided, and how many there were. */
  function compare(seed: number, depthMax: number, more: readonly string[]): [number, number] {
    const { next: random } = createRandom(seed);
    const draw = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
    let [hotCount, count] = [0, 0];
    for (let world = 0; world < 40; world++) {
      const texts = Array.from({ length: 3 + Math.floor(random() * 20) }, () => {
        const who = random() < 0.1 ? draw(['group:*', 'user:*', 'user:a']) : draw(SUBJECTS);
        return `${draw(PLACES)}@${who}`;
      });
      const parents = PARENTS.filter(() => random() < 0.7);
      const evaluator = evaluatorOf([...new Set([...texts, ...parents, ...more])], depthMax);
      for (const place of ['doc:d#viewer', 'doc:d#reader', 'doc:d#both', 'folder:f#viewer']) {
        for (const who of [...SUBJECTS, 'folder:h#editor', 'doc:d#viewer']) {
          const { hot, value } = answersOf(evaluator, `${place}@${who}`);
          count++;
          if (hot === CHECK_GENERAL) continue;
          hotCount++;
          if (hot === CODES[value]) continue;
          expect.fail(`${seed}, ${depthMax}: ${texts.join()}: ${place}@${who} is ${hot}`);
        }
      }
    }
    return [hotCount, count];
  }

  test('are decided as the general evaluation decides them, and mostly by the hot path', () => {
    const [hot, count] = compare(1, 256, []);
    expect(hot / count).toBeGreaterThan(0.8);
  });

  test('and so they are where an object has many relations', () => {
    const many = Array.from({ length: 20 }, (_, i) => `folder:f#other${i}@user:a`);
    const [hot, count] = compare(2, 256, [...many, ...many.map((one) => one.replace('f#', 'g#'))]);
    expect(hot / count).toBeGreaterThan(0.8);
  });

  test.each([2, 3, 4, 5])('and within a depth bound of %i', (depthMax) => {
    const [hot, count] = compare(depthMax, depthMax, []);
    expect([hot > 0, hot < count]).toEqual([true, true]);
  });

  test('an object on an exclude side counts as a userset of its path, as in the general evaluation', () => {
    const evaluator = evaluatorOf(['doc:d#banned@group:g1', 'doc:d#viewer@user:a'], 2);
    const answers = answersOf(evaluator, 'doc:d#reader@doc:d#viewer');
    expect(answers).toEqual({ hot: CHECK_GENERAL, value: UNDETERMINED });
  });
});

test('reads are those of the sets that are looked at', () => {
  const tuples = [
    ...[1, 2, 3].map((i) => `doc:d#viewer@group:g${i}#member`),
    ...[1, 2, 3].map((i) => `group:g${i}#member@group:deep${i}#member`),
    `group:deep3#member@${ENG}`,
    `doc:x#viewer@${ENG}`,
  ];
  const evaluator = evaluatorOf(tuples);
  const readsOf = (question: string): [number, number] => {
    const { hot } = answersOf(evaluator, question);
    return [hot, evaluator.lastReads];
  };
  // Of the document alone: what is below the groups is remembered.
  expect(readsOf(`doc:d#viewer@${ENG}`)).toEqual([CHECK_ALLOWED, 2]);
  expect(readsOf('doc:d#viewer@group:deep2#lead')).toEqual([CHECK_DENIED, 2]);
  expect(readsOf('doc:d#viewer@group:g2#member')).toEqual([CHECK_ALLOWED, 2]);
});

test('what is remembered of groups follows changes', () => {
  const index = new TupleIndex();
  const options = { depthMax: 256, membershipBytesMax: 1 << 16 };
  for (const tuple of [
    'doc:d#viewer@group:a#member',
    'group:a#member@group:b#member',
    `doc:x#viewer@${ENG}`,
  ]) {
    index.applyChange('insert', keyOf(tuple));
  }
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  const hot = (): number => answersOf(evaluator, `doc:d#viewer@${ENG}`).hot;
  expect(hot()).toBe(CHECK_DENIED);
  index.applyChange('insert', keyOf(`group:b#member@${ENG}`));
  expect(hot()).toBe(CHECK_ALLOWED);
  index.applyChange('delete', keyOf('group:a#member@group:b#member'));
  expect(hot()).toBe(CHECK_DENIED);
  index.applyChange('insert', keyOf(`group:a#member@${ENG}`));
  expect(hot()).toBe(CHECK_ALLOWED);
  index.applyChange('delete', keyOf(`group:a#member@${ENG}`));
  expect(hot()).toBe(CHECK_DENIED);
});
