import { describe, expect, test } from 'vitest';
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import {
  BACKSTOP_BUDGET,
  CHECK_ALLOWED,
  CHECK_DENIED,
  CHECK_GENERAL,
  type EvaluationTask,
} from '../../src/engine/bound/evaluator-api.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import { parseModel } from '../../src/model/namespace/namespace-model.ts';
import type { Subject } from '../../src/model/relation-tuple.ts';
import { EMPTY_NAME } from '../../src/model/tuple-reader.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { keyOf } from '../support/tuple-text.ts';

const upwards = (computed: string) => ({ tuple_to_userset: { tupleset: 'parent', computed } });
const MODEL = parseModel(
  JSON.stringify({
    schema_version: 1,
    namespaces: {
      group: { relations: { member: {} } },
      doc: {
        relations: {
          parent: {},
          viewer: {},
          banned: {},
          reader: {
            exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } },
          },
          both: { intersection: [{ computed: 'viewer' }, { computed: 'banned' }] },
          clear: {
            exclusion: {
              include: { union: [{ this: {} }, upwards('clear')] },
              exclude: { computed: 'banned' },
            },
          },
        },
      },
    },
  }),
);

/** Groups `name`0 ⊃ `name`1 ⊃ …; the last one holds the members. */
function nest(name: string, levels: number, members: readonly string[]): string[] {
  const tuples = members.map((member) => `group:${name}${levels - 1}#member@user:${member}`);
  for (let i = 0; i + 1 < levels; i++) {
    tuples.push(`group:${name}${i}#member@group:${name}${i + 1}#member`);
  }
  return tuples;
}

function shardOf(tuples: readonly string[], depthMax = 256) {
  const index = new TupleIndex();
  for (const tuple of tuples) index.applyChange('insert', keyOf(tuple));
  const options = { depthMax, membershipBytesMax: 1 << 20 };
  return { index, evaluator: new Evaluator(index, MODEL, options, systemClock) };
}

const subjectOf = (text: string): Subject => keyOf(`doc:x#x@${text}`).subject;
const READS = 100_000;
type Start<T> = (evaluator: Evaluator, reads: number) => EvaluationTask<T>;

const check =
  (object: string, relation: string, subject: string): Start<boolean> =>
  (evaluator, reads) => {
    const input = { namespace: 'doc', objectId: object, relation, subject: subjectOf(subject) };
    return evaluator.startCheck({ ...input, contextJson: '' }, 0, reads);
  };
const list =
  (relation: string, userId: string): Start<readonly string[]> =>
  (evaluator, reads) =>
    evaluator.startListObjects({ namespace: 'doc', relation, userId }, 0, reads);

/** The answer in slices that end as soon as they may, and how often one ended before the answer. */
function sliced<T>(task: EvaluationTask<T>): { answer: T; slices: number } {
  let slices = 0;
  while (task.run(0) === 'more') slices++;
  return { answer: task.result(), slices };
}

function whole<T>(task: EvaluationTask<T>): T {
  expect(task.run(Infinity)).toBe('done');
  return task.result();
}

const DOCS = Array.from({ length: 12 }, (_, i) => `d${i}`);
/** Every third document bans somebody who is 60 groups away; all others ban a group without him. */
const WORLD = [
  ...nest('bad', 60, ['bad']),
  ...nest('good', 60, ['nobody']),
  ...DOCS.flatMap((id, i) => [
    `doc:${id}#viewer@user:bad`,
    `doc:${id}#viewer@user:reader`,
    `doc:${id}#banned@group:${i % 3 === 0 ? 'bad' : 'good'}0#member`,
    ...(i > 0 ? [`doc:${id}#parent@doc:d${i - 1}`] : []),
  ]),
  'group:team#member@user:stranger',
  'group:team#member@user:bad',
];

