import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { AncestorCache } from '../../src/engine/hot/ancestor-cache.ts';
import { ABSENT_CACHES, checkUserHot, type HotCaches } from '../../src/engine/hot/hot-check.ts';
import { HotModel } from '../../src/engine/hot/hot-model.ts';
import { HotScratch } from '../../src/engine/hot/hot-scratch.ts';
import { MembershipCache } from '../../src/engine/hot/membership-cache.ts';
import { ObjectCache } from '../../src/engine/hot/object-cache.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { ALL_REFS, knots, worlds } from '../reference/worlds.ts';
import { byLength } from '../support/test-length.ts';
import { keyOf } from '../support/tuple-text.ts';
import { finish } from './support.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.12, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const BYTES = 1 << 16;
const NODES = 250;
const READS = 10_000;

const upwards = (computed: string) => ({ tuple_to_userset: { tupleset: 'parent', computed } });
const MODEL = JSON.stringify({
  schema_version: 1,
  namespaces: {
    group: { relations: { member: {} } },
    folder: {
      relations: {
        parent: {},
        editor: { union: [{ this: {} }, upwards('editor')] },
        viewer: { union: [{ this: {} }, { computed: 'editor' }, upwards('viewer')] },
        open: { union: [{ this: {} }, upwards('open')] },
        blocked: {},
        reader: {
          exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'blocked' } },
        },
      },
    },
  },
});

type Asked = { readonly code: number; readonly reads: number; readonly backstops: number };
type Ask = (object: string, user: string, nodesMax?: number, readsMax?: number) => Asked;

