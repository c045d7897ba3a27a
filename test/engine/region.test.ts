import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { ConditionCache, UNDETERMINED, FALSE, Scope, TRUE } from '../../src/engine/bound/scope.ts';
import { type Border, Region } from '../../src/engine/general/region.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      group: { relations: { member: {} } },
      club: {
        relations: {
          out: {},
          member: { exclusion: { include: { this: {} }, exclude: { computed: 'out' } } },
        },
      },
    },
  }),
);
const UNDECIDED = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };

type Held = {
  readonly region: Region;
  readonly scope: Scope;
  readonly index: TupleIndex;
};

/**
 * The region of a group, by its edges: `a>b` names group b in group a, `a?b` so under a condition that cannot be decided;
 * `a>u:x` and `a?u:x` name user x, `a>c:x` the members of club x.
 */
function held(edges: string, { levelMax = 256, root = 'r', user = 'u' } = {}): Held {
  const index = new TupleIndex();
  for (const edge of edges.split(' ').filter((one) => one !== '')) {
    const [, from = '', kind, to = ''] = /^(\w+)([>?])(.*)$/.exec(edge) ?? [];
    const subject = to.startsWith('u:')
      ? `user:${to.slice(2)}`
      : to.startsWith('c:')
        ? `club:${to.slice(2)}#member`
        : `group:${to}#member`;
    const key = keyOf(`group:${from}#member@${subject}`);
    index.applyChange('insert', kind === '>' ? key : { ...key, ...UNDECIDED });
  }
  const scope = new Scope({
    reader: index,
    model: new BoundModel(MODEL, index),
    clock: systemClock,
    conditions: new ConditionCache(),
    depthMax: 256,
    nowMs: 0,
    readBudget: 100_000,
    contextJson: '',
    relationText: 'group#member',
  });
  const userNode = index.userNodeOf(index.entityId(EMPTY_NAME, user));
  const target = { userNode, setEntity: 0, setRelation: 0 };
  const region = new Region(scope, target, levelMax, false);
  region.seed(index.entityId(index.nameId('group'), root), index.nameId('member'));
  return { region, scope, index };
}

/** The region once there is nothing left to visit. */
function done(edges: string, options: Parameters<typeof held>[1] = {}): Region {
  const { region } = held(edges, options);
  while (region.step()) {
    // Each step visits one userset.
  }
  return region;
}
const found = (edges: string, levelMax = 256): object => {
  const { value, height, isDepthExceeded } = done(edges, { levelMax });
  return { value, height, isDepthExceeded };
};

describe('what is found at its least depth', () => {
  test('rests on as many usersets as lead there, whatever else waits', () => {
    const more = 'r>a r>b a>u:u b>c c>d c>u:u';
    expect(found(more)).toEqual({ value: TRUE, height: 2, isDepthExceeded: false });
    expect(found(more, 2)).toEqual({ value: TRUE, height: 2, isDepthExceeded: false });
    expect(found('r>u:u')).toEqual({ value: TRUE, height: 1, isDepthExceeded: false });
    expect(found('r>a a>b b>u:u a>u:v')).toEqual({
      value: TRUE,
      height: 3,
      isDepthExceeded: false,
    });
  });

  test('nothing more is visited then', () => {
    const { region, scope } = held('r>a r>b a>u:u b>u:u b>c');
    while (region.step()) {
      // Until it is found.
    }
    const { reads } = scope;
    expect([region.step(), scope.reads, region.value]).toEqual([false, reads, TRUE]);
    expect(reads).toBe(2);
  });

  test('a deny rests on the longest of the shortest ways', () => {
    expect(found('r>a a>b b>c r>c')).toEqual({ value: FALSE, height: 3, isDepthExceeded: false });
    expect(found('r>a a>b b>c')).toEqual({ value: FALSE, height: 4, isDepthExceeded: false });
  });

  test('beyond the depth bound nothing is decided', () => {
    expect(found('r>a a>b b>u:u', 2)).toMatchObject({ value: UNDETERMINED, isDepthExceeded: true });
    expect(found('r>a a>b b>u:u', 3)).toMatchObject({ value: TRUE, height: 3 });
    expect(found('r>a a>b', 2)).toMatchObject({ value: UNDETERMINED, isDepthExceeded: true });
    expect(found('r>a a>b', 3)).toEqual({ value: FALSE, height: 3, isDepthExceeded: false });
  });
});