describe('slices', () => {
  const { evaluator } = shardOf(WORLD);
  const notBanned = DOCS.filter((_, i) => i % 3 !== 0).toSorted();

  test.each([
    ['reader', 'bad', notBanned],
    ['reader', 'reader', DOCS.toSorted()],
    ['reader', 'stranger', []],
    ['both', 'bad', DOCS.filter((_, i) => i % 3 === 0).toSorted()],
    ['both', 'reader', []],
    ['viewer', 'bad', DOCS.toSorted()],
  ])('a list of %s of %s is the same however often it is interrupted', (relation, user, wanted) => {
    expect(whole(list(relation, user)(evaluator, READS))).toEqual(wanted);
    const { answer, slices } = sliced(list(relation, user)(evaluator, READS));
    expect(answer).toEqual(wanted);
    // Confirmations themselves are interrupted, not only what lies between them; the groups are looked at once.
    if (relation !== 'viewer' && wanted.length > 0) {
      expect(slices).toBeGreaterThan(DOCS.length * 2);
    }
  });

  test('a check is the same however often it is interrupted', () => {
    for (const [i, id] of DOCS.entries()) {
      for (const [relation, wanted] of [
        ['reader', i % 3 !== 0],
        ['both', i % 3 === 0],
      ] as const) {
        const { answer, slices } = sliced(check(id, relation, 'user:bad')(evaluator, READS));
        expect([id, relation, answer]).toEqual([id, relation, wanted]);
        expect(slices).toBeGreaterThan(5);
        expect(whole(check(id, relation, 'user:bad')(evaluator, READS))).toBe(wanted);
      }
    }
  });

  test('a check of a set is the same however often it is interrupted', () => {
    for (const [i, id] of DOCS.entries()) {
      for (const [relation, subject, wanted] of [
        ['reader', 'group:team#member', i % 3 !== 0],
        ['both', 'group:team#member', i % 3 === 0],
        ['banned', 'group:bad59#member', i % 3 === 0],
        ['viewer', 'group:good0#member', false],
      ] as const) {
        const { answer } = sliced(check(id, relation, subject)(evaluator, READS));
        expect([id, relation, subject, answer]).toEqual([id, relation, subject, wanted]);
        expect(whole(check(id, relation, subject)(evaluator, READS))).toBe(wanted);
      }
    }
    const { slices } = sliced(check('d1', 'reader', 'group:team#member')(evaluator, READS));
    expect(slices).toBeGreaterThan(5);
  });

  test('a tree is the same however often it is interrupted', () => {
    const root = { namespace: 'doc', objectId: 'd11', relation: 'clear' };
    const tree = whole(evaluator.startExpand(root, 0, READS));
    const { answer, slices } = sliced(evaluator.startExpand(root, 0, READS));
    expect(answer).toEqual(tree);
    expect(slices).toBeGreaterThan(0);
    let depth = 0;
    for (let node = answer; node.type === 'exclusion'; depth++) {
      const { include } = node;
      const above = include.type === 'union' ? include.children[1] : undefined;
      const next = above?.type === 'union' ? above.children[0] : undefined;
      if (next === undefined) break;
      node = next;
    }
    expect(depth).toBe(11);
  });

  test('several confirmations of one list use what the earlier ones found', () => {
    // One ban for all: found once, 60 reads; without memory each document would pay for it.
    const shared = shardOf([
      ...nest('bad', 60, ['bad']),
      ...DOCS.flatMap((id) => [`doc:${id}#viewer@user:bad`, `doc:${id}#banned@group:bad0#member`]),
    ]);
    expect(whole(list('both', 'bad')(shared.evaluator, READS))).toEqual(DOCS.toSorted());
  });
});