/** The same questions with all caches, and with each kind of them absent. */
function waysOf(index: TupleIndex, modelJson = MODEL): Ask[] {
  const scratch = new HotScratch();
  const rules = parseModel(modelJson);
  return [
    [],
    ['chains'],
    ['objects', 'chains'],
    ['closures'],
    ['closures', 'chains'],
    ['closures', 'objects', 'chains'],
  ].map((off) => {
    const model = new HotModel(new BoundModel(rules, index));
    const memberships = off.includes('closures')
      ? ABSENT_CACHES.memberships
      : new MembershipCache(index, model, BYTES);
    const objects = new ObjectCache(index, model, memberships, BYTES);
    const caches: HotCaches = {
      memberships,
      objects: off.includes('objects') ? ABSENT_CACHES.objects : objects,
      ancestors: off.includes('chains')
        ? ABSENT_CACHES.ancestors
        : new AncestorCache(model, objects, BYTES),
    };
    return (object, user, nodesMax = NODES, readsMax = READS) => {
      const [namespace = '', id = '', relation = ''] = object.split(/[:#]/);
      const code = checkUserHot(
        scratch,
        index,
        model,
        caches,
        index.entityId(index.nameId(namespace), id),
        index.nameId(relation),
        index.userNodeOf(index.entityId(EMPTY_NAME, user)),
        nodesMax,
        readsMax,
      );
      return { code, reads: scratch.reads, backstops: scratch.backstops };
    };
  });
}

/** Towers share most of their tuples. */
const keys = new Map<string, ReturnType<typeof keyOf>>();

function indexOf(...tuples: readonly string[]): TupleIndex {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    const key = keys.get(tuple) ?? keyOf(tuple);
    keys.set(tuple, key);
    index.applyChange('insert', key);
  }
  return index;
}

test(`says with any caches what the general evaluation says, or leaves it to it (SEED=${seed})`, () => {
  let answered = 0;
  fc.assert(
    fc.property(fc.oneof(worlds, knots), (world) => {
      const index = new TupleIndex();
      for (const tuple of world.tuples) index.applyChange('insert', tuple);
      const options = { depthMax: 256, membershipBytesMax: BYTES };
      const general = new Evaluator(index, parseModel(world.modelJson), options, systemClock);
      const ways = waysOf(index, world.modelJson);
      for (const { namespace, objectId, relation } of ALL_REFS) {
        const entity = index.entityId(index.nameId(namespace), objectId);
        const name = index.nameId(relation);
        for (const user of ['u0', 'u1', 'nobody']) {
          const id = index.entityId(EMPTY_NAME, user);
          const allowed = finish(general.startCheckIds(entity, name, id, 0, READS));
          for (const [way, ask] of ways.entries()) {
            const { code } = ask(`${namespace}:${objectId}#${relation}`, user);
            if (code === CHECK_GENERAL) continue;
            answered++;
            if ((code === CHECK_ALLOWED) === allowed) continue;
            expect.fail(`way ${way}: ${objectId}#${relation} of ${user} should be ${allowed}`);
          }
        }
      }
    }),
    { numRuns: Math.ceil(120 * FUZZ_RUNS), seed },
  );
  expect(answered).toBeGreaterThan(100);
});

const SERVICE = [
  'folder:a#parent@folder:b',
  'folder:b#parent@folder:c',
  'folder:b#viewer@group:g#member',
  'folder:c#editor@user:u',
  'group:g#member@group:h#member',
  'group:h#member@user:w',
  'folder:c#viewer@user:x',
];

test.each([
  ['u', CHECK_ALLOWED],
  ['w', CHECK_ALLOWED],
  ['x', CHECK_ALLOWED],
  ['nobody', CHECK_DENIED],
])('%s is answered by parents and groups alike: %i', (user, code) => {
  for (const [way, ask] of waysOf(indexOf(...SERVICE)).entries()) {
    expect([way, ask('folder:a#viewer', user)]).toMatchObject([way, { code, backstops: 0 }]);
  }
});

test('a deny takes as many usersets as there are, and no fewer', () => {
  // Viewer and editor of three folders, and two groups.
  const index = indexOf(...SERVICE, 'group:other#member@user:v');
  for (const [way, ask] of waysOf(index).entries()) {
    for (const user of ['v', 'nobody']) {
      const codes = [7, 8].map((nodesMax) => ask('folder:a#viewer', user, nodesMax).code);
      expect([way, user, ...codes]).toEqual([way, user, CHECK_GENERAL, CHECK_DENIED]);
    }
  }
});

test('what is granted beyond the usersets that may be visited is left to the general evaluation', () => {
  for (const [way, ask] of waysOf(
    indexOf('folder:a#viewer@group:g#member', 'group:g#member@user:w'),
  ).entries()) {
    const codes = [1, 2, 3].map((nodesMax) => ask('folder:a#viewer', 'w', nodesMax).code);
    expect([way, ...codes]).toEqual([way, CHECK_GENERAL, CHECK_GENERAL, CHECK_ALLOWED]);
  }
});

test('it ends at just the reads that it takes', () => {
  for (const [way, ask] of waysOf(indexOf(...SERVICE)).entries()) {
    const { code, reads } = ask('folder:a#viewer', 'nobody');
    expect([way, code, reads >= 9]).toEqual([way, CHECK_DENIED, true]);
    expect([way, ask('folder:a#viewer', 'nobody', NODES, reads)]).toMatchObject([
      way,
      { code, reads },
    ]);
    expect([way, ask('folder:a#viewer', 'nobody', NODES, reads - 1).code]).toEqual([
      way,
      CHECK_GENERAL,
    ]);
    expect([way, ask('folder:a#viewer', 'nobody', NODES, 2).code]).toEqual([way, CHECK_GENERAL]);
  }
});

test('a cycle of one relation is told, one of several is left to the general evaluation', () => {
  // One of the two leaves waits while the cycle between them is gone through.
  const index = indexOf(
    'folder:r#parent@folder:l1',
    'folder:r#parent@folder:a',
    'folder:r#parent@folder:l2',
    'folder:a#parent@folder:b',
    'folder:b#parent@folder:a',
    'folder:b#open@user:w',
    'folder:l1#open@user:x',
    'folder:l2#open@user:y',
  );
  for (const [way, ask] of waysOf(index).entries()) {
    const denied = { code: CHECK_DENIED, backstops: BACKSTOP_CYCLE };
    expect([way, ask('folder:r#open', 'u')]).toMatchObject([way, denied]);
    for (const user of ['w', 'x', 'y']) {
      expect([way, user, ask('folder:r#open', user).code]).toEqual([way, user, CHECK_ALLOWED]);
    }
    expect([way, ask('folder:r#viewer', 'u').code]).toEqual([way, CHECK_GENERAL]);
    expect([way, ask('folder:l1#viewer', 'u').code]).toEqual([way, CHECK_DENIED]);
    // Nothing else waits: it ends where the usersets do.
    expect([way, ask('folder:a#open', 'u').code]).toEqual([way, CHECK_GENERAL]);
  }
});

test('what meets twice without leading back is no cycle', () => {
  const index = indexOf(
    'folder:a#parent@folder:b',
    'folder:a#parent@folder:c',
    'folder:b#parent@folder:d',
    'folder:c#parent@folder:d',
    'folder:d#parent@folder:e',
    'folder:d#parent@folder:f',
    'folder:f#open@user:w',
  );
  for (const [way, ask] of waysOf(index).entries()) {
    for (const relation of ['open', 'viewer']) {
      const asked = ask(`folder:a#${relation}`, 'u');
      expect([way, asked]).toMatchObject([way, { code: CHECK_DENIED, backstops: 0 }]);
    }
  }
});

test.each([
  ['an exclusion', 'folder:a#reader', [], undefined],
  ['a tuple that may have expired', 'folder:a#viewer', ['folder:a#viewer@user:u'], 1n],
  ['a group that may have expired', 'folder:a#viewer', ['folder:a#viewer@group:g#member'], 1n],
  ['a parent that may have expired', 'folder:a#viewer', ['folder:a#parent@folder:b'], 1n],
  ['everybody until a time', 'folder:a#viewer', ['folder:a#viewer@*'], 1n],
] as const)('%s is left to the general evaluation', (_what, object, tuples, expiresAtUs) => {
  for (const count of [0, 9]) {
    const index = indexOf(
      'folder:a#viewer@user:other',
      'folder:b#viewer@user:u',
      'group:g#member@user:u',
    );
    for (let i = 0; i < count; i++) {
      index.applyChange('insert', keyOf(`folder:a#viewer@user:more${i}`));
      index.applyChange('insert', keyOf(`folder:a#viewer@group:more${i}#member`));
      index.applyChange('insert', keyOf(`folder:a#parent@folder:more${i}`));
    }
    for (const tuple of tuples) {
      index.applyChange('insert', { ...keyOf(tuple), expiresAtUs: expiresAtUs as bigint });
    }
    for (const [way, ask] of waysOf(index).entries()) {
      expect([way, count, ask(object, 'u').code]).toEqual([way, count, CHECK_GENERAL]);
    }
  }
});

test('everybody is everybody, also who is unknown, alone and in a list', () => {
  for (const count of [0, 9]) {
    const index = indexOf('folder:a#parent@folder:b', 'folder:b#viewer@*');
    for (let i = 0; i < count; i++)
      index.applyChange('insert', keyOf(`folder:b#viewer@user:m${i}`));
    for (const [way, ask] of waysOf(index).entries()) {
      for (const user of ['m0', 'nobody']) {
        expect([way, user, ask('folder:a#viewer', user).code]).toEqual([way, user, CHECK_ALLOWED]);
        expect([way, user, ask('folder:a#editor', user).code]).toEqual([way, user, CHECK_DENIED]);
      }
    }
  }
});

test('what nothing mentions is denied at once', () => {
  const index = indexOf(...SERVICE);
  for (const ask of waysOf(index)) {
    for (const object of [
      'folder:none#viewer',
      'folder:a#none',
      'none:a#viewer',
      'group:a#member',
    ]) {
      expect([object, ask(object, 'u')]).toEqual([
        object,
        { code: CHECK_DENIED, reads: 0, backstops: 0 },
      ]);
    }
  }
});

test.each([60, 64, 65, 130])('%i groups and parents are all looked at, or left', (count) => {
  const index = new TupleIndex();
  for (let i = 0; i < count; i++) {
    index.applyChange('insert', keyOf(`folder:a#open@group:g${i}#member`));
    index.applyChange('insert', keyOf(`group:g${i}#member@user:u${i}`));
    index.applyChange('insert', keyOf(`folder:b#parent@folder:p${i}`));
    index.applyChange('insert', keyOf(`folder:p${i}#open@user:u${i}`));
  }
  for (const [way, ask] of waysOf(index).entries()) {
    for (const object of ['folder:a#open', 'folder:b#open']) {
      const codes = Array.from({ length: count }, (_, i) => ask(object, `u${i}`).code);
      const wanted = count > 64 ? CHECK_GENERAL : CHECK_ALLOWED;
      expect([way, object, new Set(codes)]).toEqual([way, object, new Set([wanted])]);
      const nobody = count > 64 ? CHECK_GENERAL : CHECK_DENIED;
      expect([way, object, ask(object, 'nobody').code]).toEqual([way, object, nobody]);
    }
  }
});

test('an object of many relations is asked one by one, with the same answers and bounds', () => {
  const index = indexOf(...SERVICE, 'folder:z#viewer@group:g#member');
  for (const id of ['a', 'b', 'c']) {
    for (let i = 0; i < 14; i++) {
      index.applyChange('insert', keyOf(`folder:${id}#other${i}@user:z`));
      index.applyChange('insert', keyOf(`folder:${id}#other${i}@folder:z#viewer`));
    }
  }
  for (const [way, ask] of waysOf(index).entries()) {
    const codes = ['u', 'w', 'x'].map((user) => ask('folder:a#viewer', user).code);
    expect([way, ...codes]).toEqual([way, CHECK_ALLOWED, CHECK_ALLOWED, CHECK_ALLOWED]);
    for (const user of ['z', 'nobody']) {
      const ends = [7, 8].map((nodesMax) => ask('folder:a#viewer', user, nodesMax).code);
      expect([way, user, ...ends]).toEqual([way, user, CHECK_GENERAL, CHECK_DENIED]);
    }
  }
  index.applyChange('insert', { ...keyOf('folder:c#parent@folder:d'), expiresAtUs: 1n });
  for (const [way, ask] of waysOf(index).entries()) {
    expect([way, ask('folder:a#viewer', 'z').code]).toEqual([way, CHECK_GENERAL]);
  }
});

test('a list of users is looked through, and what stands behind it as well', () => {
  const index = indexOf(...SERVICE);
  for (let i = 0; i < 9; i++) {
    index.applyChange('insert', keyOf(`folder:b#viewer@user:b${i}`));
    index.applyChange('insert', keyOf(`folder:c#viewer@user:c${i}`));
  }
  index.applyChange('insert', { ...keyOf('folder:c#viewer@user:late'), expiresAtUs: 1n });
  for (const [way, ask] of waysOf(index).entries()) {
    for (const object of ['folder:a#viewer', 'folder:b#viewer']) {
      const codes = ['b0', 'b8', 'c0', 'c8', 'u', 'w', 'x'].map((user) => ask(object, user).code);
      expect([way, object, new Set(codes)]).toEqual([way, object, new Set([CHECK_ALLOWED])]);
      expect([way, object, ask(object, 'nobody').code]).toEqual([way, object, CHECK_DENIED]);
      expect([way, object, ask(object, 'late').code]).toEqual([way, object, CHECK_GENERAL]);
    }
    expect([way, ask('folder:c#viewer', 'b0').code]).toEqual([way, CHECK_DENIED]);
  }
});

test('who is in too many groups for a closure is looked for in each', () => {
  const index = indexOf('folder:b#parent@folder:a', 'group:away#member@group:apart#member');
  for (let i = 0; i < 70; i++) {
    index.applyChange('insert', keyOf(`group:g${i}#member@user:u`));
    index.applyChange('insert', keyOf(`folder:all#viewer@group:g${i}#member`));
  }
  for (const group of ['away', 'g69']) {
    index.applyChange('insert', keyOf(`folder:a#open@group:${group}#member`));
    index.applyChange('insert', keyOf(`folder:a#viewer@group:away#member`));
  }
  for (const [way, ask] of waysOf(index).entries()) {
    for (const id of ['a', 'b']) {
      const codes = ['open', 'viewer'].map((relation) => ask(`folder:${id}#${relation}`, 'u').code);
      expect([way, id, ...codes]).toEqual([way, id, CHECK_ALLOWED, CHECK_DENIED]);
    }
  }
});

test('each of many objects that meet in one another is visited once', () => {
  const index = new TupleIndex();
  for (let i = 0; i < 60; i++) {
    index.applyChange('insert', keyOf(`folder:a#parent@folder:p${i}`));
    index.applyChange('insert', keyOf(`folder:p${i}#parent@folder:q${i % 20}`));
    index.applyChange('insert', keyOf(`folder:p${i}#parent@folder:q${(i + 7) % 20}`));
    index.applyChange('insert', keyOf(`folder:q${i % 20}#open@user:q${i % 20}`));
  }
  // The last one is visited again: while nothing else waits nothing is looked up.
  const usersets = 1 + 60 + 20 + 1;
  for (const [way, ask] of waysOf(index).entries()) {
    for (let i = 0; i < 20; i++) {
      expect([way, i, ask('folder:a#open', `q${i}`).code]).toEqual([way, i, CHECK_ALLOWED]);
    }
    // A list of ancestors stands for all that is above it, also where two of them meet.
    if (way === 0 || way === 3) continue;
    expect([way, ask('folder:a#open', 'nobody', usersets)]).toMatchObject([
      way,
      { code: CHECK_DENIED, backstops: 0 },
    ]);
    expect([way, ask('folder:a#open', 'nobody', usersets - 1).code]).toEqual([way, CHECK_GENERAL]);
  }
});

test('what leads to an exclusion is left to the general evaluation, what leads to an object is not', () => {
  const index = indexOf(
    'folder:a#viewer@folder:b#reader',
    'folder:b#viewer@user:u',
    'folder:c#viewer@folder:b#',
  );
  for (const [way, ask] of waysOf(index).entries()) {
    const codes = ['a', 'c'].map((id) => ask(`folder:${id}#viewer`, 'u').code);
    expect([way, ...codes]).toEqual([way, CHECK_GENERAL, CHECK_DENIED]);
  }
});

/** What waits on the stack while a tower is climbed: 1,024 at the top of one of them, some more or less in the others. */
const TOWERS = [
  [4, 60, 10],
  ...Array.from({ length: 12 }, (_, i) => [17, 60, 15 + i] as const),
  ...Array.from({ length: 6 }, (_, i) => [255, 5, 1 + i] as const),
] as const;

/**
 * Tuples of a tower: each level names `fan` objects of the next one, of which one leads on, the last level `top`, of
 * which one is for anne. The others wait meanwhile; they are the same on each level, so that visits stay few.
 */
function tower(
  link: (from: string, to: string) => string,
  [levels, fan, top]: readonly [levels: number, fan: number, top: number],
  isLast: boolean,
): readonly [tuples: string[], end: string] {
  const tuples: string[] = [];
  let from = 'base';
  for (let level = 0; level <= levels; level++) {
    const width = level === levels ? top : fan;
    const leading = isLast ? width - 1 : 0;
    for (let i = 0; i < width; i++) {
      tuples.push(link(from, i === leading ? `level${level}` : `other${i}`));
    }
    from = `level${level}`;
  }
  return [tuples, from];
}

/** Anne is in a group, and in too many for the memberships of a user, so that each group that is met is looked into. */
const IN_MANY = [
  'group:own#member@user:anne',
  ...Array.from({ length: 70 }, (_, i) => [
    `group:many${i}#member@user:anne`,
    `folder:all#open@group:many${i}#member`,
  ]).flat(),
];

/** Objects one above the other, each with `groups`; one group of the last holds anne. */
function column(levels: number, groups: number, top: number, isLast: boolean): string[] {
  const tuples: string[] = [];
  for (let level = 0; level <= levels; level++) {
    const width = level === levels ? top : groups;
    for (let i = 0; i < width; i++) {
      const group = level === levels && i === (isLast ? width - 1 : 0) ? 'own' : `other${i}`;
      tuples.push(`folder:l${level}#open@group:${group}#member`);
    }
    if (level < levels) tuples.push(`folder:l${level}#parent@folder:l${level + 1}`);
  }
  return tuples;
}

function expectNothingLost(object: string, stacks: readonly (readonly string[])[]): void {
  const seen = new Set<number>();
  for (const tuples of stacks) {
    for (const ask of waysOf(indexOf(...tuples))) {
      const { code } = ask(object, 'anne', 511, 100_000);
      expect(code).not.toBe(CHECK_DENIED);
      seen.add(code);
    }
  }
  expect(seen).toEqual(new Set([CHECK_ALLOWED, CHECK_GENERAL]));
}

test('nothing is lost where more usersets wait than the stack holds', () => {
  const link = (from: string, to: string): string => `group:${from}#member@group:${to}#member`;
  const stacks = [true, false].flatMap((isLast) =>
    TOWERS.map((shape) => {
      const [tuples, end] = tower(link, shape, isLast);
      return [...tuples, `group:${end}#member@user:anne`];
    }),
  );
  expectNothingLost('group:base#member', stacks);
});

test('nothing is lost where more parents wait than the stack holds', () => {
  const link = (from: string, to: string): string => `folder:${from}#parent@folder:${to}`;
  const stacks = [true, false].flatMap((isLast) =>
    TOWERS.map((shape) => {
      const [tuples, end] = tower(link, shape, isLast);
      return [...tuples, `folder:${end}#open@user:anne`];
    }),
  );
  expectNothingLost('folder:base#open', stacks);
});

test('nothing is lost where groups of many lines wait', () => {
  const stacks = [true, false].flatMap((isLast) =>
    Array.from({ length: 12 }, (_, i) => column(145, 7, 1 + i, isLast)).concat([
      column(3, 7, 2, isLast),
      column(146, 7, 9, isLast),
    ]),
  );
  for (const groups of [IN_MANY, ['group:own#member@user:anne']]) {
    expectNothingLost(
      'folder:l0#open',
      stacks.map((tuples) => [...tuples, ...groups]),
    );
  }
});

test('nothing is lost where groups of a line wait behind parents that fill the stack', () => {
  const link = (from: string, to: string): string => `folder:${from}#parent@folder:${to}`;
  const groups = (end: string, count: number, isLast: boolean): string[] =>
    Array.from({ length: count }, (_, i) => {
      const group = i === (isLast ? count - 1 : 0) ? 'own' : `other${i}`;
      return `folder:${end}#open@group:${group}#member`;
    });
  const stacks = [true, false].flatMap((isLast) =>
    Array.from({ length: 10 }, (_, i) => {
      const count = i + 1;
      const [tuples, end] = tower(link, [17, 60, 1], isLast);
      return [...tuples, ...groups(end, count, isLast), ...IN_MANY];
    }),
  );
  expectNothingLost('folder:base#open', stacks);
});

test('an object that is visited in each of many states is another one in each', () => {
  const named = (count: number): string[] => Array.from({ length: count }, (_, i) => `r${i}`);
  const related = (names: readonly string[]): Record<string, object> =>
    Object.fromEntries(
      names.map((name) => [name, { union: [{ this: {} }, { computed: 'none' }] }]),
    );
  const names = named(200);
  const others = named(250);
  const model = JSON.stringify({
    schema_version: 1,
    namespaces: {
      folder: { relations: { start: {}, none: {}, ...related(names) } },
      other: { relations: { none: {}, ...related(others) } },
    },
  });
  const index = indexOf(
    ...names.flatMap((name) => [
      `folder:${name}#start@folder:before#r0`,
      `folder:${name}#start@folder:x#r0`,
      `folder:${name}#start@folder:x#${name}`,
      `folder:${name}#start@folder:xx#r0`,
      `folder:x#${name}@user:${name}`,
    ]),
    ...others.map((name) => `other:x#${name}@user:v`),
  );
  for (const [way, ask] of waysOf(index, model).entries()) {
    // States are numbered as they are met: with those of others between them some of the later ones have the place of the
    // first in the table of visits.
    ask('folder:x#r0', 'nobody');
    for (const name of others) ask(`other:x#${name}`, 'nobody');
    const lost = names.filter((name) => {
      const codes = ['r0', name].map((user) => ask(`folder:${name}#start`, user).code);
      return codes.some((code) => code !== CHECK_ALLOWED);
    });
    expect([way, lost]).toEqual([way, []]);
  }
});
