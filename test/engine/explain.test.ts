import { describe, expect, test } from 'vitest';
import { ExplainRun } from '../../src/engine/explain/explain-run.ts';
import type { Explanation } from '../../src/model/explanation.ts';
import type { RelationTuple, Subject } from '../../src/model/relation-tuple.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { depthOf, sizeOf } from '../reference/reference-derivations.ts';
import { NOW_MS } from '../reference/worlds.ts';
import { type ExplainBounds, explainedWorld } from './explain-support.ts';

const THIS = {};
const SOON_US = BigInt(NOW_MS) * 1000n + 5_000_001n;

/** `doc:plan#viewer@ann` or `…@group:eng#member`. */
function tuple(text: string, payload: Partial<RelationTuple> = {}): RelationTuple {
  const [left = '', right = ''] = text.split('@');
  const [object = '', relation = ''] = left.split('#');
  const [namespace = '', objectId = ''] = object.split(':');
  return { namespace, objectId, relation, subject: subjectOf(right), ...payload };
}

function subjectOf(text: string): Subject {
  if (!text.includes(':')) return { kind: 'user', userId: text };
  const [object = '', relation = ''] = text.split('#');
  const [namespace = '', objectId = ''] = object.split(':');
  return { kind: 'set', namespace, objectId, relation };
}

function explain(
  relations: object,
  tuples: readonly RelationTuple[],
  asked: string,
  bounds: ExplainBounds = {},
): Explanation {
  const modelJson = JSON.stringify({ namespaces: { doc: { relations } } });
  const { namespace, objectId, relation, subject } = tuple(asked);
  const query = { namespace, objectId, relation, subject, contextJson: '' };
  return explainedWorld({ modelJson, tuples }, bounds).explain(query);
}

const kindsOf = ({ obstacles }: Explanation): string[] => obstacles.map(({ kind }) => kind);
const remediesOf = ({ remedies }: Explanation): string[] =>
  remedies.map(({ namespace, objectId, relation, subject }) => {
    const who = subject.kind === 'user' ? subject.userId : JSON.stringify(subject);
    return `${namespace}:${objectId}#${relation}@${who}`;
  });

test('remedies that follow from what was read are found without reading more', () => {
  const relations = {
    banned: THIS,
    viewer: {
      exclusion: {
        include: { union: [THIS, { computed: 'editor' }] },
        exclude: { computed: 'banned' },
      },
    },
    editor: THIS,
  };
  const { namespace, objectId, relation, subject } = tuple('doc:plan#viewer@ann');
  const query = { namespace, objectId, relation, subject, contextJson: '' };
  const world = {
    modelJson: JSON.stringify({ namespaces: { doc: { relations } } }),
    tuples: [tuple('doc:plan#editor@group:eng#member'), tuple('group:other#member@ann')],
  };
  const readsOf = (
    remediesMax: number,
    contextual: readonly RelationTuple[] = [],
  ): readonly [number, number] => {
    const { ground } = explainedWorld(world, { contextual });
    const task = new ExplainRun(ground, query, remediesMax, systemClock);
    expect(task.run(Infinity)).toBe('done');
    return [task.result().remedies.length, task.reads];
  };
  const [none, reads] = readsOf(0);
  expect(none).toBe(0);
  expect(readsOf(10)).toEqual([3, reads]);
  // What the request carries counts before what is stored: then only an evaluation can tell.
  const expired = tuple('doc:plan#editor@ann', { expiresAtUs: 1n });
  const [remedies, more] = readsOf(10, [expired]);
  expect(remedies).toBe(2);
  expect(more).toBeGreaterThan(reads);
});

