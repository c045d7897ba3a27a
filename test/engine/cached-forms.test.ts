import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { CHECK_ALLOWED, CHECK_DENIED } from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import {
  ANCESTORS_COUNTS,
  ANCESTORS_ENTRIES,
  ANCESTORS_READS,
  ANCESTORS_WEIGHT,
  AncestorCache,
} from '../../src/engine/hot/ancestor-cache.ts';
import { HotModel, type HotState } from '../../src/engine/hot/hot-model.ts';
import {
  MEMBERSHIPS_NONE,
  MembershipCache,
  isMember,
  SUMMARY_OPEN,
} from '../../src/engine/hot/membership-cache.ts';
import {
  ROW_COUNTS,
  ROW_ENTRIES,
  ROW_HEIGHT,
  ROW_OPAQUE,
  ObjectCache,
} from '../../src/engine/hot/object-cache.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

const upwards = (computed: string) => ({ tuple_to_userset: { tupleset: 'parent', computed } });
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      group: { relations: { member: {} } },
      folder: {
        relations: {
          parent: {},
          editor: { union: [{ this: {} }, upwards('editor')] },
          viewer: { union: [{ this: {} }, { computed: 'editor' }, upwards('viewer')] },
        },
      },
      doc: {
        relations: { parent: {}, viewer: { union: [{ this: {} }, upwards('viewer')] } },
      },
    },
  }),
);

function indexOf(...tuples: readonly string[]): TupleIndex {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', keyOf(tuple));
  return index;
}

type Caches = {
  readonly model: HotModel;
  readonly memberships: MembershipCache;
  readonly objects: ObjectCache;
  readonly chains: AncestorCache;
};

function cachesOf(index: TupleIndex, bytesMax = 1 << 16): Caches {
  const model = new HotModel(new BoundModel(MODEL, index));
  const memberships = new MembershipCache(index, model, bytesMax);
  const objects = new ObjectCache(index, model, memberships, bytesMax);
  return { model, memberships, objects, chains: new AncestorCache(model, objects, bytesMax) };
}

function stateOf(index: TupleIndex, model: HotModel, namespace: string, relation: string) {
  const state = model.states[model.single(index.nameId(namespace), index.nameId(relation))];
  if (state === undefined) throw new Error(`${namespace}#${relation} has no state`);
  return state;
}

const entityOf = (index: TupleIndex, namespace: string, id: string): number =>
  index.entityId(index.nameId(namespace), id);
const nodeOf = (index: TupleIndex, namespace: string, id: string, relation: string): number =>
  index.nodeId(entityOf(index, namespace, id), index.nameId(relation));
const userOf = (index: TupleIndex, id: string): number =>
  index.nodeId(index.entityId(EMPTY_NAME, id), EMPTY_NAME);

/** What a line or a chain says, in words; lists by their users. */
type Form = {
  users: number[];
  groups: number[];
  children: string[];
};

function formOf(index: TupleIndex, words: Uint32Array, entries: number, counts: number): Form {
  const form: Form = { users: [], groups: [], children: [] };
  let at = entries;
  for (let i = 0; i < (counts & 255); i++) form.users.push(words[at++] as number);
  for (let i = 0; i < ((counts >>> 8) & 255); i++) {
    const chunk = new Uint32Array(256);
    const count = index.readWord(words[at + 1] as number, chunk);
    expect(index.usersWord(words[at] as number)).toBe(words[at + 1]);
    form.users.push(...chunk.subarray(0, count));
    at += 2;
  }
  for (let i = 0; i < ((counts >>> 16) & 255); i++) form.groups.push(words[at++] as number);
  for (let i = 0; i < counts >>> 24; i++) {
    form.children.push(`${words[at] as number}:${words[at + 1] as number}`);
    at += 2;
  }
  return sorted(form);
}

function sorted(form: Form): Form {
  form.users.sort((a, b) => a - b);
  form.groups.sort((a, b) => a - b);
  form.children.sort();
  return form;
}

type Level = Form & { weight: number; reads: number; words: number; isOpaque: boolean };

/** An object in a state as the index has it, without any cache that was used before. */
function levelOf(
  index: TupleIndex,
  { model, memberships }: Caches,
  entity: number,
  state: HotState,
) {
  const level: Level = {
    users: [],
    groups: [],
    children: [],
    weight: state.weight,
    reads: state.relations.length,
    words: 0,
    isOpaque: false,
  };
  const sizes: number[] = [];
  for (let node = index.firstNodeOf(entity); node !== 0; node = index.nextNodeOf(node)) {
    const action = state.actions[index.relationOf(node)] ?? 0;
    if (action === 0) continue;
    const chunk = new Uint32Array(256);
    if ((action & 1) !== 0) {
      const count = index.readUsers(node, 0, chunk, 0);
      level.users.push(...chunk.subarray(0, count));
      sizes.push(count);
    }
    const count = index.readSets(node, 0, chunk, 0);
    for (const child of chunk.subarray(0, count)) {
      if ((action & 1) !== 0) {
        const height = memberships.summaryOf(child);
        if (height === SUMMARY_OPEN) level.isOpaque = true;
        level.groups.push(child);
        level.weight += height;
        level.words += 1;
      }
      if (action > 1) {
        const above = index.entityOf(child);
        level.children.push(`${above}:${model.ofTarget(action >> 1, index.namespaceOf(above))}`);
        level.words += 2;
      }
    }
  }
  const copied = level.words + wordsOfUsers(sizes, LIST_COPIED_MAX);
  level.words = copied > LINE_WORDS_MAX ? level.words + wordsOfUsers(sizes, 1) : copied;
  return level;
}

