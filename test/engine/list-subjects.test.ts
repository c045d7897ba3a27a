import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  BACKSTOP_BUDGET,
  BACKSTOP_CYCLE,
  BACKSTOP_DEPTH,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { guarded } from '../../src/engine/general-evaluator.ts';
import { listSubjects } from '../../src/engine/lists/list-subjects.ts';
import { StepsTask } from '../../src/engine/lists/steps-task.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import type { ListPage, SubjectPage } from '../../src/model/subject-list.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const exclusion = (include: string, exclude: string) => ({
  exclusion: { include: { computed: include }, exclude: { computed: exclude } },
});
const MODEL = parseModel(
  JSON.stringify({
    namespaces: {
      doc: {
        relations: {
          viewer: {},
          banned: {},
          pardoned: {},
          out: exclusion('banned', 'pardoned'),
          reader: exclusion('viewer', 'out'),
          editor: {},
          both: { intersection: [{ computed: 'viewer' }, { computed: 'editor' }] },
        },
      },
      club: {
        relations: {
          out: {},
          member: { exclusion: { include: { this: {} }, exclude: { computed: 'out' } } },
        },
      },
    },
  }),
);
const ALL: ListPage = { after: '', idsMax: Infinity };

type Options = { readonly page?: ListPage; readonly reads?: number; readonly depthMax?: number };

type Tuples = readonly (string | RelationTuple)[];

/** Large lists are asked more than one question: an index is built once. */
const indexes = new WeakMap<Tuples, TupleIndex>();