describe('budgets', () => {
  const { evaluator } = shardOf(WORLD);
  const cases: readonly (readonly [string, Start<unknown>])[] = [
    ['a check through an exclusion', check('d0', 'reader', 'user:bad')],
    ['a check through an intersection', check('d0', 'both', 'user:bad')],
    ['a check of a stranger', check('d1', 'both', 'user:stranger')],
    ['a check of a set', check('d1', 'reader', 'group:team#member')],
    ['a list that is confirmed', list('reader', 'bad')],
    ['a list without confirmations', list('viewer', 'reader')],
    [
      'a tree',
      (one, reads) =>
        one.startExpand({ namespace: 'doc', objectId: 'd11', relation: 'clear' }, 0, reads),
    ],
  ];

  test.each(cases)('%s ends at its budget, not before and not beyond', (_what, start) => {
    const task = start(evaluator, READS);
    const answer = whole(task);
    const reads = task.reads ?? 0;
    expect(reads).toBeGreaterThan(0);
    const enough = start(evaluator, reads);
    expect(whole(enough)).toEqual(answer);
    expect((enough.backstops & BACKSTOP_BUDGET) === 0).toBe(true);
    for (const budget of [reads - 1, reads >> 1, 0]) {
      const short = start(evaluator, budget);
      expect(() => short.run(Infinity)).toThrow(
        expect.objectContaining({
          reason: 'BUDGET_EXHAUSTED',
          metadata: { relation: expect.stringMatching(/^doc#\w+$/) as string, limit: `${budget}` },
        }),
      );
      expect(short.backstops).toBe(BACKSTOP_BUDGET);
      expect(short.reads).toBeGreaterThan(budget);
    }
  });

  /** Reads of a whole evaluation. */
  function readsOf(tuples: readonly string[], start: Start<unknown>): number {
    const task = start(shardOf(tuples).evaluator, READS);
    whole(task);
    return task.reads ?? 0;
  }
  const holders = (count: number, relation = 'viewer'): string[] =>
    Array.from({ length: count }, (_, i) => `doc:d#${relation}@group:g${i}#member`);

  test('a userset is one read, and so are 64 entries of a list of sets', () => {
    const of = (count: number): number => readsOf(holders(count), check('d', 'viewer', 'user:u'));
    expect(of(1)).toBe(2);
    expect(of(63)).toBe(64);
    expect(of(64)).toBe(1 + 64 + 1);
    expect(of(300)).toBe(1 + 300 + 4);
  });

  test('each tupleset of a rule is a read, too', () => {
    const tuples = ['doc:d#clear@user:u'];
    // The rule itself, its tuples with its tupleset, the ban and what it is computed from.
    const reads = readsOf(tuples, check('d', 'clear', 'user:u'));
    expect(reads).toBe(4);
    expect(readsOf([...tuples, 'doc:d#parent@doc:e'], check('d', 'clear', 'user:v'))).toBe(4);
  });

  test('a list of objects pays for the holders that it reads', () => {
    const docs = (count: number): string[] =>
      Array.from({ length: count }, (_, i) => `doc:d${i}#viewer@user:u`);
    expect(readsOf(docs(1), list('viewer', 'u'))).toBe(1);
    expect(readsOf(docs(64), list('viewer', 'u'))).toBe(2);
    expect(readsOf(docs(640), list('viewer', 'u'))).toBe(11);
  });

  test('the hot check counts what it reads, and gives up within its budget', () => {
    const { index, evaluator: hot } = shardOf([
      'doc:d#viewer@group:a0#member',
      'doc:d#viewer@doc:e#viewer',
      'doc:e#viewer@user:u',
      ...nest('a', 5, ['v']),
    ]);
    const entity = index.entityId(index.nameId('doc'), 'd');
    const answer = (user: string, reads: number): number => {
      const id = index.entityId(EMPTY_NAME, user);
      return hot.checkUser(entity, index.nameId('viewer'), id, 0, reads);
    };
    for (const [user, wanted] of [
      ['u', CHECK_ALLOWED],
      ['nobody', CHECK_DENIED],
    ] as const) {
      expect(answer(user, READS)).toBe(wanted);
      const reads = hot.lastReads;
      expect(reads).toBeGreaterThan(0);
      expect(answer(user, reads)).toBe(wanted);
      expect(answer(user, reads - 1)).toBe(CHECK_GENERAL);
    }
  });
});

describe('the depth bound', () => {
  test.each([4, 5, 6, 7, 20])(
    'of %i nodes holds for the hot check and for the general one',
    (max) => {
      for (let levels = 1; levels < max + 4; levels++) {
        const { index, evaluator } = shardOf(
          ['doc:d#viewer@group:g0#member', ...nest('g', levels, ['u'])],
          max,
        );
        const entity = index.entityId(index.nameId('doc'), 'd');
        const user = index.entityId(EMPTY_NAME, 'u');
        const relation = index.nameId('viewer');
        const wanted = levels + 1 <= max;
        const general = whole(evaluator.startCheckIds(entity, relation, user, 0, READS));
        expect([levels, general]).toEqual([levels, wanted]);
        for (let round = 0; round < 2; round++) {
          const code = evaluator.checkUser(entity, relation, user, 0, READS);
          if (code !== CHECK_GENERAL) {
            expect([levels, code]).toEqual([levels, wanted ? CHECK_ALLOWED : CHECK_DENIED]);
          }
        }
        expect(whole(list('viewer', 'u')(evaluator, READS))).toEqual(wanted ? ['d'] : []);
      }
    },
  );
});

describe('long lists', () => {
  /** A group of so many groups that they take several steps; the user is in the last of them. */
  const many = (name: string): string[] => [
    ...Array.from({ length: 700 }, (_, i) => `group:${name}#member@group:${name}-${i}#member`),
    `group:${name}-699#member@user:u`,
  ];
  const conditional = (text: string) => ({
    ...keyOf(text),
    conditionName: 'age_at_least',
    conditionParams: '{"min_age":18}',
  });
  const ask = (evaluator: Evaluator, relation: string, contextJson: string): boolean => {
    const subject = subjectOf('user:u');
    const input = { namespace: 'doc', objectId: 'd', relation, subject, contextJson };
    return whole(evaluator.startCheck(input, 0, READS));
  };

  test('behind a condition without its input hold nobody, to their end', () => {
    const { index, evaluator } = shardOf([...many('all'), 'doc:d#viewer@group:other#member']);
    expect(ask(evaluator, 'viewer', '')).toBe(false);
    index.applyChange('insert', conditional('doc:d#viewer@group:all#member'));
    expect(ask(evaluator, 'viewer', '')).toBe(false);
    expect(ask(evaluator, 'viewer', '{"age":17}')).toBe(false);
    expect(ask(evaluator, 'viewer', '{"age":18}')).toBe(true);
    for (const none of ['[]', 'null', '18', '{', '{"age":18']) {
      expect([none, ask(evaluator, 'viewer', none)]).toEqual([none, false]);
    }
    expect(whole(list('viewer', 'u')(evaluator, READS))).toEqual([]);
  });

  test('a set with a ban of its own, behind a condition without its input, holds nobody', () => {
    const { index, evaluator } = shardOf(['doc:e#viewer@user:u', 'doc:f#viewer@user:u']);
    index.applyChange('insert', conditional('doc:d#viewer@doc:e#reader'));
    expect(ask(evaluator, 'viewer', '')).toBe(false);
    expect(ask(evaluator, 'viewer', '{"age":17}')).toBe(false);
    expect(ask(evaluator, 'viewer', '{"age":18}')).toBe(true);
    expect(whole(list('viewer', 'u')(evaluator, READS))).toEqual(['e', 'f']);
    index.applyChange('insert', keyOf('doc:d#viewer@doc:f#reader'));
    expect(ask(evaluator, 'viewer', '')).toBe(true);
  });

  test('each entry by its own condition', () => {
    const { index, evaluator } = shardOf(['doc:d#viewer@group:all#member', ...many('all')]);
    expect(ask(evaluator, 'viewer', '')).toBe(true);
    index.applyChange('insert', conditional('group:all#member@group:all-699#member'));
    expect(ask(evaluator, 'viewer', '')).toBe(false);
    expect(ask(evaluator, 'viewer', '{"age":18}')).toBe(true);
    index.applyChange('insert', {
      ...keyOf('group:all#member@group:all-699#member'),
      expiresAtUs: 0n,
    });
    expect(ask(evaluator, 'viewer', '{"age":18}')).toBe(false);
  });

  test('of a ban ban, undecided ones, too', () => {
    const tuples = ['doc:d#viewer@user:u', 'doc:d#viewer@user:v', ...many('all')];
    const { index, evaluator } = shardOf(tuples);
    expect(ask(evaluator, 'reader', '')).toBe(true);
    index.applyChange('insert', keyOf('doc:d#banned@group:all#member'));
    expect(ask(evaluator, 'reader', '')).toBe(false);
    expect(whole(check('d', 'reader', 'user:v')(evaluator, READS))).toBe(true);
    index.applyChange('insert', conditional('doc:d#banned@group:all#member'));
    expect(ask(evaluator, 'reader', '')).toBe(false);
    expect(ask(evaluator, 'reader', '{"age":18}')).toBe(false);
    expect(ask(evaluator, 'reader', '{"age":17}')).toBe(true);
  });

  test.each(['p699', 'p0'])('of a circle with a ban in it, closed by %s', (closing) => {
    const parents = Array.from({ length: 700 }, (_, i) => `doc:d#parent@doc:p${i}`);
    const { index, evaluator } = shardOf([...parents, `doc:${closing}#parent@doc:d`]);
    expect(ask(evaluator, 'clear', '')).toBe(false);
    index.applyChange('insert', keyOf('doc:p698#clear@user:u'));
    expect(ask(evaluator, 'clear', '')).toBe(true);
    index.applyChange('insert', keyOf('doc:p698#banned@user:u'));
    expect(ask(evaluator, 'clear', '')).toBe(false);
    index.applyChange('insert', conditional('doc:p698#banned@user:u'));
    expect(ask(evaluator, 'clear', '')).toBe(false);
    expect(ask(evaluator, 'clear', '{"age":17}')).toBe(true);
  });
});

describe('a circle that is entered by an undecided condition', () => {
  test.each([
    ['by the parent', 'doc:d#parent@doc:p', 'doc:p#clear@user:u'],
    ['by a grant', 'doc:d#clear@doc:p#clear', 'doc:p#clear@user:u'],
    ['at its end', 'doc:p#clear@user:u', 'doc:d#parent@doc:p'],
    ['by a grant of a group', 'doc:p#clear@group:g#member', 'doc:d#parent@doc:p'],
  ])('holds nobody: %s', (_how, undecided, sure) => {
    const { index, evaluator } = shardOf([
      sure,
      'doc:p#parent@doc:d',
      'doc:d#parent@doc:q',
      'doc:q#parent@doc:d',
      'group:g#member@user:u',
    ]);
    index.applyChange('insert', {
      ...keyOf(undecided),
      conditionName: 'age_at_least',
      conditionParams: '{"min_age":18}',
    });
    const ask = (contextJson: string): boolean => {
      const subject = subjectOf('user:u');
      const input = { namespace: 'doc', objectId: 'd', relation: 'clear', subject, contextJson };
      return whole(evaluator.startCheck(input, 0, READS));
    };
    expect([ask(''), ask('[]'), ask('{"age":17}'), ask('{"age":18}')]).toEqual([
      false,
      false,
      false,
      true,
    ]);
  });
});

describe('what was found on one path', () => {
  const [near, far] = [{ computed: 'near' }, { computed: 'far' }];
  const model = parseModel(
    JSON.stringify({
      namespaces: {
        doc: {
          relations: {
            near: {},
            far: {},
            both: { intersection: [near, far] },
            turned: { intersection: [far, near] },
            less: { exclusion: { include: near, exclude: far } },
          },
        },
        gate: {
          relations: {
            banned: {},
            pass: { exclusion: { include: { this: {} }, exclude: { computed: 'banned' } } },
          },
        },
      },
    }),
  );

  test.each(['both', 'turned'])(
    'counts on another only as far as the depth reaches: %s',
    (relation) => {
      const [height, length] = [5, 4];
      const tuples = [
        ...nest('h', height, ['u']),
        'gate:x#pass@group:h0#member',
        'doc:d#near@gate:x#pass',
        'doc:d#far@group:k0#member',
        ...nest('k', length, []),
        `group:k${length - 1}#member@gate:x#pass`,
      ];
      const index = new TupleIndex();
      for (const tuple of tuples) index.applyChange('insert', keyOf(tuple));
      for (let depthMax = 1; depthMax < height + length + 8; depthMax++) {
        const evaluator = new Evaluator(
          index,
          model,
          { depthMax, membershipBytesMax: 1 << 16 },
          systemClock,
        );
        const answer = whole(check('d', relation, 'user:u')(evaluator, READS));
        // The object's relation, `far`, the groups that lead to the gate, the gate, its groups.
        expect([depthMax, answer]).toEqual([depthMax, depthMax >= 3 + length + height]);
        expect(whole(list(relation, 'u')(evaluator, READS))).toEqual(answer ? ['d'] : []);
        const banned = whole(check('d', 'less', 'user:u')(evaluator, READS));
        expect([depthMax, banned]).toEqual([depthMax, false]);
      }
    },
  );

  test('as part of a grant is not what it is as part of a ban: everybody is banned, sets included', () => {
    const index = new TupleIndex();
    for (const tuple of [
      'doc:d#near@gate:x#pass',
      'doc:d#near@gate:y#pass',
      'gate:x#pass@*',
      'gate:y#pass@group:s#member',
      'group:s#member@user:u',
    ]) {
      index.applyChange('insert', keyOf(tuple));
    }
    const evaluator = new Evaluator(
      index,
      model,
      { depthMax: 256, membershipBytesMax: 1 << 16 },
      systemClock,
    );
    const ask = (): boolean => whole(check('d', 'less', 'group:s#member')(evaluator, READS));
    expect(ask()).toBe(true);
    index.applyChange('insert', keyOf('doc:d#far@gate:x#pass'));
    expect(ask()).toBe(false);
    index.applyChange('delete', keyOf('gate:x#pass@*'));
    expect(ask()).toBe(true);
  });
});
