import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
} from '../../src/engine/bound/evaluator-api.ts';
import { AncestorCache } from '../../src/engine/hot/ancestor-cache.ts';
import { ABSENT_CACHES, checkUserHot, type HotCaches } from '../../src/engine/hot/hot-check.ts';
import { HOT_GENERAL, HotModel } from '../../src/engine/hot/hot-model.ts';
import { HotScratch } from '../../src/engine/hot/hot-scratch.ts';
import { MembershipCache } from '../../src/engine/hot/membership-cache.ts';
import {
  ROW_COUNTS,
  ROW_ENTRIES,
  ROW_HEIGHT,
  ROW_OPAQUE,
  ObjectCache,
} from '../../src/engine/hot/object-cache.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { keyOf } from '../support/tuple-text.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const BYTES = 1 << 18;
const NODES_MAX = 250;

const upwards = (computed: string) => ({ tuple_to_userset: { tupleset: 'parent', computed } });
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      folder: {
        relations: {
          parent: {},
          open: { union: [{ this: {} }, upwards('open')] },
          team: { union: [{ this: {} }, upwards('member')] },
          wide: { union: [{ this: {} }, { computed: 'open' }, upwards('wide')] },
          owner: { union: [{ this: {} }, { computed: 'blocked' }] },
          blocked: {},
          reader: {
            exclusion: { include: { computed: 'open' }, exclude: { computed: 'blocked' } },
          },
          seen: { union: [{ this: {} }, upwards('reader')] },
        },
      },
    },
  }),
);

type Answer = { readonly code: number; readonly reads: number; readonly backstops: number };
type Ask = (object: string, user: string, nodesMax?: number) => Answer;

/** Which caches are absent; the search itself looks at more the fewer there are. */
const ALL = ['closures', 'objects', 'chains'] as const;
const WAYS = [[], ['chains'], ['objects', 'chains'], ['closures'], ALL] as const;

function asking(index: TupleIndex, absent: readonly (typeof ALL)[number][]): Ask {
  const model = new HotModel(new BoundModel(MODEL, index));
  const isOff = (cache: (typeof ALL)[number]): boolean => absent.includes(cache);
  const memberships = isOff('closures')
    ? ABSENT_CACHES.memberships
    : new MembershipCache(index, model, BYTES);
  const objects = new ObjectCache(index, model, memberships, BYTES);
  const caches: HotCaches = {
    memberships,
    objects: isOff('objects') ? ABSENT_CACHES.objects : objects,
    ancestors: isOff('chains') ? ABSENT_CACHES.ancestors : new AncestorCache(model, objects, BYTES),
  };
  const scratch = new HotScratch();
  return (object, user, nodesMax = NODES_MAX) => {
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
      100_000,
    );
    return { code, reads: scratch.reads, backstops: scratch.backstops };
  };
}

function indexOf(tuples: Iterable<string>): TupleIndex {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', keyOf(tuple));
  return index;
}

test(`whatever is visited, each is visited once, and those on the way are told (SEED=${seed})`, () => {
  const count = 230;
  // Ids far apart, so that places in the table of visits collide.
  const blocked = Array.from({ length: 3001 }, (_, i) =>
    keyOf(`folder:f${i}#blocked@user:somebody`),
  );
  const places = fc.uniqueArray(fc.nat(3000), { minLength: count, maxLength: count });
  const links = fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), {
    maxLength: 200,
    size: 'max',
  });
  const property = fc.property(places, links, fc.boolean(), (ids, more, hasCircle) => {
    const index = new TupleIndex();
    for (const tuple of blocked) index.applyChange('insert', tuple);
    const name = (i: number): string => `folder:f${ids[i] as number}`;
    const link = (from: number, to: number): void =>
      void index.applyChange('insert', keyOf(`${name(from)}#parent@${name(to)}`));
    for (let i = 1; i < count; i++) link(Math.floor((i - 1) / 6), i);
    for (const [a, b] of more) if (a !== b) link(Math.min(a, b), Math.max(a, b));
    if (hasCircle) link(count - 1, 3);
    for (let i = 0; i < count; i++) {
      index.applyChange('insert', keyOf(`${name(i)}#open@user:u${i}`));
    }
    for (const absent of WAYS) {
      const ask = asking(index, absent);
      const top = `${name(0)}#open`;
      for (let i = 0; i < count; i += 7) {
        if (ask(top, `u${i}`).code === CHECK_DENIED) expect.fail(`u${i} without ${absent.join()}`);
      }
      const { code, backstops } = ask(top, 'somebody');
      expect([absent, code]).not.toEqual([absent, CHECK_ALLOWED]);
      if (hasCircle || !absent.some((cache) => cache === 'chains')) continue;
      // Only what comes last may be met again: while nothing else waits, nothing is looked up.
      expect([absent, code, backstops]).toEqual([absent, CHECK_DENIED, 0]);
      expect([absent, ask(top, 'somebody', count - 1).code]).toEqual([absent, CHECK_GENERAL]);
      for (let i = 0; i < count; i += 3) {
        if (ask(top, `u${i}`).code !== CHECK_ALLOWED) expect.fail(`u${i} without ${absent.join()}`);
      }
    }
  });
  fc.assert(property, { numRuns: Math.ceil(5 * FUZZ_RUNS), seed });
});