/** Words of a line that the users of nodes take: a list of more than `copiedMax`, or than there is room for, is named. */
function wordsOfUsers(sizes: readonly number[], copiedMax: number): number {
  let users = 0;
  let lists = 0;
  for (const size of sizes) {
    if (size <= copiedMax && users + size <= LINE_WORDS_MAX) users += size;
    else lists++;
  }
  return users + lists * 2;
}

const LIST_COPIED_MAX = 6;

const CHAIN_WORDS_MAX = 20;
const CHAIN_OBJECTS_MAX = 8;
const LINE_WORDS_MAX = 11;

/** All levels above an object in one; undefined where the search itself must look. */
function chainOf(
  index: TupleIndex,
  caches: Caches,
  entity: number,
  state: HotState,
): Level | undefined {
  const all: Level = {
    users: [],
    groups: [],
    children: [],
    weight: 0,
    reads: 0,
    words: 0,
    isOpaque: false,
  };
  const seen = [`${entity}:${state.index}`];
  for (let i = 0; i < seen.length; i++) {
    const [id = 0, kind = 0] = (seen[i] as string).split(':').map(Number);
    const level = levelOf(index, caches, id, caches.model.states[kind] as HotState);
    if (level.isOpaque || level.words > LINE_WORDS_MAX) return undefined;
    all.words += level.words - level.children.length * 2;
    if (all.words > CHAIN_WORDS_MAX) return undefined;
    all.users.push(...level.users);
    all.groups.push(...level.groups);
    all.weight += level.weight;
    all.reads += level.reads;
    for (const child of level.children) {
      if (seen.includes(child) || seen.length === CHAIN_OBJECTS_MAX) return undefined;
      seen.push(child);
    }
  }
  return { ...all, ...sorted(all) };
}

const FOLDERS = Array.from({ length: 10 }, (_, i) => `f${i}`);
const USERS = Array.from({ length: 9 }, (_, i) => `u${i}`);
const GROUPS = ['g0', 'g1', 'g2'];

const grantee = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...USERS).map((id) => `user:${id}`) },
  { weight: 1, arbitrary: fc.constantFrom(...GROUPS).map((id) => `group:${id}#member`) },
);
const grant = fc
  .tuple(fc.constantFrom(...FOLDERS), fc.constantFrom('viewer', 'editor'), grantee)
  .map(([id, relation, subject]) => `folder:${id}#${relation}@${subject}`);
/** Mostly a tree; now and then a second parent. */
const parent = fc
  .tuple(fc.nat(8), fc.nat(8))
  .map(([a, b]) => `folder:f${a}#parent@folder:f${Math.min(9, a + 1 + (b % 3))}`);
const tuple = fc.oneof({ weight: 3, arbitrary: grant }, { weight: 2, arbitrary: parent });

/** Every group has members, and something that names it: no change below is of its shape. */
const BASE = GROUPS.flatMap((id) => [
  `group:${id}#member@user:u0`,
  `doc:keep#viewer@group:${id}#member`,
]);

test(`lines and chains say what the index says, also after changes (SEED=${seed})`, () => {
  let compared = 0;
  let multiple = 0;
  const property = fc.property(
    fc.array(tuple, { minLength: 10, maxLength: 30, size: 'max' }),
    fc.array(fc.constantFrom(...FOLDERS.slice(4)), { maxLength: 3 }),
    fc.array(fc.tuple(fc.nat(), tuple), { maxLength: 12, size: 'max' }),
    (some, crowded, changes) => {
      const crowds = crowded.flatMap((id) =>
        USERS.map((user) => `folder:${id}#viewer@user:${user}`),
      );
      const first = [...new Set([...some, ...crowds])];
      const stored = new Set(first);
      const index = indexOf(...BASE, ...first);
      const caches = cachesOf(index);
      const compare = (): void => {
        const fresh = cachesOf(index);
        for (const relation of ['viewer', 'editor']) {
          const state = stateOf(index, caches.model, 'folder', relation);
          stateOf(index, fresh.model, 'folder', relation);
          for (const id of FOLDERS) {
            const entity = entityOf(index, 'folder', id);
            if (entity === 0) continue;
            const level = levelOf(index, fresh, entity, state);
            const at = caches.objects.rowOf(entity, state);
            const { lines } = caches.objects;
            const counts = lines[at + ROW_COUNTS] as number;
            if (counts !== ROW_OPAQUE) {
              const { users, groups, children } = sorted(level);
              expect(formOf(index, lines, at + ROW_ENTRIES, counts)).toEqual({
                users,
                groups,
                children,
              });
              expect((lines[at + ROW_HEIGHT] as number) + state.weight).toBe(level.weight);
            }
            expect(counts === ROW_OPAQUE).toBe(level.words > LINE_WORDS_MAX);
            const chain = chainOf(index, fresh, entity, state);
            const top = caches.chains.ancestorsOf(entity, state);
            const words = caches.chains.lines;
            const all = words[top + ANCESTORS_COUNTS] as number;
            expect([id, all === ROW_OPAQUE]).toEqual([id, chain === undefined]);
            if (chain === undefined) continue;
            const { users, groups } = chain;
            expect(formOf(index, words, top + ANCESTORS_ENTRIES, all)).toEqual({
              users,
              groups,
              children: [],
            });
            expect([words[top + ANCESTORS_WEIGHT], words[top + ANCESTORS_READS]]).toEqual([
              chain.weight,
              chain.reads,
            ]);
            compared++;
            if (level.children.length > 0) multiple++;
          }
        }
      };
      compare();
      for (const [pick, added] of changes) {
        const removed = [...stored][pick % stored.size];
        const isRemoval = pick % 2 === 0 && removed !== undefined;
        const changed = keyOf(isRemoval ? removed : added);
        if (isRemoval) stored.delete(removed);
        else stored.add(added);
        const before = entityOf(index, 'folder', changed.objectId);
        index.applyChange(isRemoval ? 'delete' : 'insert', changed);
        const entity = before === 0 ? entityOf(index, 'folder', changed.objectId) : before;
        caches.objects.invalidate(entity, index.nameId('folder'));
        caches.chains.invalidate(entity);
        // An object that is gone is named by nothing that is asked here any more.
        for (const id of FOLDERS) {
          const other = entityOf(index, 'folder', id);
          if (other === 0) continue;
          if (changed.subject.kind === 'set' && changed.subject.objectId === id) {
            caches.objects.invalidate(other, index.nameId('folder'));
            caches.chains.invalidate(other);
          }
        }
        compare();
      }
    },
  );
  fc.assert(property, { numRuns: Math.ceil(25 * FUZZ_RUNS), seed });
  expect(compared).toBeGreaterThan(500);
  expect(multiple * 8).toBeGreaterThan(compared);
});

