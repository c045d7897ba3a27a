import { describe, expect, test } from 'vitest';
import { byLength } from '../../../test/support/test-length.ts';
import { inspectModel } from './namespace-model.ts';

function inspect(relations: Readonly<Record<string, unknown>>, more: object = {}) {
  const { errors, warnings } = inspectModel(
    JSON.stringify({ namespaces: { doc: { relations }, ...more } }),
  );
  const text = (list: typeof errors): string[] =>
    list.map(
      ({ path, message }) => `${path.replace('$.namespaces.doc.relations.', '')}: ${message}`,
    );
  return { errors: text(errors), warnings: text(warnings) };
}

const clean = { errors: [], warnings: [] };
const subjects = (...types: readonly string[]) => ({ subjects: types });
const except = (exclude: unknown, ...types: readonly string[]) => ({
  ...(types.length === 0 ? {} : subjects(...types)),
  exclusion: { include: { this: {} }, exclude },
});

describe('exclusions that can never exclude', () => {
  test('are errors where the types have nothing in common', () => {
    const relations = { viewer: except({ computed: 'banned' }, 'user'), banned: subjects('group') };
    expect(inspect(relations).errors).toEqual([
      'viewer.exclusion.exclude: can never exclude anybody: it has no type of subject in common with include',
    ]);
  });

  test.each([
    [['user'], ['user']],
    [['user'], ['group#member']],
    [['group#member'], ['user']],
    [['user'], ['user:*']],
    [['user:*'], ['user']],
    [['group'], ['group', 'user:*']],
    [['group#member'], ['workspace#member']],
    [['seat#holder'], ['user']],
    [['group'], ['group:*']],
    [['group:*'], ['group']],
    [['group#member'], ['workspace:*']],
    [['group:*'], ['user:*']],
  ])('take %j except %j', (included, excluded) => {
    const relations = {
      viewer: except({ computed: 'banned' }, ...included),
      banned: subjects(...excluded),
    };
    expect(inspect(relations).errors).toEqual([]);
  });

  test.each([
    [['user'], ['group:*']],
    [['group:*'], ['user']],
    [['group:*'], ['workspace:*']],
    [['workspace'], ['group:*']],
  ])('do not take %j except %j', (included, excluded) => {
    const relations = {
      viewer: except({ computed: 'banned' }, ...included),
      banned: subjects(...excluded),
    };
    expect(inspect(relations).errors).toEqual([
      expect.stringContaining('viewer.exclusion.exclude: can never exclude anybody'),
    ]);
  });

  test('are warned of entry by entry', () => {
    const relations = {
      viewer: except({ union: [{ computed: 'banned' }, { computed: 'blocked' }] }, 'user'),
      banned: { ...subjects('user', 'group'), union: [{ this: {} }, { computed: 'muted' }] },
      blocked: subjects('group#member'),
      muted: subjects('workspace', 'user'),
    };
    expect(inspect(relations)).toEqual({
      errors: [],
      warnings: [
        'viewer.exclusion.exclude: "group" on "banned" can never exclude anybody that include holds',
        'viewer.exclusion.exclude: "workspace" on "muted" can never exclude anybody that include holds',
      ],
    });
  });

  test('are found through walks, intersections and relations that lead to each other', () => {
    const folder = {
      relations: {
        blocked: { ...subjects('group', 'folder#blocked') },
        open: subjects('user'),
        both: { intersection: [{ computed: 'blocked' }, { computed: 'open' }] },
      },
    };
    const walk = (computed: string) => ({ tuple_to_userset: { tupleset: 'parent', computed } });
    const of = (exclude: unknown) =>
      inspect({ viewer: except(exclude, 'user'), parent: subjects('folder') }, { folder });
    expect(of(walk('open'))).toEqual({
      errors: [],
      warnings: [
        '$.namespaces.folder.relations.both: can never hold for anybody, by the types that it admits',
      ],
    });
    expect(of(walk('blocked')).errors).toHaveLength(1);
    expect(of(walk('both')).errors).toHaveLength(1);
  });

  test('are no errors where an open namespace may hold anything', () => {
    const shelf = { open: true, relations: { blocked: {} } };
    const relations = {
      viewer: except({ tuple_to_userset: { tupleset: 'parent', computed: 'any' } }, 'user'),
      parent: subjects('shelf'),
    };
    expect(inspect(relations, { shelf })).toEqual(clean);
    const banned = subjects('shelf#blocked');
    expect(
      inspect({ viewer: except({ computed: 'banned' }, 'user'), banned }, { shelf }).errors,
    ).toEqual([]);
  });

  test('without types only what can be told without them is warned of', () => {
    const walk = { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } };
    expect(inspect({ viewer: except({ computed: 'banned' }), banned: {} })).toEqual(clean);
    expect(inspect({ viewer: except(walk), parent: { computed: 'owner' }, owner: {} })).toEqual({
      errors: [],
      warnings: [
        'viewer.exclusion.exclude: can never exclude anybody: no tuple of its tupleset counts',
        'viewer.exclusion.exclude.tuple_to_userset.tupleset: follows the stored tuples of "parent" only, not what its rewrite holds',
      ],
    });
  });

  test('an exclusion of itself holds for nobody', () => {
    expect(inspect({ viewer: except({ this: {} }) }).warnings).toEqual([
      'viewer.exclusion: excludes what it includes, so it can never hold',
    ]);
  });
});

const NAMESPACES = byLength(16, 30);

test('a model as large as a request is looked at in bounded time', () => {
  const relations = Object.fromEntries(
    Array.from({ length: 256 }, (_, i) => {
      const types = Array.from(
        { length: 64 },
        (_type, t) => `n${(i + t * 3) % NAMESPACES}#r${(i + t) % 256}`,
      );
      return [`r${i}`, { subjects: [...new Set(types)] }];
    }),
  );
  const namespaces = Object.fromEntries(
    Array.from({ length: NAMESPACES }, (_, n) => [`n${n}`, { relations }]),
  );
  const { errors, warnings } = inspectModel(JSON.stringify({ namespaces }));
  expect(errors).toEqual([]);
  expect(warnings).toEqual([
    { path: '$', message: 'is too large for a look at whom its exclusions can exclude' },
  ]);
});