describe('more waits than there is room for', () => {
  /** Levels of which each names `width` others, and the last one that it names the next level. */
  function levels(width: number, depth: number, edge: (from: string, to: string) => string) {
    const tuples: string[] = [];
    for (let level = 0; level < depth; level++) {
      for (let i = 0; i < width; i++) {
        tuples.push(edge(`f${level}`, i + 1 < width ? `f${level}-${i}` : `f${level + 1}`));
      }
    }
    // Before the levels there may be more, so that the room ends anywhere in the last level.
    for (let more = 0; more < width; more++) {
      for (let i = 0; i < more; i++) tuples.push(edge(`s${more}`, `s-${i}`));
      tuples.push(edge(`s${more}`, 'f0'));
    }
    for (let i = 0; i + 1 < width; i++) {
      tuples.push(`folder:f${depth - 1}-${i}#open@user:u${i}`, `folder:s-${i}#open@user:v`);
    }
    tuples.push(`folder:f${depth}#open@user:end`);
    // Somebody in too many groups for the memberships of a user, who is in the last group of the last object.
    for (let i = 0; i < 8; i++) tuples.push(`folder:f${depth}#open@group:x${i}#member`);
    for (let i = 0; i < 70; i++) {
      tuples.push(`folder:other#open@group:o${i}#member`, `group:o${i}#member@user:many`);
    }
    tuples.push('group:x7#member@user:many');
    return tuples;
  }
  const byParent = (from: string, to: string): string => `folder:${from}#parent@folder:${to}`;
  const byGrant = (from: string, to: string): string => `folder:${from}#open@folder:${to}#open`;

  test.each([
    ['parents', 60, 17, byParent, ALL],
    ['grants', 60, 17, byGrant, ALL],
    ['few parents a line', 5, 204, byParent, ['chains']],
    ['few grants a line', 5, 204, byGrant, ['chains']],
  ] as const)('is left to the general evaluation: %s', (_what, width, depth, edge, absent) => {
    const index = indexOf(levels(width, depth, edge));
    const ask = asking(index, absent);
    const codes = new Set<number>();
    for (let more = 0; more < width; more++) {
      for (const user of ['end', 'many', 'u0', `u${width - 2}`, `u${width - 3}`]) {
        const { code } = ask(`folder:s${more}#open`, user);
        codes.add(code);
        expect([more, user, code]).not.toEqual([more, user, CHECK_DENIED]);
      }
      expect(ask(`folder:s${more}#open`, 'v').code).not.toBe(CHECK_DENIED);
      expect(ask(`folder:s${more}#open`, 'nobody').code).not.toBe(CHECK_ALLOWED);
    }
    expect(codes).toContain(CHECK_GENERAL);
    expect(ask('folder:f1#open', 'end').code).toBe(CHECK_ALLOWED);
  });
});

test('a relation of own tuples alone is answered, and costs nothing where it has none', () => {
  const index = indexOf([
    'group:g#member@user:u',
    'group:g#member@group:h#member',
    'group:h#member@user:v',
    'folder:a#open@user:u',
  ]);
  for (const absent of WAYS) {
    const ask = asking(index, absent);
    const codes = ['u', 'v', 'nobody'].map((user) => ask('group:g#member', user).code);
    expect([absent, ...codes]).toEqual([absent, CHECK_ALLOWED, CHECK_ALLOWED, CHECK_DENIED]);
    expect(ask('folder:a#blocked', 'u')).toEqual({ code: CHECK_DENIED, reads: 0, backstops: 0 });
    expect(ask('group:g#open', 'u')).toEqual({ code: CHECK_DENIED, reads: 0, backstops: 0 });
  }
});

test('a relation that is computed from others alone counts them, too', () => {
  const index = indexOf(['folder:a#owner@user:u', 'folder:a#blocked@user:v']);
  for (const absent of WAYS) {
    const ask = asking(index, absent);
    const codes = ['u', 'v', 'w'].map((user) => ask('folder:a#owner', user).code);
    expect([absent, ...codes]).toEqual([absent, CHECK_ALLOWED, CHECK_ALLOWED, CHECK_DENIED]);
  }
});