describe('ChainCache', () => {
  /** A line of folders, each below the next, with users on each. */
  function ladder(length: number, usersEach: number): TupleIndex {
    const tuples: string[] = [];
    for (let i = 0; i < length; i++) {
      if (i + 1 < length) tuples.push(`folder:f${i}#parent@folder:f${i + 1}`);
      for (let k = 0; k < usersEach; k++) tuples.push(`folder:f${i}#viewer@user:u${i}-${k}`);
    }
    return indexOf(...tuples, 'folder:far#viewer@user:u0-0');
  }
  const countsOf = (index: TupleIndex, caches: Caches): number => {
    const state = stateOf(index, caches.model, 'folder', 'viewer');
    const at = caches.chains.ancestorsOf(entityOf(index, 'folder', 'f0'), state);
    return caches.chains.lines[at + ANCESTORS_COUNTS] as number;
  };

  test.each([
    [8, 2, 16],
    [9, 2, undefined], // more objects than a chain has
    [5, 4, 20],
    [4, 5, 20],
    [7, 3, undefined], // more users than a chain has
  ])('%i folders with %i users each', (length, usersEach, users) => {
    const index = ladder(length, usersEach);
    expect(countsOf(index, cachesOf(index))).toBe(users ?? ROW_OPAQUE);
  });

  /** Folders above each other; of each: users, whether a list of nine more, groups. */
  function tower(levels: readonly (readonly [users: number, list: boolean, groups: number])[]) {
    const index = indexOf(...BASE);
    levels.forEach(([users, hasList, groups], i) => {
      const put = (text: string): void => {
        index.applyChange('insert', keyOf(`folder:f${i}#${text}`));
      };
      if (i + 1 < levels.length) put(`parent@folder:f${i + 1}`);
      for (let k = 0; k < users; k++) put(`viewer@user:v${i}-${k}`);
      if (hasList) for (let k = 0; k < 9; k++) put(`editor@user:e${k}`);
      for (let k = 0; k < groups; k++) put(`viewer@group:g${k}#member`);
    });
    return index;
  }
  const crowd = [0, true, 0] as const;
  const group = [0, false, 1] as const;
  const four = [4, false, 0] as const;
  test.each([
    [[four, four, four, four, [2, false, 0], crowd], 18 | (1 << 8)],
    [[four, four, four, four, [3, false, 0], crowd], undefined],
    [[crowd, four, four, four, four, [2, false, 0]], 18 | (1 << 8)],
    [[crowd, four, four, four, four, [3, false, 0]], undefined],
    [[four, four, four, four, [3, false, 0], group], 19 | (1 << 16)],
    [[four, four, four, four, four, group], undefined],
    [[group, four, four, four, four, four], undefined],
    [[group, group, crowd, crowd, four, four, four], 12 | (2 << 8) | (2 << 16)],
    [[group, group, crowd, crowd, crowd, four, four, four], 12 | (3 << 8) | (2 << 16)],
    [[group, [0, false, 2], crowd, crowd, crowd, four, four, four], undefined],
  ] as const)('%j', (levels, counts) => {
    const index = tower(levels);
    expect(countsOf(index, cachesOf(index))).toBe(counts ?? ROW_OPAQUE);
  });

  test('a full one sees changes of each of its objects', () => {
    for (let level = 0; level < 5; level++) {
      const index = ladder(5, 4);
      const caches = cachesOf(index);
      expect(countsOf(index, caches)).toBe(20);
      index.applyChange('delete', keyOf(`folder:f${level}#viewer@user:u${level}-0`));
      const entity = entityOf(index, 'folder', `f${level}`);
      caches.objects.invalidate(entity, index.nameId('folder'));
      caches.chains.invalidate(entity);
      expect(countsOf(index, caches)).toBe(19);
    }
  });

  test('what one of its objects leaves to the index, the chain does, too', () => {
    const index = ladder(3, 1);
    index.applyChange('insert', { ...keyOf('folder:f2#editor@user:u'), expiresAtUs: 1n });
    expect(countsOf(index, cachesOf(index))).toBe(ROW_OPAQUE);
    const open = ladder(3, 1);
    open.applyChange('insert', keyOf('folder:f2#viewer@folder:far#viewer'));
    open.applyChange('insert', keyOf('folder:f2#editor@*'));
    expect(countsOf(open, cachesOf(open))).toBe(ROW_OPAQUE);
  });

  test('what is noted of one leaves the one beside it alone', () => {
    const tuples = ['folder:far#viewer@user:far'];
    for (let n = 0; n < 40; n++) {
      for (let i = 0; i < 5; i++) {
        if (i < 4) tuples.push(`folder:${n}-${i}#parent@folder:${n}-${i + 1}`);
        for (let k = 0; k < 4; k++) tuples.push(`folder:${n}-${i}#viewer@user:${n}-${i}-${k}`);
      }
    }
    const index = indexOf(...tuples);
    const caches = cachesOf(index);
    const state = stateOf(index, caches.model, 'folder', 'viewer');
    const usersOf = (n: number): number[] => {
      const at = caches.chains.ancestorsOf(entityOf(index, 'folder', `${n}-0`), state);
      return [...caches.chains.lines.subarray(at + ANCESTORS_ENTRIES, at + ANCESTORS_ENTRIES + 20)];
    };
    const before = Array.from({ length: 40 }, (_, n) => usersOf(n));
    expect(new Set(before.flat()).size).toBe(800);
    for (let round = 0; round < 3; round++) {
      caches.chains.invalidate(entityOf(index, 'folder', 'far'));
      expect(Array.from({ length: 40 }, (_, n) => usersOf(n))).toEqual(before);
    }
  });

  test('it is renewed at its place', () => {
    const index = ladder(3, 1);
    const caches = cachesOf(index);
    const state = stateOf(index, caches.model, 'folder', 'viewer');
    const entity = entityOf(index, 'folder', 'f0');
    const at = caches.chains.ancestorsOf(entity, state);
    caches.chains.invalidate(entity);
    expect([
      caches.chains.ancestorsOf(entity, state),
      caches.chains.ancestorsOf(entity, state),
    ]).toEqual([at, at]);
    expect(caches.chains.bytes).toBeGreaterThan(caches.chains.table.bytes);
  });

  test('a circle, a second path and an unknown state are not for a chain', () => {
    const circle = indexOf('folder:f0#parent@folder:f1', 'folder:f1#parent@folder:f0');
    expect(countsOf(circle, cachesOf(circle))).toBe(ROW_OPAQUE);
    const diamond = indexOf(
      'folder:f0#parent@folder:f1',
      'folder:f0#parent@folder:f2',
      'folder:f1#parent@folder:f3',
      'folder:f2#parent@folder:f3',
    );
    expect(countsOf(diamond, cachesOf(diamond))).toBe(ROW_OPAQUE);
  });

  test('changes elsewhere leave it; a change of any of its objects, and only then, renews it', () => {
    const index = ladder(6, 1);
    const caches = cachesOf(index);
    expect(countsOf(index, caches)).toBe(6);
    for (let level = 0; level < 6; level++) {
      index.applyChange('insert', keyOf(`folder:f${level}#viewer@user:more`));
      caches.objects.invalidate(entityOf(index, 'folder', `f${level}`), index.nameId('folder'));
      // As it was: nobody has said a word of this folder.
      expect(countsOf(index, caches)).toBe(6 + level);
      for (let other = 0; other < 3; other++) {
        caches.chains.invalidate(entityOf(index, 'folder', 'far'));
        expect(countsOf(index, caches)).toBe(6 + level);
        expect(countsOf(index, caches)).toBe(6 + level);
      }
      caches.chains.invalidate(entityOf(index, 'folder', `f${level}`));
      expect(countsOf(index, caches)).toBe(7 + level);
    }
  });

  test('what is cleared is made again', () => {
    const index = ladder(3, 1);
    const caches = cachesOf(index);
    expect(countsOf(index, caches)).toBe(3);
    index.applyChange('insert', keyOf('folder:f2#viewer@user:more'));
    caches.objects.clear();
    expect(countsOf(index, caches)).toBe(3);
    caches.chains.clear();
    expect(countsOf(index, caches)).toBe(4);
  });

  test('a table that grows forgets no change', () => {
    const tuples: string[] = [];
    for (let i = 0; i < 400; i++) {
      tuples.push(`folder:a${i}#parent@folder:b${i}`, `folder:b${i}#viewer@user:u${i}`);
    }
    const index = indexOf(...tuples);
    const caches = cachesOf(index, 1 << 17);
    const state = stateOf(index, caches.model, 'folder', 'viewer');
    const usersOf = (i: number): number => {
      const at = caches.chains.ancestorsOf(entityOf(index, 'folder', `a${i}`), state);
      return (caches.chains.lines[at + ANCESTORS_COUNTS] as number) & 255;
    };
    const before = caches.chains.bytes;
    for (let i = 0; i < 400; i++) {
      expect([i, usersOf(i)]).toEqual([i, 1]);
      const touched = i >>> 1;
      const above = entityOf(index, 'folder', `b${touched}`);
      const op = i % 2 === 0 ? 'insert' : 'delete';
      index.applyChange(op, keyOf(`folder:b${touched}#viewer@user:new`));
      caches.objects.invalidate(above, index.nameId('folder'));
      caches.chains.invalidate(above);
      expect([i, usersOf(touched)]).toEqual([i, i % 2 === 0 ? 2 : 1]);
    }
    expect(caches.chains.bytes).toBeGreaterThan(before * 4);
    expect(caches.chains.bytes).toBeLessThanOrEqual((1 << 17) * 1.2);
  });
});

