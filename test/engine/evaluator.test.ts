import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  BACKSTOP_CYCLE,
  CHECK_ALLOWED,
  CHECK_DENIED,
  type EvaluationTask,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const upwards = (computed: string) => ({ tuple_to_userset: { tupleset: 'parent', computed } });
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: {
        relations: {
          parent: {},
          editor: {},
          owner: { union: [{ this: {} }, { computed: 'editor' }] },
          banned: {},
          viewer: { union: [{ this: {} }, { computed: 'owner' }, upwards('viewer')] },
          both: { intersection: [{ computed: 'viewer' }, { computed: 'editor' }] },
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
          kept: {
            exclusion: {
              include: { union: [{ computed: 'both' }, { computed: 'owner' }] },
              exclude: { computed: 'editor' },
            },
          },
          sum: {
            union: [
              { intersection: [{ computed: 'viewer' }, { computed: 'editor' }] },
              { exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } } },
            ],
          },
          guest: {},
          open: { union: [{ this: {} }, upwards('open')] },
        },
      },
    },
  }),
);
const READS = 10_000;
const UNDECIDED = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };

function shardOf(...tuples: readonly (string | RelationTuple)[]) {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  const options = { depthMax: 256, membershipBytesMax: 1 << 20 };
  return { index, evaluator: new Evaluator(index, MODEL, options, systemClock) };
}
type Shard = ReturnType<typeof shardOf>;

function whole<T>(task: EvaluationTask<T>): T {
  expect(task.run(Infinity)).toBe('done');
  return task.result();
}

/** `doc:d#viewer@user:u` as a question; the same text as a tuple's. */
function taskOf({ evaluator }: Shard, question: string, contextJson = ''): EvaluationTask<boolean> {
  return evaluator.startCheck({ ...keyOf(question), contextJson }, 0, READS);
}
const ask = (shard: Shard, question: string): boolean => whole(taskOf(shard, question));
const idsOf = ({ index }: Shard, id: string, relation: string, user: string) =>
  [
    index.entityId(index.nameId('doc'), id),
    index.nameId(relation),
    index.entityId(EMPTY_NAME, user),
  ] as const;

describe('a set on an object that no tuple mentions', () => {
  const shard = shardOf('doc:other#viewer@user:u', 'doc:wild#viewer@*');

  test.each([
    ['viewer', 'viewer', true],
    ['viewer', 'owner', true],
    ['viewer', 'editor', true],
    ['viewer', 'banned', false],
    ['editor', 'viewer', false],
    ['both', 'editor', true],
    ['both', 'owner', false],
    ['sum', 'viewer', true],
    ['sum', 'editor', true],
    ['sum', 'banned', false],
    ['reader', 'viewer', true],
    ['reader', 'owner', true],
    ['reader', 'banned', false],
    ['kept', 'owner', true],
    ['kept', 'editor', false],
    ['guest', 'guest', true],
    ['guest', 'viewer', false],
  ])('%s holds %s of the same object as the rule says: %s', (relation, held, wanted) => {
    expect(ask(shard, `doc:new#${relation}@doc:new#${held}`)).toBe(wanted);
    expect(ask(shard, `doc:new#${relation}@doc:newer#${held}`)).toBe(false);
  });

  test('is in nothing that has tuples, also where everybody is', () => {
    for (const object of ['other', 'wild']) {
      expect(ask(shard, `doc:${object}#viewer@doc:new#viewer`)).toBe(false);
      expect(ask(shard, `doc:${object}#viewer@none:new#viewer`)).toBe(false);
      expect(ask(shard, `doc:${object}#viewer@doc:other#none`)).toBe(false);
    }
  });

  test('names that neither tuples nor rules mention hold nothing', () => {
    expect(ask(shard, 'doc:new#some@doc:new#other')).toBe(false);
    expect(ask(shard, 'doc:other#some@doc:other#none')).toBe(false);
    expect(ask(shard, 'doc:other#some@doc:other#viewer')).toBe(false);
    expect(ask(shard, 'none:new#some@none:new#other')).toBe(false);
    expect(ask(shard, 'none:new#viewer@none:new#editor')).toBe(false);
    expect(ask(shard, 'none:new#some@none:new#some')).toBe(true);
  });
});

test('everybody as such is in nothing', () => {
  const shard = shardOf('doc:d#viewer@*');
  expect(ask(shard, 'doc:d#viewer@*')).toBe(false);
  expect(ask(shard, 'doc:d#viewer@user:anybody')).toBe(true);
});