/** Somebody in more groups than the memberships of a user has room for; each of them is named somewhere. */
const IN_MANY = Array.from({ length: 70 }, (_, i) => [
  `folder:other#open@group:o${i}#member`,
  `group:o${i}#member@user:many`,
]).flat();

test('who has no closure is looked for in each group, and in nothing else', () => {
  const index = indexOf([
    ...IN_MANY,
    'folder:a#open@group:x#member',
    'group:x#member@user:somebody',
    'folder:b#open@group:x#member',
    'folder:b#parent@folder:c',
  ]);
  for (const absent of [[], ['chains']] as const) {
    const ask = asking(index, absent);
    // The object, the height of its group and the visit of that, and the parent.
    for (const [object, usersets] of [
      ['folder:a#open', 3],
      ['folder:b#open', 4],
    ] as const) {
      expect([absent, object, ask(object, 'many', usersets).code]).toEqual([
        absent,
        object,
        CHECK_DENIED,
      ]);
      expect([absent, object, ask(object, 'many', usersets - 1).code]).toEqual([
        absent,
        object,
        CHECK_GENERAL,
      ]);
    }
  }
});

test('a parent is no group, though its number is that of a group of the user', () => {
  const index = new TupleIndex();
  const put = (text: string): void => void index.applyChange('insert', keyOf(text));
  const parents = Array.from({ length: 150 }, (_, i) => `p${i}`);
  for (const id of parents) put(`folder:${id}#open@user:somebody`);
  for (let i = 0; i < 60; i++) {
    put(`group:g${i}#member@user:u`);
    put(`folder:other#open@group:g${i}#member`);
  }
  put('group:z#member@user:somebody');
  for (const id of parents) {
    put(`folder:below-${id}#open@group:z#member`);
    put(`folder:below-${id}#parent@folder:${id}`);
  }
  const idOf = (namespace: string, id: string): number =>
    index.entityId(index.nameId(namespace), id);
  const groups = new Set(
    Array.from({ length: 60 }, (_, i) =>
      index.nodeId(idOf('group', `g${i}`), index.nameId('member')),
    ),
  );
  expect(parents.filter((id) => groups.has(idOf('folder', id)))).not.toEqual([]);
  for (const absent of WAYS) {
    const ask = asking(index, absent);
    const allowed = parents.filter(
      (id) => ask(`folder:below-${id}#open`, 'u').code !== CHECK_DENIED,
    );
    expect([absent, allowed]).toEqual([absent, []]);
  }
});

test('nothing is left of the check before', () => {
  const index = indexOf([
    ...['l', 'm', 'n', 'o', 'p'].flatMap((id) => [
      `folder:many#open@group:${id}#member`,
      `folder:many#parent@folder:${id}`,
      `folder:${id}#open@user:w`,
      `group:${id}#member@user:w`,
    ]),
    ...['a', 'b'].flatMap((id) => [
      `folder:few#open@group:${id}#member`,
      `folder:few#parent@folder:${id}`,
      `folder:${id}#open@user:v`,
      `group:${id}#member@user:v`,
    ]),
  ]);
  for (const absent of WAYS) {
    const ask = asking(index, absent);
    for (const [object, user, wanted] of [
      ['many', 'nobody', CHECK_DENIED],
      ['few', 'w', CHECK_DENIED],
      ['many', 'w', CHECK_ALLOWED],
      ['few', 'w', CHECK_DENIED],
      ['few', 'v', CHECK_ALLOWED],
    ] as const) {
      const { code } = ask(`folder:${object}#open`, user);
      expect([absent, object, user, code]).toEqual([absent, object, user, wanted]);
    }
  }
});

test.each([0, 13])('what leads nowhere is not visited, beside %i other relations', (others) => {
  const tuples = ['folder:a#parent@user:x', 'folder:a#open@folder:b#', 'folder:b#open@user:v'];
  tuples.push('folder:wild#open@*');
  for (let i = 0; i < others; i++) tuples.push(`folder:a#other${i}@user:z`);
  for (let i = 0; i < 9; i++) tuples.push(`folder:a#open@user:m${i}`);
  const index = indexOf(tuples);
  for (const absent of WAYS) {
    // The object among the holders counts only where its height is known without a visit.
    const usersets = absent.some((cache) => cache === 'closures') ? 1 : 2;
    const { code, backstops } = asking(index, absent)('folder:a#open', 'v', usersets);
    expect([absent, code, backstops]).toEqual([absent, CHECK_DENIED, 0]);
  }
});