describe('ObjectCache', () => {
  const countsOf = (index: TupleIndex, caches = cachesOf(index)): number => {
    const state = stateOf(index, caches.model, 'folder', 'viewer');
    const at = caches.objects.rowOf(entityOf(index, 'folder', 'f'), state);
    return caches.objects.lines[at + ROW_COUNTS] as number;
  };
  const viewers = (count: number, relation = 'viewer'): string[] =>
    Array.from({ length: count }, (_, i) => `folder:f#${relation}@user:${relation}${i}`);
  const parents = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => `folder:f#parent@folder:p${i}`);

  test('short lists are copied, longer ones named, and names give way where there is no room', () => {
    expect(countsOf(indexOf(...viewers(6)))).toBe(6);
    expect(countsOf(indexOf(...viewers(7)))).toBe(1 << 8);
    expect(countsOf(indexOf(...viewers(6), ...viewers(5, 'editor')))).toBe(11);
    expect(countsOf(indexOf(...viewers(6), ...viewers(6, 'editor')))).toBe(6 | (1 << 8));
    expect(countsOf(indexOf(...viewers(5), ...parents(3)))).toBe(5 | (3 << 24));
    expect(countsOf(indexOf(...viewers(6), ...parents(3)))).toBe((1 << 8) | (3 << 24));
    expect(countsOf(indexOf(...viewers(1), ...parents(5)))).toBe(1 | (5 << 24));
    expect(countsOf(indexOf(...viewers(6), ...parents(5)))).toBe(ROW_OPAQUE);
    expect(countsOf(indexOf(...parents(6)))).toBe(ROW_OPAQUE);
  });

  test('what has an expiry, or is for everybody, is no part of a line', () => {
    const withExpiry = (text: string): TupleIndex => {
      const index = indexOf('folder:f#viewer@user:a', 'folder:g#viewer@group:g#member');
      index.applyChange('insert', { ...keyOf(text), expiresAtUs: 5n });
      return index;
    };
    expect(countsOf(withExpiry('folder:f#editor@user:b'))).toBe(ROW_OPAQUE);
    expect(countsOf(withExpiry('folder:f#viewer@group:g#member'))).toBe(ROW_OPAQUE);
    expect(countsOf(withExpiry('folder:f#parent@folder:p'))).toBe(ROW_OPAQUE);
    // In a list it stays in the list, where a check sees it.
    expect(countsOf(withExpiry('folder:f#viewer@user:b'))).toBe(1 << 8);
    expect(countsOf(indexOf('folder:f#viewer@user:a', 'folder:f#viewer@*'))).toBe(1 << 8);
    expect(countsOf(indexOf('folder:f#viewer@*'))).toBe(ROW_OPAQUE);
  });

  test('a set that is not of own tuples alone is visited', () => {
    const index = indexOf('folder:f#viewer@folder:e#viewer', 'folder:e#viewer@user:u');
    const { model, objects } = cachesOf(index);
    const state = stateOf(index, model, 'folder', 'viewer');
    const at = objects.rowOf(entityOf(index, 'folder', 'f'), state);
    expect(objects.lines[at + ROW_COUNTS]).toBe(1 << 24);
    expect([...objects.lines.subarray(at + ROW_ENTRIES, at + ROW_ENTRIES + 2)]).toEqual([
      entityOf(index, 'folder', 'e'),
      state.index,
    ]);
  });

  test('a line is dropped in all states of its object, and only then', () => {
    const index = indexOf('folder:f#viewer@user:a', 'folder:f#editor@user:b');
    const caches = cachesOf(index);
    const count = (relation: string): number => {
      const state = stateOf(index, caches.model, 'folder', relation);
      const at = caches.objects.rowOf(entityOf(index, 'folder', 'f'), state);
      return caches.objects.lines[at + ROW_COUNTS] as number;
    };
    expect([count('viewer'), count('editor')]).toEqual([2, 1]);
    index.applyChange('insert', keyOf('folder:f#editor@user:c'));
    caches.objects.invalidate(entityOf(index, 'folder', 'f'), index.nameId('doc'));
    expect([count('viewer'), count('editor')]).toEqual([2, 1]);
    caches.objects.invalidate(entityOf(index, 'folder', 'f'), index.nameId('folder'));
    expect([count('viewer'), count('editor')]).toEqual([3, 2]);
    index.applyChange('delete', keyOf('folder:f#editor@user:c'));
    caches.objects.clear();
    expect([count('viewer'), count('editor')]).toEqual([2, 1]);
  });
});