describe('an allow', () => {
  const pardons = {
    banned: THIS,
    pardoned: THIS,
    viewer: {
      exclusion: {
        include: THIS,
        exclude: {
          exclusion: { include: { computed: 'banned' }, exclude: { computed: 'pardoned' } },
        },
      },
    },
  };
  const banned = [tuple('doc:plan#viewer@ann'), tuple('doc:plan#banned@ann')];

  test('ends when a pardon does on which the refutation of a ban rests', () => {
    const pardon = tuple('doc:plan#pardoned@ann', { expiresAtUs: SOON_US });
    const found = explain(pardons, [...banned, pardon], 'doc:plan#viewer@ann');
    expect(found).toMatchObject({ allowed: true, holdsUntilUs: SOON_US });
  });

  test('does not end with a tuple on which nothing rests', () => {
    const pardon = tuple('doc:plan#pardoned@ann');
    const other = tuple('doc:plan#banned@group:x#member', { expiresAtUs: SOON_US });
    const found = explain(pardons, [...banned, pardon, other], 'doc:plan#viewer@ann');
    expect(found).toMatchObject({ allowed: true, holdsUntilUs: undefined });
  });

  test('of several ways of one length is the one that holds longest', () => {
    const tuples = [
      tuple('doc:plan#viewer@group:a#member', { expiresAtUs: SOON_US }),
      tuple('doc:plan#viewer@group:b#member', { expiresAtUs: SOON_US + 1n }),
      tuple('group:a#member@ann'),
      tuple('group:b#member@ann'),
    ];
    const found = explain({ viewer: THIS }, tuples, 'doc:plan#viewer@ann');
    expect(found.holdsUntilUs).toBe(SOON_US + 1n);
  });

  test('whose smallest tree is too deep is a larger one', () => {
    // Five in a row, or an intersection of two of three levels, which has more nodes.
    const relations = {
      a: THIS,
      b: THIS,
      viewer: { union: [THIS, { intersection: [{ computed: 'a' }, { computed: 'b' }] }] },
    };
    const texts = [
      'doc:plan#viewer@group:1#member',
      'group:1#member@group:2#member',
      'group:2#member@group:3#member',
      'group:3#member@ann',
      'doc:plan#a@group:x#member',
      'doc:plan#b@group:x#member',
      'group:x#member@ann',
    ];
    const tuples = texts.map((text) => tuple(text));
    const asked = 'doc:plan#viewer@ann';
    const free = explain(relations, tuples, asked).derivation;
    const bound = explain(relations, tuples, asked, { depthMax: 3 }).derivation;
    const shapes = [free, bound].map((tree) => tree && [sizeOf(tree), depthOf(tree)]);
    expect(shapes).toEqual([
      [4, 4],
      [7, 3],
    ]);
  });
});