test('a circle of groups among others is told where they are visited', () => {
  const index = indexOf([
    ...['l', 'b', 'm'].map((id) => `folder:a#open@group:${id}#member`),
    'group:b#member@group:c#member',
    'group:c#member@group:b#member',
    ...['l', 'b', 'm'].map((id) => `group:${id}#member@user:${id}`),
  ]);
  for (const absent of [['closures'], ALL] as const) {
    const ask = asking(index, absent);
    const denied = { code: CHECK_DENIED, backstops: BACKSTOP_CYCLE };
    expect([absent, ask('folder:a#open', 'nobody')]).toMatchObject([absent, denied]);
    const codes = ['l', 'b', 'm'].map((user) => ask('folder:a#open', user).code);
    expect([absent, ...codes]).toEqual([absent, CHECK_ALLOWED, CHECK_ALLOWED, CHECK_ALLOWED]);
  }
});

test('groups of what is visited last count, too', () => {
  const index = indexOf([
    'folder:a#open@group:g#member',
    'group:g#member@group:h#member',
    'group:h#member@user:w',
    'group:other#member@user:v',
  ]);
  for (const absent of WAYS) {
    for (const user of ['v', 'nobody']) {
      const codes = [1, 2, 3].map((max) => asking(index, absent)('folder:a#open', user, max).code);
      expect([absent, user, ...codes]).toEqual([
        absent,
        user,
        CHECK_GENERAL,
        CHECK_GENERAL,
        CHECK_DENIED,
      ]);
    }
  }
});

test('a rule may lead to objects that no model describes', () => {
  const index = indexOf([
    'folder:a#parent@crew:c',
    'folder:a#parent@folder:b',
    'crew:c#member@user:u',
    'crew:c#member@group:g#member',
    'crew:c#open@user:not',
    'group:g#member@user:v',
    'folder:b#member@user:w',
  ]);
  for (const absent of WAYS) {
    const ask = asking(index, absent);
    const codes = ['u', 'v', 'w', 'not'].map((user) => ask('folder:a#team', user).code);
    const granted = [CHECK_ALLOWED, CHECK_ALLOWED, CHECK_ALLOWED];
    expect([absent, ...codes]).toEqual([absent, ...granted, CHECK_DENIED]);
  }
});

test.each([1, 20])('what leads to an exclusion is left to the general evaluation: %i', (count) => {
  const tuples = ['folder:b#open@user:u'];
  for (let i = 0; i < count; i++) {
    tuples.push(`folder:a#parent@folder:b${i}`, `folder:c#open@folder:b${i}#reader`);
    tuples.push(`folder:b${i}#open@user:u`);
  }
  for (const absent of WAYS) {
    const ask = asking(indexOf(tuples), absent);
    for (const object of ['folder:a#seen', 'folder:c#open', 'folder:b0#reader']) {
      for (const user of ['u', 'nobody']) {
        expect([absent, object, user, ask(object, user).code]).toEqual([
          absent,
          object,
          user,
          CHECK_GENERAL,
        ]);
      }
    }
  }
});