describe('ClosureCache', () => {
  const groupNode = (index: TupleIndex, id: string): number => nodeOf(index, 'group', id, 'member');

  test('a node is measured again after it was invalidated, and only then', () => {
    const index = indexOf('group:a#member@user:u', 'group:x#member@group:a#member');
    const { memberships } = cachesOf(index);
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(1);
    index.applyChange('insert', keyOf('group:a#member@group:b#member'));
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(1);
    memberships.invalidateNode(groupNode(index, 'x'));
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(1);
    memberships.invalidateNode(groupNode(index, 'a'));
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(2);
    index.applyChange('insert', keyOf('group:b#member@*'));
    memberships.clear();
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(SUMMARY_OPEN);
    index.applyChange('delete', keyOf('group:b#member@*'));
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(SUMMARY_OPEN);
    memberships.invalidateNode(groupNode(index, 'a'));
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(2);
  });

  test('what was known of the nodes beside it went with it', () => {
    const index = indexOf('group:a#member@user:u', 'group:b#member@user:u');
    const { memberships } = cachesOf(index);
    expect(['a', 'b'].map((id) => memberships.summaryOf(groupNode(index, id)))).toEqual([1, 1]);
    index.applyChange('insert', keyOf('group:b#member@group:c#member'));
    memberships.clear();
    expect(['a', 'b'].map((id) => memberships.summaryOf(groupNode(index, id)))).toEqual([1, 2]);
    expect(memberships.bytes).toBeGreaterThan(0);
  });

  test('a user who reaches a group in two ways is in it once', () => {
    const index = new TupleIndex();
    for (let i = 0; i < 60; i++) {
      index.applyChange('insert', keyOf(`group:in${i % 6}#member@user:u`));
      index.applyChange('insert', keyOf(`group:out${i % 10}#member@group:in${i % 6}#member`));
      index.applyChange('insert', keyOf(`folder:f${i}#viewer@group:out${i % 10}#member`));
    }
    const { memberships } = cachesOf(index);
    const at = memberships.membershipsOf(userOf(index, 'u'));
    expect(memberships.arena[at]).toBe(16);
  });

  test("a user's closure is gathered again after it was invalidated, and only then", () => {
    const index = indexOf(
      'group:a#member@user:u',
      'group:b#member@user:v',
      'folder:f#viewer@group:a#member',
      'folder:f#viewer@group:b#member',
    );
    const { memberships } = cachesOf(index);
    const holds = (user: string, group: string): boolean => {
      const at = memberships.membershipsOf(userOf(index, user));
      return isMember(memberships.arena, at, groupNode(index, group));
    };
    expect([holds('u', 'a'), holds('u', 'b'), holds('v', 'b')]).toEqual([true, false, true]);
    index.applyChange('insert', keyOf('group:b#member@user:u'));
    memberships.invalidateUser(userOf(index, 'v'));
    expect([holds('u', 'a'), holds('u', 'b'), holds('v', 'b')]).toEqual([true, false, true]);
    memberships.invalidateUser(userOf(index, 'u'));
    expect([holds('u', 'a'), holds('u', 'b'), holds('v', 'b')]).toEqual([true, true, true]);
    index.applyChange('delete', keyOf('group:b#member@user:u'));
    expect(holds('u', 'b')).toBe(true);
    memberships.clear();
    expect([holds('u', 'a'), holds('u', 'b'), holds('v', 'b')]).toEqual([true, false, true]);
  });

  test.each([
    [64, true],
    [65, false],
  ])('a user in %i groups has a closure: %s', (count, hasOne) => {
    const index = new TupleIndex();
    for (let i = 0; i < count; i++) {
      index.applyChange('insert', keyOf(`group:g${i}#member@user:u`));
      index.applyChange('insert', keyOf(`folder:f#viewer@group:g${i}#member`));
    }
    const { memberships } = cachesOf(index);
    const at = memberships.membershipsOf(userOf(index, 'u'));
    expect(at !== MEMBERSHIPS_NONE).toBe(hasOne);
    expect(memberships.membershipsOf(userOf(index, 'u'))).toBe(at);
    if (!hasOne) return;
    for (let i = 0; i < count; i++) {
      expect(isMember(memberships.arena, at, groupNode(index, `g${i}`))).toBe(true);
    }
  });

  test.each([
    [256, true],
    [257, false],
  ])('a user in %i groups that nothing names: %s', (count, hasOne) => {
    const index = new TupleIndex();
    for (let i = 0; i < count; i++) {
      index.applyChange('insert', keyOf(`group:g${i}#member@user:u`));
    }
    const at = cachesOf(index).memberships.membershipsOf(userOf(index, 'u'));
    expect(at !== MEMBERSHIPS_NONE).toBe(hasOne);
  });

  /** Groups g0 ⊃ g1 ⊃ …, the last one with a user. */
  function nest(levels: number): TupleIndex {
    const index = indexOf(`group:g${levels - 1}#member@user:u`);
    for (let i = 0; i + 1 < levels; i++) {
      index.applyChange('insert', keyOf(`group:g${i}#member@group:g${i + 1}#member`));
    }
    return index;
  }

  test.each([
    [31, 31],
    [32, SUMMARY_OPEN],
  ])('%i groups in each other have the height %i', (levels, height) => {
    const index = nest(levels);
    expect(cachesOf(index).memberships.summaryOf(groupNode(index, 'g0'))).toBe(height);
  });

  test.each([
    [63, 2],
    [64, SUMMARY_OPEN],
  ])('a group of %i groups has the height %i', (count, height) => {
    const index = new TupleIndex();
    for (let i = 0; i < count; i++) {
      index.applyChange('insert', keyOf(`group:top#member@group:g${i}#member`));
      index.applyChange('insert', keyOf(`group:g${i}#member@user:u`));
    }
    expect(cachesOf(index).memberships.summaryOf(groupNode(index, 'top'))).toBe(height);
  });

  test('objects as members count for nothing, sets of another kind leave it open', () => {
    const index = indexOf(
      'group:a#member@folder:f#',
      'group:b#member@folder:f#viewer',
      'folder:f#viewer@user:u',
    );
    const { memberships } = cachesOf(index);
    expect(memberships.summaryOf(groupNode(index, 'a'))).toBe(1);
    expect(memberships.summaryOf(groupNode(index, 'b'))).toBe(SUMMARY_OPEN);
  });

  test('what is full starts anew, and every answer stays right', () => {
    const index = new TupleIndex();
    const count = 700;
    for (let i = 0; i < count; i++) {
      index.applyChange('insert', keyOf(`group:g${i}#member@user:u${i}`));
      index.applyChange('insert', keyOf(`group:h${i % 50}#member@group:g${i}#member`));
      index.applyChange('insert', keyOf(`folder:f#viewer@group:h${i % 50}#member`));
    }
    const { memberships } = cachesOf(index, 1 << 14);
    const wrong: string[] = [];
    const holds = (at: number, group: string): boolean =>
      isMember(memberships.arena, at, groupNode(index, group));
    for (let n = 0; n < count * 3; n++) {
      const i = n % count;
      const at = memberships.membershipsOf(userOf(index, `u${i}`));
      if (at === MEMBERSHIPS_NONE || !holds(at, `g${i}`)) wrong.push(`u${i} is in g${i}`);
      else if (!holds(at, `h${i % 50}`)) wrong.push(`u${i} is in h${i % 50}`);
      else if (holds(at, `h${(i + 1) % 50}`)) wrong.push(`u${i} is not in h${(i + 1) % 50}`);
      if (memberships.summaryOf(groupNode(index, `g${i}`)) !== 1) wrong.push(`height of g${i}`);
      if (memberships.summaryOf(groupNode(index, `h${i % 50}`)) !== 2) wrong.push(`of h${i % 50}`);
      if (memberships.bytes > 1 << 14) wrong.push(`${memberships.bytes} bytes`);
    }
    expect(wrong).toEqual([]);
  });
});