describe('what is reached by undecided ways alone', () => {
  test('is undecided at most', () => {
    expect(found('r?a a>u:u')).toMatchObject({ value: UNDETERMINED, isDepthExceeded: false });
    expect(found('r?u:u')).toMatchObject({ value: UNDETERMINED, isDepthExceeded: false });
    expect(found('r?a a>b')).toEqual({ value: FALSE, height: 3, isDepthExceeded: false });
    expect(found('r?a a?b b>u:u')).toMatchObject({ value: UNDETERMINED });
    expect(found('r?a r>b b>a a>u:u')).toMatchObject({ value: TRUE, height: 3 });
  });

  test('each of them is gone', () => {
    for (const last of ['a', 'b', 'c']) {
      expect(found(`r?a r?b r?c ${last}>u:u`)).toMatchObject({ value: UNDETERMINED });
    }
    for (const last of ['b', 'd', 'e']) {
      // b is met on the way of a, c begins at the same depth.
      expect([last, found(`r?a a>b r>s s?c c>d b>e ${last}>u:u`)]).toMatchObject([
        last,
        { value: UNDETERMINED, isDepthExceeded: false },
      ]);
      expect(found('r?a a>b r>s s?c c>d b>e')).toMatchObject({ value: FALSE, height: 4 });
    }
  });

  test('counts its usersets as other ways do', () => {
    for (const [levelMax, isDepthExceeded] of [
      [2, true],
      [3, false],
    ] as const) {
      const value = isDepthExceeded ? UNDETERMINED : FALSE;
      expect(found('r?a a>b', levelMax)).toMatchObject({ value, isDepthExceeded });
      expect(found('r>a a?b', levelMax)).toMatchObject({ value, isDepthExceeded });
    }
    expect(found('r?a', 1)).toMatchObject({ value: UNDETERMINED, isDepthExceeded: true });
    expect(found('r?a', 2)).toEqual({ value: FALSE, height: 2, isDepthExceeded: false });
    expect(found('r?a a>b b>c')).toEqual({ value: FALSE, height: 4, isDepthExceeded: false });
  });

  test('lowers nothing of what other ways came to', () => {
    expect(found('r>a a>b b>c r?d')).toEqual({ value: FALSE, height: 4, isDepthExceeded: false });
  });

  test('is left out where it is undecided already', () => {
    const deep = 'r?a a>b b>c c>d d>e';
    expect(found(`${deep} r?u:u`, 3)).toMatchObject({
      value: UNDETERMINED,
      isDepthExceeded: false,
    });
    expect(found(deep, 3)).toMatchObject({ value: UNDETERMINED, isDepthExceeded: true });
    const { region, scope } = held('r?u:u r?a a>c:x');
    while (region.step()) {
      // Visits the group itself.
    }
    expect([scope.reads, region.borders]).toEqual([1, []]);
  });
});

describe('a cycle', () => {
  test.each([
    ['of one', 'r>r', true],
    ['of the first and another', 'r>a a>r', true],
    ['behind the first', 'r>a a>b b>a', true],
    ['of one behind the first', 'r>a a>a', true],
    ['of undecided ways', 'r?a a>b b>a', true],
    ['beside others', 'r>x r>y x>z y>z r>a a>b b>c c>a', true],
    ['none where ways meet', 'r>a r>b a>c b>c', false],
    ['none where an undecided way leads to what was met', 'r>n r?a a>n', false],
    ['none where two undecided ways meet', 'r>n r?a r?b a>c b>c c>n', false],
    ['none at all', 'r>a a>b', false],
  ] as const)('%s', (_what, edges, hasCycle) => {
    expect(done(edges).hasCycle()).toBe(hasCycle);
  });
});

describe('what a border comes to', () => {
  const border = (level: number, isWeak = false): Border => ({
    entity: 1,
    relation: 1,
    level,
    isWeak,
  });
  const denied = (): Region => done('r>a');

  test('it is met with its depth, on decided ways and on others', () => {
    const borders = done('r>c:x r>a a>c:y a?c:z').borders;
    expect(borders.map(({ level, isWeak }) => [level, isWeak])).toEqual([
      [2, false],
      [3, false],
      [3, true],
    ]);
  });

  test('an allow counts from its depth on, on a decided way alone', () => {
    const region = denied();
    region.acceptBorder(border(3), TRUE, 4, false);
    expect([region.value, region.height, region.isDepthExceeded]).toEqual([TRUE, 6, false]);
    const weak = denied();
    weak.acceptBorder(border(3, true), TRUE, 4, false);
    expect([weak.value, weak.isDepthExceeded]).toEqual([UNDETERMINED, false]);
  });

  test('a deny raises what the deny rests on, and lowers nothing', () => {
    const region = denied();
    expect(region.height).toBe(2);
    const heights = [1, 2, 5, 4].map((height) => {
      region.acceptBorder(border(2), FALSE, height, false);
      return region.height;
    });
    expect([heights, region.value]).toEqual([[2, 3, 6, 6], FALSE]);
  });

  test('what the depth bound hid is told where it left something undecided', () => {
    for (const [value, isDepthExceeded] of [
      [UNDETERMINED, true],
      [FALSE, false],
      [TRUE, false],
    ] as const) {
      const region = denied();
      region.acceptBorder(border(2), value, 1, true);
      expect([value, region.isDepthExceeded]).toEqual([value, isDepthExceeded]);
    }
    const region = denied();
    region.acceptBorder(border(2), UNDETERMINED, 1, false);
    expect([region.value, region.isDepthExceeded]).toEqual([UNDETERMINED, false]);
  });

  test('an undecided one takes nothing from an allow', () => {
    const region = done('r>u:u');
    region.acceptBorder(border(1), UNDETERMINED, 1, false);
    expect(region.value).toBe(TRUE);
  });
});

test('what nothing mentions holds nobody, also nobody', () => {
  const { scope, index } = held('r>a');
  for (const user of ['u', 'nobody']) {
    const userNode = index.userNodeOf(index.entityId(EMPTY_NAME, user));
    const region = new Region(scope, { userNode, setEntity: 0, setRelation: 0 }, 9, false);
    region.seed(0, 0);
    while (region.step()) {
      // One userset, of nothing.
    }
    expect(region.value).toBe(FALSE);
  }
});

test('a long list is looked through to its end, and its entries hang on it', () => {
  const many = Array.from({ length: 700 }, (_, i) => `r>m${i}`).join(' ');
  for (const i of [0, 300, 699]) {
    expect(found(`${many} m${i}>u:u`)).toMatchObject({ value: TRUE, height: 2 });
    expect(done(`${many} m${i}>r`).hasCycle()).toBe(true);
    expect(done(`${many} m${i}>m5`).hasCycle()).toBe(i === 5);
  }
  const weak = Array.from({ length: 700 }, (_, i) => `a>m${i}`).join(' ');
  expect(found(`r?a ${weak} m650>u:u`)).toMatchObject({
    value: UNDETERMINED,
    isDepthExceeded: false,
  });
  expect(found(`r?a ${weak}`)).toEqual({ value: FALSE, height: 3, isDepthExceeded: false });
});