describe('a tuple of the user and one of everybody', () => {
  const expired = { expiresAtUs: 0n };

  test('the user holds what is his own, whatever everybody holds perhaps', () => {
    const shard = shardOf('doc:d#viewer@user:u', { ...keyOf('doc:d#viewer@*'), ...UNDECIDED });
    for (const relation of ['viewer', 'reader']) {
      expect(ask(shard, `doc:d#${relation}@user:u`)).toBe(true);
      expect(ask(shard, `doc:d#${relation}@user:other`)).toBe(false);
    }
    expect(whole(taskOf(shard, 'doc:d#viewer@user:other', '{"age":18}'))).toBe(true);
  });

  test('a ban that cannot be decided bans, though that of everybody has ended', () => {
    const shard = shardOf(
      'doc:d#viewer@user:u',
      { ...keyOf('doc:d#banned@user:u'), ...UNDECIDED },
      { ...keyOf('doc:d#banned@*'), ...expired },
    );
    expect(ask(shard, 'doc:d#reader@user:u')).toBe(false);
    expect(whole(taskOf(shard, 'doc:d#reader@user:u', '{"age":17}'))).toBe(true);
  });

  test('everybody is banned, though the ban of the user cannot be decided or has ended', () => {
    for (const own of [UNDECIDED, expired]) {
      const shard = shardOf(
        'doc:d#viewer@user:u',
        { ...keyOf('doc:d#banned@user:u'), ...own },
        'doc:d#banned@*',
      );
      expect(ask(shard, 'doc:d#reader@user:u')).toBe(false);
      expect(whole(taskOf(shard, 'doc:d#reader@user:u', '{"age":17}'))).toBe(false);
    }
  });
});

describe('reads', () => {
  const groups = Array.from({ length: 100 }, (_, i) => `doc:d#guest@group:g${i}#member`);
  const readsOf = (task: EvaluationTask<unknown>): number => {
    whole(task);
    return task.reads ?? 0;
  };

  test('who is named by the object itself costs no look at its groups', () => {
    const shard = shardOf(...groups, 'doc:d#guest@user:u');
    expect(readsOf(taskOf(shard, 'doc:d#guest@user:u'))).toBe(1);
    expect(readsOf(taskOf(shard, 'doc:d#guest@user:other'))).toBe(1 + 1 + 100);
  });

  test('an object among the holders is not visited: it holds nobody', () => {
    const shard = shardOf('doc:d#guest@doc:e#', 'doc:e#viewer@user:u');
    expect(readsOf(taskOf(shard, 'doc:d#guest@user:u'))).toBe(1);
  });

  test('a list does not look who names the objects that it finds where no rule follows names', () => {
    const query = { namespace: 'doc', relation: 'guest', userId: 'u' };
    const shard = shardOf('doc:d#guest@user:u', 'doc:e#parent@doc:d#');
    expect(readsOf(shard.evaluator.startListObjects(query, 0, READS))).toBe(1);
    const viewed = shardOf('doc:d#viewer@user:u', 'doc:e#parent@doc:d#');
    const viewers = viewed.evaluator.startListObjects({ ...query, relation: 'viewer' }, 0, READS);
    expect(readsOf(viewers)).toBe(2);
    expect(viewers.result()).toEqual(['d', 'e']);
  });
});

test('a check by ids tells which relation took too many reads', () => {
  const shard = shardOf('doc:d#guest@group:g#member', 'group:g#member@group:h#member');
  const ids = idsOf(shard, 'd', 'guest', 'nobody');
  const task = shard.evaluator.startCheckIds(...ids, 0, 1);
  expect(() => task.run(Infinity)).toThrow(
    expect.objectContaining({
      reason: 'BUDGET_EXHAUSTED',
      metadata: { relation: 'doc#guest', limit: '1' },
    }),
  );
});

test('a check by ids of what nothing mentions is denied', () => {
  const shard = shardOf('doc:d#guest@*');
  const [object, relation, user] = idsOf(shard, 'd', 'guest', 'nobody');
  const answer = (...ids: [number, number, number]): boolean =>
    whole(shard.evaluator.startCheckIds(...ids, 0, READS));
  expect(answer(object, relation, user)).toBe(true);
  expect(answer(0, relation, user)).toBe(false);
  expect(answer(object, -1, user)).toBe(false);
  expect(answer(object, 0, user)).toBe(false);
});

test('the last hot check tells of its cycle and its reads, and the caches of what they take', () => {
  const shard = shardOf(
    ...['l', 'b', 'm'].map((parent) => `doc:a#parent@doc:${parent}`),
    'doc:b#parent@doc:c',
    'doc:c#parent@doc:b',
    'doc:l#open@user:v',
    'doc:m#open@user:v',
    'doc:l#guest@user:u',
  );
  const { evaluator } = shard;
  expect(evaluator.checkUser(...idsOf(shard, 'a', 'open', 'u'), 0, READS)).toBe(CHECK_DENIED);
  expect(evaluator.lastBackstops).toBe(BACKSTOP_CYCLE);
  expect(evaluator.lastReads).toBeGreaterThan(2);
  expect(evaluator.checkUser(...idsOf(shard, 'l', 'guest', 'u'), 0, READS)).toBe(CHECK_ALLOWED);
  expect(evaluator.lastBackstops).toBe(0);
  expect(evaluator.cacheBytes).toBe(evaluator.hot.bytes);
  expect(evaluator.cacheBytes).toBeGreaterThan(0);
});