function indexOf(tuples: Tuples): TupleIndex {
  const built = indexes.get(tuples);
  if (built !== undefined) return built;
  const index = new TupleIndex();
  for (const tuple of tuples) {
    index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  indexes.set(tuples, index);
  return index;
}

function taskOf(
  tuples: Tuples,
  userset: string,
  { page = ALL, reads = 100_000, depthMax = 256 }: Options = {},
) {
  const index = indexOf(tuples);
  const options = { depthMax, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock).over(index);
  const scope = evaluator.scope('list', '', 0, reads);
  const { namespace, objectId, relation } = keyOf(`${userset}@*`);
  const entity = index.entityId(index.nameId(namespace), objectId);
  const steps = listSubjects(scope, { entity, relation: index.nameId(relation) }, page);
  return guarded(scope, new StepsTask(scope, steps));
}

function listOf(tuples: Tuples, userset: string, options?: Options) {
  const task = taskOf(tuples, userset, options);
  expect(task.run(Infinity)).toBe('done');
  return task.result();
}

const NOBODY: SubjectPage = {
  userIds: [],
  excludedUserIds: [],
  undecidedUserIds: [],
  wildcard: false,
  isWildcardUndecided: false,
  next: '',
};
const undecided = (text: string): RelationTuple => ({
  ...keyOf(text),
  conditionName: 'age_at_least',
  conditionParams: '{"min_age":18}',
});

describe('a list of subjects', () => {
  test('of what nothing mentions is empty', () => {
    expect(listOf([], 'doc:d#viewer')).toEqual(NOBODY);
    expect(listOf(['doc:d#viewer@user:a'], 'doc:d#banned')).toEqual(NOBODY);
    expect(listOf(['doc:d#viewer@user:a'], 'doc:e#viewer')).toEqual(NOBODY);
    expect(listOf(['doc:d#viewer@user:a'], 'doc:d#unheard')).toEqual(NOBODY);
  });

  test('says who is excluded where everybody else is not, and who is named all the same', () => {
    const tuples = ['doc:d#viewer@*', 'doc:d#viewer@user:a', 'doc:d#viewer@user:b'];
    expect(listOf(tuples, 'doc:d#reader')).toEqual({
      ...NOBODY,
      userIds: ['a', 'b'],
      wildcard: true,
    });
    expect(listOf([...tuples, 'doc:d#banned@user:b'], 'doc:d#reader')).toEqual({
      ...NOBODY,
      userIds: ['a'],
      excludedUserIds: ['b'],
      wildcard: true,
    });
  });

  test('does not name who is only pardoned where everybody is let in, and does where nobody is', () => {
    const tuples = ['doc:d#viewer@*', 'doc:d#banned@user:b', 'doc:d#pardoned@user:b'];
    expect(listOf(tuples, 'doc:d#reader')).toEqual({ ...NOBODY, wildcard: true });
    const all = ['doc:d#viewer@*', 'doc:d#banned@*', 'doc:d#pardoned@user:b'];
    expect(listOf(all, 'doc:d#reader')).toEqual({ ...NOBODY, userIds: ['b'] });
  });

  test('says of whom it cannot be decided, of everybody too', () => {
    expect(listOf([undecided('doc:d#viewer@user:a')], 'doc:d#reader')).toEqual({
      ...NOBODY,
      undecidedUserIds: ['a'],
    });
    const everybody = [undecided('doc:d#viewer@*'), 'doc:d#viewer@user:b', 'doc:d#banned@user:c'];
    expect(listOf(everybody, 'doc:d#reader')).toEqual({
      ...NOBODY,
      userIds: ['b'],
      excludedUserIds: ['c'],
      isWildcardUndecided: true,
    });
  });

  test('is sorted in the order of UTF-8', () => {
    const ids = ['\ud83d\ude42', '\uffee', 'a', 'B', 'é'];
    const wanted = ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const tuples = ids.map((id) => `doc:d#viewer@user:${id}`);
    expect(listOf(tuples, 'doc:d#viewer').userIds).toEqual(wanted);
  });
});

describe('pages', () => {
  const ids = Array.from({ length: 5_000 }, (_, i) => `u${i}`).sort();
  // Every club is near, but there is a longer way to one of them: within a bound of 4 nodes it may matter.
  const clubs = [
    'doc:d#viewer@club:x#member',
    'club:x#member@club:y#member',
    'doc:d#viewer@club:y#member',
  ];
  const banned = ids.flatMap((id, i) => (i % 3 === 0 ? [`doc:d#banned@user:${id}`] : []));
  const tuples = [...clubs, ...ids.map((id) => `doc:d#viewer@user:${id}`), ...banned];
  const wanted = ids.filter((_, i) => i % 3 !== 0);

  test.each([
    ['solved', 256],
    ['checked one by one', 4],
  ])('go on after an id that is there, and after one that is not: %s', (_how, depthMax) => {
    const page = (after: string, idsMax: number) =>
      listOf(tuples, 'doc:d#reader', { page: { after, idsMax }, depthMax, reads: 1_000_000 });
    const [first = '', second = '', third = ''] = wanted;
    expect(page('', 2)).toEqual({ ...NOBODY, userIds: [first, second], next: second });
    expect(page(second, 1)).toEqual({ ...NOBODY, userIds: [third], next: third });
    expect(page(`${first}\u0001`, 1).userIds).toEqual([second]);
    expect(page(wanted.at(-2) ?? '', 1)).toEqual({ ...NOBODY, userIds: wanted.slice(-1) });
    expect(page('v', 1)).toEqual(NOBODY);
    expect(page('', wanted.length)).toEqual({ ...NOBODY, userIds: wanted });
  });

  test('check no more users than they list and refuse, where the depth bound may matter', () => {
    const reads = (idsMax: number): number => {
      const page = { after: '', idsMax };
      const task = taskOf(tuples, 'doc:d#reader', { page, depthMax: 4, reads: 1_000_000 });
      expect(task.run(Infinity)).toBe('done');
      return task.reads ?? 0;
    };
    // 90 more, and of those between them that are banned 45.
    expect(reads(100) - reads(10)).toBeGreaterThan(90);
    expect(reads(100)).toBeLessThan(5_000);
  });
});

describe('work on a list of subjects', () => {
  const crowd = (count: number, of: string): string[] =>
    Array.from({ length: count }, (_, i) => `${of}@user:u${i}`);

  test('is a read for 64 users, exclusions and intersections or not', () => {
    const tuples = [
      ...crowd(64_000, 'doc:d#viewer'),
      ...crowd(32_000, 'doc:d#editor'),
      ...crowd(640, 'doc:d#banned'),
    ];
    for (const [relation, count, readsMax] of [
      ['viewer', 64_000, 1_002],
      ['both', 32_000, 1_510],
      ['reader', 63_360, 1_020],
    ] as const) {
      const task = taskOf(tuples, `doc:d#${relation}`, { reads: readsMax });
      expect(task.run(Infinity)).toBe('done');
      expect([relation, task.result().userIds.length]).toEqual([relation, count]);
    }
  });

  test('beyond the budget is an error, not a shorter list', () => {
    const task = taskOf(crowd(64_000, 'doc:d#viewer'), 'doc:d#viewer', { reads: 900 });
    expect(() => task.run(Infinity)).toThrow('exceeded the read budget of 900');
    expect(task.backstops).toBe(BACKSTOP_BUDGET);
  });

  test('ends its slices everywhere', () => {
    const tuples = [...crowd(20_000, 'doc:d#viewer'), ...crowd(10_000, 'doc:d#banned')];
    const task = taskOf(tuples, 'doc:d#reader');
    let slices = 0;
    while (task.run(0) === 'more') slices++;
    expect(task.result().userIds).toHaveLength(10_000);
    expect(slices).toBeGreaterThan(300);
  });

  test('beyond the depth bound tells that it is, and that nothing is decided there', () => {
    const chain = Array.from({ length: 6 }, (_, i) => `group:g${i}#member@group:g${i + 1}#member`);
    const tuples = [...chain, 'group:g6#member@user:far', 'group:g2#member@user:near'];
    const task = taskOf(tuples, 'group:g0#member', { depthMax: 4 });
    expect(task.run(Infinity)).toBe('done');
    expect(task.result()).toEqual({ ...NOBODY, userIds: ['near'], isWildcardUndecided: true });
    expect(task.backstops).toBe(BACKSTOP_DEPTH);
  });

  test('on clubs that contain each other is exact, and tells of the circle', () => {
    const tuples = [
      'club:a#member@club:b#member',
      'club:b#member@club:a#member',
      'club:a#member@user:x',
      'club:b#member@user:y',
      'club:b#out@user:x',
    ];
    const task = taskOf(tuples, 'club:b#member');
    expect(task.run(Infinity)).toBe('done');
    expect(task.result()).toEqual({ ...NOBODY, userIds: ['y'] });
    expect(task.backstops).toBe(BACKSTOP_CYCLE);
    // Solved for all users at once: a hundred more of them cost a read or two.
    const many = taskOf([...tuples, ...crowd(100, 'club:a#member')], 'club:b#member', {
      reads: (task.reads ?? 0) + 2,
    });
    expect(many.run(Infinity)).toBe('done');
    expect(many.result().userIds).toHaveLength(101);
  });
});
