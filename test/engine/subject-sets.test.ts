import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { BACKSTOP_DEPTH, type EvaluationTask } from '../../src/engine/bound/evaluator-api.ts';
import { UNDETERMINED } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
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
          viewer: {},
          banned: {},
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
          both: { intersection: [{ computed: 'viewer' }, { computed: 'reader' }] },
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
const UNDECIDED = { conditionName: 'age_at_least', conditionParams: '{"min_age":18}' };
const undecided = (text: string): RelationTuple => ({ ...keyOf(text), ...UNDECIDED });

function taskOf(
  tuples: readonly (string | RelationTuple)[],
  question: string,
  depthMax = 256,
): EvaluationTask<boolean> {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  const options = { depthMax, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  return evaluator.startCheck({ ...keyOf(question), contextJson: '' }, 0, 100_000);
}
function done(task: EvaluationTask<boolean>): EvaluationTask<boolean> {
  expect(task.run(Infinity)).toBe('done');
  return task;
}
const ask = (tuples: readonly (string | RelationTuple)[], question: string): boolean =>
  done(taskOf(tuples, question)).result();

test('a member by an undecided tuple, whom a wildcard lets in besides, leaves a deny undecided, and no more', () => {
  const index = new TupleIndex();
  const tuples = [keyOf('group:g#member@*'), undecided('group:g#member@user:a')];
  for (const tuple of [...tuples, keyOf('doc:d#viewer@user:a')]) index.applyChange('insert', tuple);
  const options = { depthMax: 256, membershipBytesMax: 1 << 16 };
  const { general } = new Evaluator(index, MODEL, options, systemClock);
  const question = { ...keyOf('doc:d#viewer@group:g#member'), contextJson: '' };
  const task = general.startDecision(question, 0, 100_000);
  expect([task.run(Infinity), task.result()]).toEqual(['done', UNDETERMINED]);
  expect(done(general.startCheck(question, 0, 100_000)).result()).toBe(false);
});

describe('a set holds an object', () => {
  const members = ['group:g#member@user:a', 'group:g#member@user:b', 'group:g#member@user:c'];

  test('when one of its members does, whichever', () => {
    for (const user of ['a', 'b', 'c']) {
      const tuples = [...members, `doc:d#viewer@user:${user}`];
      expect([user, ask(tuples, 'doc:d#viewer@group:g#member')]).toEqual([user, true]);
      expect([user, ask(tuples, 'doc:d#reader@group:g#member')]).toEqual([user, true]);
      const banned = [...tuples, `doc:d#banned@user:${user}`];
      expect([user, ask(banned, 'doc:d#reader@group:g#member')]).toEqual([user, false]);
    }
    expect(ask([...members, 'doc:d#viewer@user:z'], 'doc:d#viewer@group:g#member')).toBe(false);
  });

  test('when everybody does, unless all of its members are banned', () => {
    const tuples = [...members, 'doc:d#viewer@*'];
    expect(ask(tuples, 'doc:d#viewer@group:g#member')).toBe(true);
    expect(ask(tuples, 'doc:d#reader@group:g#member')).toBe(true);
    const some = [...tuples, 'doc:d#banned@user:a', 'doc:d#banned@user:b'];
    expect(ask(some, 'doc:d#reader@group:g#member')).toBe(true);
    expect(ask([...some, 'doc:d#banned@user:c'], 'doc:d#reader@group:g#member')).toBe(false);
    expect(ask(['doc:d#viewer@*'], 'doc:d#viewer@group:none#member')).toBe(false);
  });

  test('by those who are members, not by those who are no more', () => {
    const tuples = ['club:c#member@user:a', 'club:c#member@user:b', 'doc:d#viewer@user:b'];
    expect(ask(tuples, 'doc:d#viewer@club:c#member')).toBe(true);
    expect(ask(tuples, 'doc:d#both@club:c#member')).toBe(true);
    expect(ask([...tuples, 'club:c#out@user:a'], 'doc:d#viewer@club:c#member')).toBe(true);
    expect(ask([...tuples, 'club:c#out@user:b'], 'doc:d#viewer@club:c#member')).toBe(false);
    const all = [...tuples, 'doc:d#viewer@user:a', 'club:c#out@user:a', 'club:c#out@user:b'];
    expect(ask(all, 'doc:d#viewer@club:c#member')).toBe(false);
  });

  test('not by members or holders that cannot be decided', () => {
    const [member, holder] = ['group:g#member@user:a', 'doc:d#viewer@user:a'];
    expect(ask([member, holder], 'doc:d#viewer@group:g#member')).toBe(true);
    expect(ask([undecided(member), holder], 'doc:d#viewer@group:g#member')).toBe(false);
    expect(ask([member, undecided(holder)], 'doc:d#viewer@group:g#member')).toBe(false);
    const everybody = [member, undecided('doc:d#viewer@*')];
    expect(ask(everybody, 'doc:d#viewer@group:g#member')).toBe(false);
  });

  test('and a grant tells of no bound that was met on the way', () => {
    const tuples = [
      'doc:d#viewer@group:x#member',
      'group:x#member@group:y#member',
      'group:q#member@user:q',
    ];
    const denied = done(taskOf(tuples, 'doc:d#viewer@group:q#member', 2));
    expect([denied.result(), denied.backstops]).toEqual([false, BACKSTOP_DEPTH]);
    const more = [...tuples, 'doc:d#viewer@user:a', 'group:z#member@user:a'];
    const granted = done(taskOf(more, 'doc:d#viewer@group:z#member', 2));
    expect([granted.result(), granted.backstops]).toEqual([true, 0]);
  });
});

test('a deny stays one when it is asked whether it is undecided', () => {
  const index = new TupleIndex();
  // The only tuple that names somebody in the set does not count, although everybody is in it by another one.
  for (const tuple of ['group:g#member@group:h#member', 'group:h#member@*']) {
    index.applyChange('insert', keyOf(tuple));
  }
  index.applyChange('insert', undecided('group:g#member@user:a'));
  const options = { depthMax: 256, membershipBytesMax: 1 << 16 };
  const evaluator = new Evaluator(index, MODEL, options, systemClock);
  const query = { ...keyOf('group:h#member@group:g#member'), contextJson: '' };
  const check = evaluator.startCheck(query, 0, 100_000);
  const decision = evaluator.over(index).startDecision(query, 0, 100_000);
  expect([check.run(Infinity), decision.run(Infinity)]).toEqual(['done', 'done']);
  expect([check.result(), decision.result()]).toEqual([false, UNDETERMINED]);
});

describe('work on a set', () => {
  const many = Array.from({ length: 2000 }, (_, i) => `group:g#member@user:u${i}`);

  test('ends without a look at the object where the set has no members', () => {
    const holders = Array.from({ length: 2000 }, (_, i) => `doc:d#viewer@user:u${i}`);
    const task = done(taskOf([...holders, 'group:g#x@user:a'], 'doc:d#viewer@group:g#member'));
    expect([task.result(), task.reads]).toEqual([false, 2]);
  });

  test('confirms nobody who is sure on both sides', () => {
    const task = done(taskOf([...many, 'doc:d#viewer@user:u1999'], 'doc:d#viewer@group:g#member'));
    // The object's own tuples, the members, and who holds the object.
    expect([task.result(), task.reads]).toEqual([true, 1 + (1 + Math.floor(2000 / 64)) + 1]);
  });

  test('confirms only who is met on both sides', () => {
    const tuples = [...many, 'doc:d#viewer@user:u1000', 'doc:d#banned@user:u1000'];
    const task = done(taskOf(tuples, 'doc:d#reader@group:g#member'));
    expect(task.result()).toBe(false);
    expect(task.reads).toBeLessThan(60);
  });

  test('ends its slices while members are looked through', () => {
    for (const relation of ['viewer', 'reader']) {
      const task = taskOf(
        [...many, 'doc:d#viewer@user:z', 'doc:d#banned@user:z'],
        `doc:d#${relation}@group:g#member`,
      );
      let slices = 0;
      while (task.run(0) === 'more') slices++;
      expect(task.result()).toBe(false);
      // Each member is looked at twice, 32 to a slice.
      expect([relation, slices > 120, slices < 140]).toEqual([relation, true, true]);
    }
  });
});
