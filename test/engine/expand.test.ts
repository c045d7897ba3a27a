import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  BACKSTOP_CYCLE,
  BACKSTOP_DEPTH,
  type EvaluationTask,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { ExpandTree } from '../../src/model/expand-tree.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: {
        relations: {
          parent: {},
          viewer: {},
          above: { tuple_to_userset: { tupleset: 'parent', computed: 'above' } },
          any: { union: [{ this: {} }, { computed: 'viewer' }] },
          over: { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
        },
      },
    },
  }),
);

function expand(
  tuples: readonly (string | RelationTuple)[],
  relation: string,
  depthMax = 256,
): EvaluationTask<ExpandTree> {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  const options = { depthMax, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  const task = evaluator.startExpand(ref('d', relation), 0, 10_000);
  expect(task.run(Infinity)).toBe('done');
  return task;
}
const ref = (objectId: string, relation: string, namespace = 'doc') => ({
  namespace,
  objectId,
  relation,
});
const emptyLeaf = { type: 'leaf', userIds: [], sets: [], wildcard: false } as const;

describe('a tree', () => {
  test('names users and sets in the order of UTF-8, whatever the order of the tuples', () => {
    const ids = ['b', '\u{1f600}', 'a', '\uff5e', 'B', 'ab', 'é'];
    const sets = ['group:b#x', 'group:a#y', 'group:a#x', 'doc:z#x', 'doc:z#b', 'group:a#'];
    const tuples = [
      ...ids.map((id) => `doc:d#viewer@user:${id}`),
      ...sets.map((set) => `doc:d#viewer@${set}`),
      'doc:d#viewer@*',
    ];
    const wanted = {
      type: 'leaf',
      expanded: ref('d', 'viewer'),
      userIds: ['B', 'a', 'ab', 'b', 'é', '\uff5e', '\u{1f600}'],
      sets: [
        ref('z', 'b'),
        ref('z', 'x'),
        ref('a', '', 'group'),
        ref('a', 'x', 'group'),
        ref('a', 'y', 'group'),
        ref('b', 'x', 'group'),
      ],
      wildcard: true,
    };
    expect(expand(tuples, 'viewer').result()).toStrictEqual(wanted);
    expect(expand(tuples.toReversed(), 'viewer').result()).toStrictEqual(wanted);
  });

  test('names each parent once, in order, and no parent where there is none', () => {
    const tuples = ['c', 'a', 'b'].map((id) => `doc:d#parent@doc:${id}`);
    const task = expand([...tuples, 'doc:d#parent@doc:a#viewer', 'doc:b#viewer@user:u'], 'over');
    expect(task.result()).toStrictEqual({
      type: 'union',
      expanded: ref('d', 'over'),
      children: ['a', 'b', 'c'].map((id) => ({
        ...emptyLeaf,
        expanded: ref(id, 'viewer'),
        userIds: id === 'b' ? ['u'] : [],
      })),
    });
    const none = { type: 'union', expanded: ref('d', 'over'), children: [] };
    expect(expand(['doc:d#viewer@user:u'], 'over').result()).toStrictEqual(none);
    expect(expand(['doc:e#viewer@user:u'], 'over').result()).toStrictEqual(none);
    expect(expand([], 'viewer').result()).toStrictEqual({
      ...emptyLeaf,
      expanded: ref('d', 'viewer'),
    });
  });

  test('names what a node stands for only where it is a userset', () => {
    const task = expand(['doc:d#any@user:u', 'doc:d#viewer@user:v'], 'any');
    expect(task.result()).toStrictEqual({
      type: 'union',
      expanded: ref('d', 'any'),
      children: [
        { ...emptyLeaf, userIds: ['u'] },
        { ...emptyLeaf, expanded: ref('d', 'viewer'), userIds: ['v'] },
      ],
    });
  });

  test('ends where it meets itself, and at the depth bound, and tells which', () => {
    const node = (id: string, child: unknown) => ({
      type: 'union',
      expanded: ref(id, 'above'),
      children: [child],
    });
    const end = (id: string) => ({
      ...emptyLeaf,
      expanded: ref(id, 'above'),
      sets: [ref(id, 'above')],
    });
    const circle = ['doc:d#parent@doc:e', 'doc:e#parent@doc:d'];
    const whole = expand(circle, 'above');
    expect(whole.result()).toStrictEqual(node('d', node('e', end('d'))));
    expect(whole.backstops).toBe(BACKSTOP_CYCLE);
    const short = expand(circle, 'above', 1);
    expect(short.result()).toStrictEqual(node('d', end('e')));
    expect(short.backstops).toBe(BACKSTOP_DEPTH);
    // Another relation of an object on the path is no circle.
    const other = expand(['doc:d#parent@doc:d', 'doc:d#viewer@user:u'], 'over');
    expect(other.backstops).toBe(0);
    expect(other.result()).toMatchObject({ children: [{ userIds: ['u'] }] });
  });

  test('leaves out what has ended and what has a condition', () => {
    const condition = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };
    const task = expand(
      [
        'doc:d#viewer@user:u',
        { ...keyOf('doc:d#viewer@user:late'), expiresAtUs: 0n },
        { ...keyOf('doc:d#viewer@user:later'), expiresAtUs: 1n },
        { ...keyOf('doc:d#viewer@group:g#member'), ...condition },
        { ...keyOf('doc:d#viewer@*'), ...condition },
      ],
      'viewer',
    );
    expect(task.result()).toMatchObject({ userIds: ['later', 'u'], sets: [], wildcard: false });
  });

  test('pays for each userset, leaf and tupleset, and for 64 entries of a list', () => {
    expect(expand(['doc:d#viewer@user:u'], 'viewer').reads).toBe(2);
    expect(expand([], 'viewer').reads).toBe(2);
    expect(expand(['doc:d#parent@doc:e'], 'over').reads).toBe(2 + 2);
    expect(expand([], 'over').reads).toBe(2);
    const users = Array.from({ length: 1300 }, (_, i) => `doc:d#viewer@user:u${i}`);
    const groups = Array.from({ length: 1300 }, (_, i) => `doc:d#viewer@group:g${i}#member`);
    const task = expand([...users, ...groups], 'viewer');
    expect(task.reads).toBe(2 + 2 * Math.floor(1300 / 64));
    const tree = task.result();
    expect(tree.type === 'leaf' && [tree.userIds.length, tree.sets.length]).toEqual([1300, 1300]);
  });
});
