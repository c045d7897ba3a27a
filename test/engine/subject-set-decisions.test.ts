import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { UNDETERMINED, FALSE, TRUE } from '../../src/engine/bound/scope.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { RelationTuple } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const less = (include: unknown, computed: string) => ({
  exclusion: { include, exclude: { computed } },
});
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      doc: {
        relations: { viewer: {}, banned: {}, reader: less({ computed: 'viewer' }, 'banned') },
      },
      group: { relations: { member: {} } },
      club: { relations: { out: {}, member: less({ this: {} }, 'out') } },
    },
  }),
);
const undecided = (text: string): RelationTuple => ({
  ...keyOf(text),
  conditionName: 'age_at_least',
  conditionParams: '{"min_age":18}',
});
type Tuples = readonly (string | RelationTuple)[];

function evaluatorOf(tuples: Tuples, depthMax = 256): Evaluator['general'] {
  const index = new TupleIndex();
  for (const tuple of tuples) {
    index.applyChange('insert', typeof tuple === 'string' ? keyOf(tuple) : tuple);
  }
  const options = { depthMax, membershipBytesMax: 1 << 16 };
  return new Evaluator(index, MODEL, options, systemClock).general;
}

/** TRUE, FALSE or UNDETERMINED; the check says the same but for what is undecided, which it denies. */
function decided(tuples: Tuples, question: string, depthMax = 256): number {
  const general = evaluatorOf(tuples, depthMax);
  const query = { ...keyOf(question), contextJson: '' };
  const [decision, check] = [
    general.startDecision(query, 0, 100_000),
    general.startCheck(query, 0, 100_000),
  ];
  expect([decision.run(Infinity), check.run(Infinity)]).toEqual(['done', 'done']);
  const value = decision.result();
  expect(check.result()).toBe(value === TRUE);
  return value;
}

describe('whether a set holds an object', () => {
  const [member, holder] = ['club:c#member@user:a', 'doc:d#viewer@user:a'];

  test.each([
    ['a member holds it', [member, holder], 'viewer', TRUE],
    ['nobody holds it', [member], 'viewer', FALSE],
    ['the set has no member', [holder], 'viewer', FALSE],
    ['its only member is out', [member, holder, 'club:c#out@user:a'], 'viewer', FALSE],
    ['its only holder is banned', [member, holder, 'doc:d#banned@user:a'], 'reader', FALSE],
    ['another one is banned', [member, holder, 'doc:d#banned@user:b'], 'reader', TRUE],
    [
      'whether the member is out is open',
      [member, holder, undecided('club:c#out@user:a')],
      'viewer',
      UNDETERMINED,
    ],
    [
      'whether the holder is banned is open',
      [member, holder, undecided('doc:d#banned@user:a')],
      'reader',
      UNDETERMINED,
    ],
    ['whether the member is one is open', [undecided(member), holder], 'viewer', UNDETERMINED],
    ['whether the member holds it is open', [member, undecided(holder)], 'viewer', UNDETERMINED],
    [
      'whether everybody holds it is open',
      [member, undecided('doc:d#viewer@*')],
      'viewer',
      UNDETERMINED,
    ],
    ['both are open', [undecided(member), undecided(holder)], 'viewer', UNDETERMINED],
    [
      'one is open, of whom the other is certain not to be',
      [undecided(member), holder, 'club:c#out@user:a'],
      'viewer',
      FALSE,
    ],
    [
      'an open one is banned for sure',
      [member, undecided(holder), 'doc:d#banned@user:a'],
      'reader',
      FALSE,
    ],
    [
      'whether the set is included is open',
      [undecided('doc:d#viewer@club:c#member')],
      'viewer',
      UNDETERMINED,
    ],
    ['the set is included', ['doc:d#viewer@club:c#member'], 'viewer', TRUE],
  ] as const)('%s', (_what, tuples, relation, value) => {
    expect(decided(tuples, `doc:d#${relation}@club:c#member`)).toBe(value);
    // Others in the set, and others who hold the object, change nothing of it.
    const others = ['x', 'y', 'z'].flatMap((user) => [
      `club:c#member@user:${user}1`,
      `doc:d#viewer@user:${user}2`,
    ]);
    const more = decided([...others, ...tuples], `doc:d#${relation}@club:c#member`);
    expect(more).toBe(value);
  });

  test('one of many decides, whichever it is', () => {
    const users = ['a', 'b', 'c', 'd'];
    for (const one of users) {
      const tuples = users.flatMap((user) => [
        `club:c#member@user:${user}`,
        `doc:d#viewer@user:${user}`,
      ]);
      const rest = users.filter((user) => user !== one).map((user) => `club:c#out@user:${user}`);
      const question = 'doc:d#viewer@club:c#member';
      expect([one, decided([...tuples, ...rest], question)]).toEqual([one, TRUE]);
      const open = [...tuples, ...rest, undecided(`club:c#out@user:${one}`)];
      expect([one, decided(open, question)]).toEqual([one, UNDETERMINED]);
      const out = [...tuples, ...rest, `club:c#out@user:${one}`];
      expect([one, decided(out, question)]).toEqual([one, FALSE]);
    }
  });

  test('beyond the depth bound it is open', () => {
    const tuples = [
      'doc:d#viewer@group:g#member',
      'group:g#member@group:h#member',
      'group:h#member@user:a',
    ];
    const asked = [...tuples, 'group:s#member@user:a'];
    const values = [2, 3, 4].map((depthMax) =>
      decided(asked, 'doc:d#viewer@group:s#member', depthMax),
    );
    expect(values).toEqual([UNDETERMINED, TRUE, TRUE]);
  });
});