test(`lines leave those beside them whole, also where an object does not fit (SEED=${seed})`, () => {
  const count = 240; // several to each place
  // Users, parents, and users of a second relation, which are a list beyond six: eleven words fit.
  const kinds = [
    [0, 0, 1],
    [1, 0, 2],
    [1, 5, 0],
    [1, 6, 0],
    [3, 4, 0],
    [3, 6, 2],
    [1, 5, 7],
    [0, 6, 7],
  ];
  const shapes = fc.array(fc.tuple(fc.constantFrom(...kinds), fc.boolean()), {
    minLength: count,
    maxLength: count,
    size: 'max',
  });
  const asked = fc.array(fc.nat(count - 1), { minLength: 2000, maxLength: 2000, size: 'max' });
  const property = fc.property(shapes, asked, (objects, order) => {
    const index = new TupleIndex();
    const put = (text: string): void => void index.applyChange('insert', keyOf(text));
    for (let i = 0; i < count; i++) put(`folder:f${i}#blocked@user:somebody`);
    objects.forEach(([[users = 0, parents = 0, more = 0], isLate], i) => {
      const tuples: string[] = [];
      for (let k = 0; k < users; k++) tuples.push(`folder:f${i}#open@user:u${i}-${k}`);
      for (let k = 1; k <= parents; k++) {
        tuples.push(`folder:f${i}#parent@folder:f${(i + k * 7) % count}`);
      }
      for (let k = 0; k < more; k++) tuples.push(`folder:f${i}#wide@user:u${k}`);
      for (const tuple of isLate ? tuples.toReversed() : tuples) put(tuple);
    });
    const model = new HotModel(new BoundModel(MODEL, index));
    const state = model.states[model.single(index.nameId('folder'), index.nameId('wide'))];
    if (state === undefined) throw new Error('no state');
    const cacheOf = (): ObjectCache => new ObjectCache(index, model, ABSENT_CACHES.memberships, 0);
    const wordsOf = (cache: ObjectCache, entity: number): string => {
      const at = cache.rowOf(entity, state);
      const counts = cache.lines[at + ROW_COUNTS] as number;
      if (counts === ROW_OPAQUE) return 'opaque';
      const taken =
        (counts & 255) + ((counts >>> 7) & 510) + ((counts >>> 16) & 255) + ((counts >>> 24) << 1);
      const entries = cache.lines.subarray(at + ROW_ENTRIES, at + ROW_ENTRIES + taken);
      return [counts, cache.lines[at + ROW_HEIGHT] as number, ...entries].join();
    };
    const entities = objects.map((_, i) => index.entityId(index.nameId('folder'), `f${i}`));
    const alone = entities.map((entity) => wordsOf(cacheOf(), entity));
    const beside = cacheOf();
    const { lines } = beside;
    const wrong = order.filter((i) => wordsOf(beside, entities[i] as number) !== alone[i]);
    expect(wrong).toEqual([]);
    expect(beside.lines).toBe(lines); // it did not grow
  });
  // Thousands of questions: a smaller counterexample would take minutes to find.
  fc.assert(property, { numRuns: Math.ceil(20 * FUZZ_RUNS), seed, endOnFailure: true });
});

describe('names and relations without end', () => {
  const LAST = 65_535;
  const modelOf = (namespace: string, relation: string, computed = 'x'): string =>
    JSON.stringify({
      schema_version: 1,
      namespaces: {
        [namespace]: {
          relations: {
            [relation]: { union: [{ this: {} }, { computed }, upwards(relation)] },
          },
        },
      },
    });

  test.each([
    ['relation', LAST, false],
    ['relation', LAST + 1, true],
    ['computed', LAST, false],
    ['computed', LAST + 1, true],
    ['namespace', LAST, false],
    ['namespace', LAST + 1, true],
  ])(
    'are left to the general evaluation beyond 65,535: a %s with the id %i',
    (what, id, isLeft) => {
      const index = new TupleIndex();
      for (const name of ['parent', 'early', 'other']) index.pinName(name);
      for (let last = index.pinName('x'); last + 1 < id; last = index.pinName(`n${last}`));
      const names = {
        relation: ['early', 'late', 'x'],
        computed: ['early', 'other', 'late'],
        namespace: ['late', 'early', 'x'],
      } as const;
      const [namespace, relation, computed] = names[what as keyof typeof names];
      const rules = parseModel(modelOf(namespace, relation, computed));
      const model = new HotModel(new BoundModel(rules, index));
      const ids = [index.nameId(namespace), index.nameId(relation)] as const;
      expect(index.nameId('late')).toBe(id);
      expect(model.single(...ids) === HOT_GENERAL).toBe(isLeft);
      if (what !== 'namespace') return;
      // As above an object of another namespace, too.
      const plain = new HotModel(new BoundModel(parseModel(modelOf('other', 'early')), index));
      expect(plain.single(index.nameId('other'), index.nameId('early'))).toBe(1);
      expect(plain.ofTarget(1, id) === HOT_GENERAL).toBe(isLeft);
    },
  );

  test('are left to the general evaluation beyond 4,096 states', () => {
    const relations = Object.fromEntries(
      Array.from({ length: 255 }, (_, i) => [
        `r${i}`,
        { union: [{ this: {} }, { computed: 'x' }] },
      ]),
    );
    const spaces = Array.from({ length: 17 }, (_, i) => `space${i}`);
    const namespaces = Object.fromEntries(spaces.map((name) => [name, { relations }]));
    const index = new TupleIndex();
    const rules = parseModel(JSON.stringify({ schema_version: 1, namespaces }));
    const model = new HotModel(new BoundModel(rules, index));
    const answers = spaces.flatMap((space) =>
      Object.keys(relations).map((name) => model.single(index.nameId(space), index.nameId(name))),
    );
    expect(answers.slice(0, 4096)).toEqual(Array.from({ length: 4096 }, (_, i) => i + 1));
    expect(new Set(answers.slice(4096))).toEqual(new Set([HOT_GENERAL]));
    // Those that there are stay.
    expect(model.single(index.nameId('space0'), index.nameId('r0'))).toBe(1);
  });
});
