import { describe, expect, test } from 'vitest';
import { type Tuple } from '../../src/library/index.ts';
import { TUPLES, eng, engineWith, office, plan, refused } from './support.ts';

describe('lists', () => {
  const engine = engineWith(
    'doc:a#owner@user:ann',
    'doc:b#viewer@user:ann',
    'doc:c#owner@user:ann',
    'doc:c#banned@user:ann',
    'doc:a#viewer@group:eng#member',
    { ...office, objectId: 'a' },
    'folder:f#viewer@user:*',
    'folder:g#viewer@folder:*',
    'doc:d#parent@folder:f',
    'doc:d#banned@user:eve',
  );

  test('of objects, whole and in parts', () => {
    const query = { namespace: 'doc', relation: 'viewer', subject: 'ann' };
    expect(engine.listObjects(query)).toEqual({
      objectIds: ['a', 'b', 'd'],
      undecided: false,
      next: undefined,
    });
    const first = engine.listObjects(query, { limit: 2 });
    expect(first).toEqual({ objectIds: ['a', 'b'], undecided: false, next: 'b' });
    expect(engine.listObjects(query, { limit: 2, after: 'b' }).objectIds).toEqual(['d']);
    expect(engine.listObjects({ ...query, subject: 'ben' })).toEqual({
      objectIds: ['d'],
      undecided: true,
      next: undefined,
    });
    expect(
      engine.listObjects({ ...query, subject: 'ben' }, { context: { ip: '10.0.0.1' } }).objectIds,
    ).toEqual(['a', 'd']);
    expect(refused(() => engine.listObjects(query, { limit: 0 }))).toEqual([
      'FIELD_INVALID',
      'options.limit',
    ]);
    expect(refused(() => engine.listObjects({ ...query, relation: 'x' }))).toEqual([
      'RELATION_UNKNOWN',
      'query.relation',
    ]);
  });

  test('of subjects of any kind', () => {
    const doc = (objectId: string) => ({ ...plan, objectId });
    const none = {
      everyone: false,
      excludedIds: [],
      undecidedIds: [],
      everyoneUndecided: false,
      next: undefined,
    };
    expect(engine.listSubjects(doc('a'))).toEqual({
      ...none,
      subjectIds: ['ann'],
      undecidedIds: ['ben'],
    });
    expect(engine.listSubjects(doc('d'))).toEqual({
      ...none,
      subjectIds: [],
      everyone: true,
      excludedIds: ['eve'],
    });
    expect(
      engine.listSubjects({ ...doc('a'), subjectNamespace: 'group', subjectRelation: 'member' }),
    ).toEqual({ ...none, subjectIds: ['eng'] });
    expect(
      engine.listSubjects({
        namespace: 'folder',
        objectId: 'g',
        relation: 'viewer',
        subjectNamespace: 'folder',
      }),
    ).toMatchObject({ everyone: true });
    expect(
      engine.listSubjects({ ...doc('none'), subjectNamespace: 'doc', subjectRelation: 'viewer' })
        .subjectIds,
    ).toEqual(['none']);
    expect(refused(() => engine.listSubjects({ ...doc('a'), subjectRelation: 'member' }))).toEqual([
      'FIELD_REQUIRED',
      'query.subjectNamespace',
    ]);
  });

  test('of relations', () => {
    expect(engine.listRelations({ namespace: 'doc', objectId: 'c', subject: 'ann' })).toEqual({
      relations: ['banned', 'owner'],
      undecidedRelations: [],
    });
    expect(engine.listRelations({ namespace: 'doc', objectId: 'a', subject: 'ben' })).toEqual({
      relations: [],
      undecidedRelations: ['owner', 'viewer'],
    });
    expect(
      refused(() => engine.listRelations({ namespace: 'dok', objectId: 'a', subject: 'ben' })),
    ).toEqual(['RELATION_UNKNOWN', 'query.namespace']);
  });
});

describe('an explanation', () => {
  const engine = engineWith(...TUPLES, office);

  test('of an allow is its shortest derivation', () => {
    const { allowed, derivation, obstacles } = engine.explain(
      { ...plan, subject: 'ann' },
      { contextualTuples: ['group:eng#member@user:zoe'] },
    );
    expect([allowed, derivation?.step, obstacles]).toEqual([true, 'exclusion', []]);
    expect(derivation?.children[0]).toMatchObject({
      step: 'userset',
      tuple: { ...plan, subject: eng },
      contextual: false,
    });
    const zoe = engine.explain(
      { ...plan, subject: 'zoe' },
      { contextualTuples: ['group:eng#member@user:zoe'] },
    );
    expect(zoe.derivation?.children[0]?.children[0]).toMatchObject({
      tuple: { ...eng, subject: 'zoe' },
      contextual: true,
    });
  });

  test('of a deny is what is in its way and what would help', () => {
    const ben = engine.explain({ ...plan, subject: 'ben' });
    expect([
      ben.allowed,
      ben.undecided,
      ben.obstacles[0]?.kind,
      ben.obstacles[0]?.missingInputs,
    ]).toEqual([false, true, 'conditionUndecided', ['ip']]);
    expect(ben.obstacles[0]?.tuple).toEqual(office);
    const stranger = engine.explain({ ...plan, subject: 'stranger' }, { remediesMax: 1 });
    const [remedy] = stranger.remedies;
    expect([stranger.remedies.length, stranger.obstacles[0]?.kind]).toEqual([1, 'noGrant']);
    const changed = engineWith(...TUPLES, remedy as Tuple);
    expect(changed.check({ ...plan, subject: 'stranger' })).toBe(true);
    expect(refused(() => engine.explain({ ...plan, subject: 'a' }, { remediesMax: 101 }))).toEqual([
      'FIELD_INVALID',
      'options.remediesMax',
    ]);
  });
});