describe('the search of what is open', () => {
  const users = Array.from({ length: 300 }, (_, i) => `club:c#member@user:u${i}`);
  const query = { ...keyOf('doc:d#viewer@club:c#member'), contextJson: '' };

  test('ends with the budget: the deny is certain, and what might be open is said to be', () => {
    const general = evaluatorOf([...users, 'doc:d#viewer@user:z']);
    const check = general.startCheck(query, 0, 100_000);
    expect([check.run(Infinity), check.result()]).toEqual(['done', false]);
    const values = new Set<number>();
    const least = check.reads ?? 0;
    expect(least).toBeGreaterThan(0);
    for (let reads = least; reads < least * 3; reads++) {
      const decision = general.startDecision(query, 0, reads);
      expect(decision.run(Infinity)).toBe('done');
      values.add(decision.result());
    }
    expect(values).toEqual(new Set([UNDETERMINED, FALSE]));
  });

  test('is none of what ends the deny itself', () => {
    const general = evaluatorOf([...users, 'doc:d#viewer@user:z']);
    const check = general.startCheck(query, 0, 100_000);
    check.run(Infinity);
    const reads = check.reads ?? 0;
    expect(reads).toBeGreaterThan(1);
    for (let budget = 1; budget < reads; budget++) {
      const decision = general.startDecision(query, 0, budget);
      expect(() => decision.run(Infinity)).toThrow(/exceeded the read budget/);
    }
  });
});

test('slices end while it is looked whether the set is included', () => {
  const groups = Array.from(
    { length: 1_000 },
    (_, i) => `group:g${i}#member@group:g${i + 1}#member`,
  );
  const general = evaluatorOf(
    ['doc:d#viewer@group:g0#member', 'group:none#member@user:a', ...groups],
    2_000,
  );
  const query = { ...keyOf('doc:d#viewer@group:none#member'), contextJson: '' };
  const task = general.startCheck(query, 0, 100_000);
  let slices = 0;
  while (task.run(0) === 'more') slices++;
  expect(task.result()).toBe(false);
  // A look at the clock for each eight usersets.
  expect(slices).toBeGreaterThan(100);
});