describe('a deny', () => {
  test('by a cycle through a ban', () => {
    const relations = {
      banned: { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
      viewer: { exclusion: { include: THIS, exclude: { computed: 'banned' } } },
    };
    const tuples = [tuple('doc:plan#viewer@ann'), tuple('doc:plan#parent@doc:plan')];
    const found = explain(relations, tuples, 'doc:plan#viewer@ann');
    expect(found.undecided).toBe(true);
    expect(kindsOf(found)).toEqual(['cycle']);
  });

  test('by the depth bound', () => {
    const chain = Array.from({ length: 10 }, (_, i) =>
      tuple(`group:${i}#member@group:${i + 1}#member`),
    );
    const tuples = [...chain, tuple('group:10#member@ann')];
    const found = explain({}, tuples, 'group:0#member@ann', { depthMax: 5, remediesMax: 9 });
    expect(found).toMatchObject({ allowed: false, undecided: true, truncated: false });
    expect(found.obstacles[0]).toMatchObject({ kind: 'depth', objectId: '5' });
    expect(remediesOf(found)).toHaveLength(5);
  });

  test('is mended by a pardon, if that is what lacks', () => {
    const relations = {
      banned: THIS,
      pardoned: THIS,
      viewer: {
        exclusion: {
          include: THIS,
          exclude: {
            exclusion: { include: { computed: 'banned' }, exclude: { computed: 'pardoned' } },
          },
        },
      },
    };
    const tuples = [tuple('doc:plan#viewer@ann'), tuple('doc:plan#banned@ann')];
    const found = explain(relations, tuples, 'doc:plan#viewer@ann');
    expect(kindsOf(found)).toEqual(['excluded']);
    expect(remediesOf(found)).toEqual(['doc:plan#pardoned@ann']);
  });

  test('of two operands that one tuple mends', () => {
    const relations = {
      member: THIS,
      a: { computed: 'member' },
      b: { union: [{ computed: 'member' }, THIS] },
      both: { intersection: [{ computed: 'a' }, { computed: 'b' }] },
    };
    const found = explain(relations, [], 'doc:plan#both@ann');
    expect(kindsOf(found)).toEqual(['intersection', 'intersection', 'noGrant']);
    expect(found).toMatchObject({ truncated: false });
    expect(remediesOf(found)).toEqual(['doc:plan#member@ann']);
  });

  test('that a tuple mends which counts twice on the way', () => {
    const through = (relation: string): object => ({
      tuple_to_userset: { tupleset: 'parent', computed: relation },
    });
    const walked = {
      parent: THIS,
      owner: THIS,
      editor: through('owner'),
      viewer: through('editor'),
    };
    const owned = [tuple('doc:plan#owner@ann')];
    const found = explain(walked, owned, 'doc:plan#viewer@ann');
    expect(found).toMatchObject({
      truncated: false,
      remedies: [tuple('doc:plan#parent@doc:plan#')],
    });
  });

  test('with an expired way in proposes its renewal first', () => {
    const expired = tuple('doc:plan#viewer@group:eng#member', { expiresAtUs: 1n });
    const found = explain(
      { viewer: THIS },
      [expired, tuple('group:eng#member@ann')],
      'doc:plan#viewer@ann',
    );
    expect(found.obstacles[0]).toMatchObject({ kind: 'expired', tuple: expired });
    expect(found.remedies[0]?.subject).toEqual(subjectOf('group:eng#member'));
    expect(found.remedies[0]).not.toHaveProperty('expiresAtUs');
  });

  test('of nobody tells it whatever the index knows', () => {
    for (const asked of ['doc:new#viewer@new', 'new:new#new@new', 'new:a#new@new:b#other']) {
      const found = explain({ viewer: THIS }, [], asked);
      expect(kindsOf(found)).toEqual(['noGrant']);
      expect(found.remedies).toEqual([tuple(asked)]);
    }
  });

  test('that is too wide for the reads of an explanation says so', () => {
    // Denied at once for want of an operand; what would mend it lies behind thousands of groups.
    const relations = {
      a: THIS,
      wide: THIS,
      both: { intersection: [{ computed: 'a' }, { computed: 'wide' }] },
    };
    const wide = Array.from({ length: 500 }, (_, i) => tuple(`doc:plan#wide@group:g${i}#member`));
    const found = explain(relations, [...wide, tuple('doc:plan#a@bob')], 'doc:plan#both@ann', {
      reads: 60,
    });
    expect(found).toMatchObject({ allowed: false, truncated: true });
    expect(kindsOf(found)).toContain('budget');
  });
});

test('a long explanation stops at the end of each slice', () => {
  const tuples = Array.from({ length: 3_000 }, (_, i) =>
    tuple(`doc:plan#viewer@group:g${i}#member`),
  );
  const modelJson = JSON.stringify({ namespaces: { doc: { relations: { viewer: THIS } } } });
  const { ground } = explainedWorld({ modelJson, tuples });
  const query = { ...tuple('doc:plan#viewer@ann'), contextJson: '' };
  const run = new ExplainRun(ground, query, 100, systemClock);
  let slices = 0;
  while (run.run(0) === 'more') slices++;
  expect(slices).toBeGreaterThan(100);
  expect(run.result().remedies).toHaveLength(100);
});