describe('what was decided with warm caches is decided anew after a change', () => {
  const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
  function checker(index: TupleIndex): (object: string, user: string) => number {
    const evaluator = new Evaluator(index, MODEL, options, systemClock);
    return (object, user) => {
      const [namespace = '', id = ''] = object.split(':');
      return evaluator.checkUser(
        entityOf(index, namespace, id),
        index.nameId('viewer'),
        index.entityId(EMPTY_NAME, user),
        0,
        10_000,
      );
    };
  }

  test('a grant of the parent folder to a group is taken back', () => {
    const index = indexOf(
      'doc:d#parent@folder:f',
      'folder:f#parent@folder:e',
      'folder:e#viewer@group:g#member',
      'folder:other#viewer@group:g#member',
      'group:g#member@user:u',
    );
    const check = checker(index);
    for (let i = 0; i < 6; i++) expect(check('doc:d', 'u')).toBe(CHECK_ALLOWED);
    index.applyChange('delete', keyOf('folder:e#viewer@group:g#member'));
    expect(check('doc:d', 'u')).toBe(CHECK_DENIED);
    expect(check('doc:d', 'u')).toBe(CHECK_DENIED);
    index.applyChange('insert', keyOf('folder:f#viewer@group:g#member'));
    expect(check('doc:d', 'u')).toBe(CHECK_ALLOWED);
  });

  const places = [
    ['the document', 'doc:d#viewer@user:u'],
    ['its folder', 'folder:f#viewer@user:u'],
    ['the folder above', 'folder:e#viewer@user:u'],
    ['the folder above that, as editor', 'folder:top#editor@user:u'],
    ['a group of the folder above', 'group:g#member@user:u'],
    ['a group in the group of the top folder', 'group:inner#member@user:u'],
    ['the document itself lies there', 'doc:d#parent@folder:granted'],
    ['its folder lies there', 'folder:f#parent@folder:granted'],
    ['the folder above lies there', 'folder:e#parent@folder:granted'],
    ['the top folder holds a group', 'folder:top#viewer@group:granted#member'],
    ['a group holds another', 'group:g#member@group:granted#member'],
    ['a group holds everybody', 'group:g#member@*'],
    ['a group in the group of the top folder holds everybody', 'group:inner#member@*'],
    ['a group holds who can view a folder', 'group:g#member@folder:granted#viewer'],
    ['an inner group holds who can view a folder', 'group:inner#member@folder:granted#viewer'],
    ['a folder is open for everybody', 'folder:e#viewer@*'],
    ['who can view one folder can view another', 'folder:e#viewer@folder:granted#viewer'],
  ] as const;
  test.each(places)('%s', (_where, changed) => {
    const index = indexOf(
      'doc:d#parent@folder:f',
      'folder:f#parent@folder:e',
      'folder:e#parent@folder:top',
      'folder:e#viewer@group:g#member',
      'folder:top#viewer@group:outer#member',
      'group:outer#member@group:inner#member',
      'group:g#member@user:v',
      'group:inner#member@user:v',
      'folder:top#editor@user:v',
      'folder:granted#viewer@user:u',
      'group:granted#member@user:u',
      'doc:keep#viewer@group:granted#member',
    );
    const check = checker(index);
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 3; i++) expect(check('doc:d', 'u')).toBe(CHECK_DENIED);
      index.applyChange('insert', keyOf(changed));
      for (let i = 0; i < 3; i++) expect(check('doc:d', 'u')).toBe(CHECK_ALLOWED);
      index.applyChange('delete', keyOf(changed));
      expect(check('doc:d', 'v')).toBe(CHECK_ALLOWED);
    }
  });

  test.each(['folder:f', 'doc:d'])('of %s with many changes between two checks', (object) => {
    for (const count of [1, 63, 64, 65, 200]) {
      const index = indexOf(
        'doc:d#parent@folder:below',
        'folder:below#parent@folder:f',
        'folder:f#viewer@user:u',
        'folder:f#viewer@user:v',
        'folder:keep#viewer@user:u',
      );
      const check = checker(index);
      for (let round = 0; round < 4; round++) {
        expect(check(object, 'u')).toBe(CHECK_ALLOWED);
        // The change that counts is the first, the last, or between others of no concern.
        const place = [0, count >> 1, count - 1, 0][round];
        for (let i = 0; i < count; i++) {
          const text = i === place ? 'folder:f#viewer@user:u' : `folder:n${i}#viewer@user:n`;
          const op = i === place ? 'delete' : round % 2 === 0 ? 'insert' : 'delete';
          index.applyChange(op, keyOf(text));
        }
        expect([count, round, check(object, 'u')]).toEqual([count, round, CHECK_DENIED]);
        index.applyChange('insert', keyOf('folder:f#viewer@user:u'));
      }
    }
  });

  test('a group that nothing named before', () => {
    const index = indexOf(
      'doc:d#parent@folder:f',
      'folder:f#viewer@group:named#member',
      'group:named#member@user:v',
      'group:first#member@user:u',
      'group:outer#member@user:w',
    );
    const check = checker(index);
    for (let i = 0; i < 3; i++) expect(check('doc:d', 'u')).toBe(CHECK_DENIED);
    index.applyChange('insert', keyOf('folder:f#viewer@group:first#member'));
    for (let i = 0; i < 3; i++) expect(check('doc:d', 'u')).toBe(CHECK_ALLOWED);
    index.applyChange('delete', keyOf('folder:f#viewer@group:first#member'));
    for (let i = 0; i < 3; i++) expect(check('doc:d', 'u')).toBe(CHECK_DENIED);
    index.applyChange('insert', keyOf('folder:f#viewer@group:first#member'));
    for (let i = 0; i < 3; i++) expect(check('doc:d', 'u')).toBe(CHECK_ALLOWED);
  });

  test('an index that was emptied and filled again is another one', () => {
    const index = new TupleIndex();
    const fill = (user: string): RelationTuple[] =>
      Array.from({ length: 900 }, (_, i) => ({
        namespace: 'folder',
        objectId: `f${i}`,
        relation: 'viewer',
        subject: { kind: 'user', userId: `${user}${i}` } satisfies Subject,
      }));
    const check = checker(index);
    const [first, second] = [fill('a'), fill('b')];
    for (const one of first) index.applyChange('insert', one);
    expect(index.bytes).toBeGreaterThan(65_536);
    for (let i = 0; i < 900; i++) expect(check(`folder:f${i}`, `a${i}`)).toBe(CHECK_ALLOWED);
    for (const one of first) index.applyChange('delete', one);
    expect(index.bytes).toBeLessThan(1 << 20);
    // The same ids by number: what is left in a cache would answer for the users before.
    for (const one of second.slice(0, 40)) index.applyChange('insert', one);
    for (let i = 0; i < 40; i++) {
      expect([i, check(`folder:f${i}`, `b${i}`)]).toEqual([i, CHECK_ALLOWED]);
      expect([i, check(`folder:f${i}`, `b${(i + 1) % 40}`)]).toEqual([i, CHECK_DENIED]);
    }
  });

  test('also when only the last few changes emptied it', () => {
    const index = new TupleIndex();
    const put = (op: 'insert' | 'delete', object: string, user: string): void =>
      void index.applyChange(op, keyOf(`folder:${object}#viewer@user:${user}`));
    for (let i = 0; i < 900; i++) put('insert', `f${i}`, `a${i}`);
    for (let i = 10; i < 900; i++) put('delete', `f${i}`, `a${i}`);
    const check = checker(index);
    for (let i = 0; i < 10; i++) expect(check(`folder:f${i}`, `a${i}`)).toBe(CHECK_ALLOWED);
    const before = index.bytes;
    for (let i = 0; i < 10; i++) put('delete', `f${i}`, `a${i}`);
    expect(index.bytes).toBeLessThan(before);
    // Ids of objects and users before name others now.
    for (let i = 0; i < 10; i++) put('insert', `x${i}`, 'b');
    for (let i = 0; i < 10; i++) put('insert', `y${i}`, `c${i}`);
    for (let i = 0; i < 10; i++) {
      expect([i, check(`folder:x${i}`, 'b')]).toEqual([i, CHECK_ALLOWED]);
      expect([i, check(`folder:y${i}`, `c${i}`)]).toEqual([i, CHECK_ALLOWED]);
      expect([i, check(`folder:y${i}`, 'b')]).toEqual([i, CHECK_DENIED]);
    }
  });
});
