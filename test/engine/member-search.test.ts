import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BoundModel } from '../../src/engine/bound/bound-model.ts';
import { ConditionCache, Scope } from '../../src/engine/bound/scope.ts';
import { type MemberScan, MemberSearch } from '../../src/engine/general/member-search.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const upwards = { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } };
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: {
        relations: {
          parent: {},
          editor: {},
          banned: {},
          viewer: { union: [{ this: {} }, { computed: 'editor' }, upwards] },
          both: { intersection: [{ this: {} }, upwards] },
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
        },
      },
    },
  }),
);

/** What a search below `doc:d#relation` finds: its users (`u`, or `u?` where not sure), `*` and reads. */
function found(
  tuples: readonly (string | RelationTuple)[],
  relation: string,
  options: { readonly scan?: MemberScan; readonly depthMax?: number } = {},
) {
  const { scan = 'mentioned', depthMax = 256 } = options;
  const reader = new TupleIndex();
  for (const tuple of tuples) {
    reader.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  const scope = new Scope({
    reader,
    model: new BoundModel(MODEL, reader),
    clock: systemClock,
    conditions: new ConditionCache(),
    depthMax,
    nowMs: 0,
    readBudget: 1_000_000,
    contextJson: '',
    relationText: 'doc#any',
  });
  const doc = reader.entityId(reader.nameId('doc'), 'd');
  const search = new MemberSearch(scope, doc, reader.nameId(relation), scan);
  let steps = 0;
  while (search.step()) steps++;
  const users = Array.from({ length: search.users.size }, (_, i) => {
    const name = reader.entityText(reader.entityOf(search.users.firstOf(i)));
    return search.isSure(i) ? name : `${name}?`;
  });
  if (search.hasWildcard) users.push(search.isWildcardSure ? '*' : '*?');
  return { users: users.toSorted(), reads: scope.reads, steps };
}

describe('a search of members', () => {
  test('finds all below unions, who are members for sure', () => {
    const tuples = [
      'doc:d#viewer@user:a',
      'doc:d#editor@user:b',
      'doc:d#parent@doc:e',
      'doc:e#viewer@group:g#member',
      'group:g#member@user:c',
      'doc:e#viewer@*',
      'doc:e#banned@user:not',
    ];
    expect(found(tuples, 'viewer').users).toEqual(['*', 'a', 'b', 'c']);
    expect(found(tuples, 'viewer', { scan: 'necessary' }).users).toEqual(['*', 'a', 'b', 'c']);
  });

  test('takes what an exclusion or intersection holds for possible, not what it excludes', () => {
    const tuples = [
      'doc:d#both@user:a',
      'doc:d#both@*',
      'doc:d#parent@doc:e',
      'doc:e#viewer@user:b',
      'doc:d#viewer@user:c',
      'doc:d#banned@user:c',
      'doc:d#banned@user:not',
    ];
    expect(found(tuples, 'reader').users).toEqual(['b?', 'c?']);
    expect(found(tuples, 'both').users).toEqual(['*?', 'a?', 'b?']);
    // One side is enough to meet each who holds both.
    expect(found(tuples, 'both', { scan: 'necessary' }).users).toEqual(['*?', 'a?']);
  });

  test('is sure of who is met a second time without a rule between, everybody included', () => {
    for (const tuples of [
      ['doc:d#viewer@doc:d#both', 'doc:d#viewer@doc:e#viewer'],
      ['doc:d#viewer@doc:e#viewer', 'doc:d#viewer@doc:d#both'],
    ]) {
      const all = [...tuples, 'doc:d#both@user:a', 'doc:e#viewer@user:a', 'doc:d#both@*'];
      expect(found(all, 'viewer').users).toEqual(['*?', 'a']);
      expect(found([...all, 'doc:e#viewer@*'], 'viewer').users).toEqual(['*', 'a']);
    }
  });

  test('visits a userset again only where it is surer than before', () => {
    const tuples = [
      'doc:d#both@group:x#member',
      'doc:d#viewer@doc:d#both',
      'doc:d#viewer@group:y#member',
      'group:y#member@group:z#member',
      'group:z#member@group:x#member',
      'group:z#member@group:y#member',
      'group:x#member@user:u',
    ];
    const { users, steps } = found(tuples, 'viewer');
    // Twice: the group below the rule that is below no rule, too.
    expect([users, steps]).toEqual([
      ['u'],
      ['viewer', 'editor', 'both', 'y', 'z', 'x', 'x'].length,
    ]);
  });

  test('leaves out what has ended, and what cannot be decided', () => {
    const condition = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };
    const tuples = [
      { ...keyOf('doc:d#viewer@user:a'), expiresAtUs: 0n },
      { ...keyOf('doc:d#viewer@user:b'), ...condition },
      { ...keyOf('doc:d#viewer@group:g#member'), ...condition },
      { ...keyOf('doc:d#viewer@*'), expiresAtUs: 0n },
      'group:g#member@user:c',
      'doc:d#viewer@user:d',
    ];
    expect(found(tuples, 'viewer').users).toEqual(['d']);
  });

  test.each([
    [
      'groups',
      ['doc:d#viewer@group:b#member', 'group:b#member@group:c#member', 'group:c#member@user:u'],
    ],
    ['parents', ['doc:d#parent@doc:b', 'doc:b#parent@doc:c', 'doc:c#viewer@user:u']],
    ['a computed relation', ['doc:d#parent@doc:b', 'doc:b#editor@user:u']],
  ])('ends at the depth bound, by way of %s', (_how, tuples) => {
    const usersAt = (depthMax: number): readonly string[] =>
      found(tuples, 'viewer', { depthMax }).users;
    expect([1, 2, 3, 4].map(usersAt)).toEqual([[], [], ['u'], ['u']]);
  });

  test('pays for each userset, for each tupleset of a rule and for 64 entries of a list', () => {
    expect(found(['doc:d#editor@user:u'], 'editor').reads).toBe(1);
    // Viewer with its tupleset, and editor.
    expect(found(['doc:d#viewer@user:u'], 'viewer').reads).toBe(2 + 1);
    const users = Array.from({ length: 1500 }, (_, i) => `doc:d#editor@user:u${i}`);
    const all = found(users, 'editor');
    expect([all.users.length, all.reads]).toEqual([1500, 1 + Math.floor(1500 / 64)]);
    const groups = Array.from({ length: 1500 }, (_, i) => `doc:d#editor@group:g${i}#member`);
    const some = found([...groups, 'group:g1499#member@user:u'], 'editor');
    expect([some.users, some.reads]).toEqual([['u'], 1 + Math.floor(1500 / 64) + 1500]);
    // An object itself holds nobody, so it is not visited.
    expect(found(['doc:d#editor@doc:e#'], 'editor').reads).toBe(1);
  });
});
