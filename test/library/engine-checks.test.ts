import { describe, expect, test } from 'vitest';
import {
  type CheckQuery,
  Engine,
  formatGate,
  parseModel,
  runTests,
} from '../../src/library/index.ts';
import { TUPLES, eng, engineWith, model, office, plan, refusal, refused } from './support.ts';

describe('a check', () => {
  const engine = engineWith(
    ...TUPLES,
    office,
    'folder:all#viewer@user:*',
    'doc:memo#parent@folder:all',
    'doc:memo#banned@user:eve',
  );
  const decide = (query: CheckQuery | string, options = {}) => engine.decide(query, options);

  test('allows, denies, and is undecided with a reason', () => {
    expect(engine.check({ ...plan, subject: 'ann' })).toBe(true);
    expect(engine.check('doc:plan#viewer@user:ann')).toBe(true);
    expect(engine.check({ ...plan, subject: eng })).toBe(true);
    expect(engine.check({ ...plan, subject: 'stranger' })).toBe(false);
    expect(engine.check({ ...plan, objectId: 'memo', subject: 'stranger' })).toBe(true);
    expect(engine.check({ ...plan, objectId: 'memo', subject: 'eve' })).toBe(false);
    expect(engine.decide({ ...plan, subject: 'eve' })).toEqual({
      allowed: false,
      undecided: false,
    });
    expect(engine.decide({ ...plan, subject: 'ann' })).toEqual({ allowed: true, undecided: false });
    expect(engine.decide({ ...plan, subject: 'ben' })).toEqual({
      allowed: false,
      undecided: true,
      reason: 'condition',
    });
    expect(engine.check({ ...plan, subject: 'ben' })).toBe(false);
  });

  test('decides conditions by the context', () => {
    const ben = { ...plan, subject: 'ben' };
    const by = (ip: string) => decide(ben, { context: { ip } });
    expect(by('10.1.2.3')).toEqual({ allowed: true, undecided: false });
    expect(by('::1')).toEqual({ allowed: false, undecided: false });
    expect(by('nowhere')).toEqual({ allowed: false, undecided: true, reason: 'condition' });
    expect(decide('doc:plan#viewer@user:ben', { context: {} })).toMatchObject({ undecided: true });
  });

  test('counts contextual tuples for itself alone', () => {
    const query = { ...plan, subject: 'new' };
    expect(engine.check(query, { contextualTuples: ['group:eng#member@user:new'] })).toBe(true);
    expect(
      engine.check(query, { contextualTuples: [{ ...plan, relation: 'owner', subject: 'new' }] }),
    ).toBe(true);
    expect(engine.check(query)).toBe(false);
    expect(
      engine.check({ ...plan, subject: 'ann' }, { contextualTuples: ['doc:plan#banned@user:ann'] }),
    ).toBe(false);
    const refusing = (tuple: string) =>
      refused(() => engine.check(query, { contextualTuples: [tuple, 'doc:plan#owner@user:ok'] }));
    expect(refusing('doc:plan#banned@user:*')).toEqual([
      'TUPLE_NOT_ADMITTED',
      'options.contextualTuples[0].subject',
    ]);
    expect(refusing('doc:plan#owner@user:ok')).toEqual([
      'FIELD_INVALID',
      'options.contextualTuples[1]',
    ]);
    expect(refusing('doc')).toEqual(['FIELD_INVALID', 'options.contextualTuples[0]']);
  });

  test('of an exact userset looks at no members', () => {
    const members = engineWith('group:one#member@user:ann', 'doc:a#viewer@user:ann');
    const query = { ...plan, objectId: 'a', subject: { ...eng, objectId: 'one' } };
    expect(members.check(query)).toBe(true);
    expect(members.check(query, { exact: true })).toBe(false);
  });

  const slips: readonly [string, () => unknown, string | undefined][] = [
    [
      'RELATION_UNKNOWN',
      () => engine.check({ ...plan, relation: 'viewr', subject: 'ann' }),
      'query.relation',
    ],
    ['RELATION_UNKNOWN', () => engine.check('dok:plan#viewer@user:ann'), 'query.namespace'],
    ['FIELD_INVALID', () => engine.check('doc:plan#viewer@user:*'), 'query'],
    [
      'FIELD_INVALID',
      () => engine.check({ ...plan, subject: { everyone: true } } as never),
      'query.subject',
    ],
    ['FIELD_INVALID', () => engine.check(null as never), 'query'],
    ['FIELD_INVALID', () => engine.explain('doc:a#viewer@user:x', null as never), 'options'],
    ['FIELD_REQUIRED', () => engine.check({ ...plan } as never), 'query.subject'],
    ['FIELD_REQUIRED', () => engine.check({ ...plan, subject: '' }), 'query.subject'],
    [
      'FIELD_REQUIRED',
      () => engine.check({ ...plan, namespace: '', subject: 'ann' }),
      'query.namespace',
    ],
    [
      'FIELD_INVALID',
      () => engine.check({ ...plan, namespace: '*', subject: 'ann' }),
      'query.namespace',
    ],
    [
      'FIELD_INVALID',
      () => engine.check({ ...plan, relation: 'in office', subject: 'ann' }),
      'query.relation',
    ],
    [
      'FIELD_INVALID',
      () => decide({ ...plan, subject: 'ann' }, { contextual: [] }),
      'options.contextual',
    ],
    ['FIELD_INVALID', () => decide({ ...plan, subject: 'ann' }, { exact: 1 }), 'options.exact'],
    [
      'FIELD_INVALID',
      () => decide({ ...plan, subject: 'ann' }, { context: [] }),
      'options.context',
    ],
    [
      'FIELD_INVALID',
      () => decide({ ...plan, subject: 'ann' }, { context: { a: [1n] } }),
      'options.context.a[0]',
    ],
    // Where it would be passed over, ann would see what she is banned from.
    [
      'FIELD_INVALID',
      () => engine.check({ ...plan, subject: 'ann', contextualTuples: [] } as never),
      'query.contextualTuples',
    ],
    [
      'FIELD_INVALID',
      () =>
        engine.listObjects({
          namespace: 'doc',
          relation: 'viewer',
          subject: 'ann',
          limit: 1,
        } as never),
      'query.limit',
    ],
    ['FIELD_INVALID', () => engine.listSubjects({ ...plan, limit: 1 } as never), 'query.limit'],
    [
      'FIELD_INVALID',
      () =>
        engine.listRelations({ namespace: 'doc', objectId: 'a', subject: 'x', after: '' } as never),
      'query.after',
    ],
    ['FIELD_INVALID', () => engine.write(Object.assign([], { length: 1 })), 'tuples[0]'],
    ['FIELD_INVALID', () => formatGate(undefined as never), 'text'],
    ['FIELD_INVALID', () => runTests(5 as never), 'text'],
    ['SHARD_TOO_LARGE', () => new Engine(model, { indexBytesMax: 1 }), undefined],
    ['FIELD_INVALID', () => new Engine(model, { depthMax: 0 }), 'options.depthMax'],
    ['FIELD_INVALID', () => new Engine(model, { readMax: 5 } as never), 'options.readMax'],
    ['FIELD_INVALID', () => new Engine(model, { now: 5 } as never), 'options.now'],
  ];
  test.each(slips)('%s: %s', (reason, work, field) => {
    expect(refused(work)).toEqual([reason, field]);
  });

  test('in a model without types takes any name', () => {
    const open = new Engine(parseModel('namespace doc {\n  relation viewer\n}'));
    open.write(['doc:a#viewer@user:ann', 'other:b#any@user:ann']);
    expect([open.check('other:b#any@user:ann'), open.check('doc:a#vewer@user:ann')]).toEqual([
      true,
      false,
    ]);
  });
});

describe('bounds', () => {
  const chain = (length: number) =>
    Array.from(
      { length },
      (_, i) => `group:g${i}#member@${i === length - 1 ? 'user:ann' : `group:g${i + 1}#member`}`,
    );
  const query = { ...eng, objectId: 'g0', subject: 'ann' };

  test('a path that is too long is undecided, never an allow', () => {
    const engine = new Engine(model, { depthMax: 5 });
    engine.write(chain(5));
    expect(engine.check(query)).toBe(true);
    engine.delete(['group:g4#member@user:ann']);
    engine.write(['group:g4#member@group:g5#member', 'group:g5#member@user:ann']);
    expect(engine.decide(query)).toEqual({ allowed: false, undecided: true, reason: 'depth' });
  });

  test('a relation that excludes itself is undecided', () => {
    const odd = parseModel(
      'namespace doc {\n  relation parent: [doc]\n  relation viewer: [user] but not (viewer from parent)\n}',
    );
    const engine = new Engine(odd);
    engine.write(['doc:a#parent@doc:a', 'doc:a#viewer@user:ann']);
    expect(engine.decide('doc:a#viewer@user:ann')).toEqual({
      allowed: false,
      undecided: true,
      reason: 'cycle',
    });
  });

  test('too many reads are an error, by any query', () => {
    const engine = new Engine(model, { readsMax: 20 });
    engine.write(chain(100));
    for (const work of [
      () => engine.check(query),
      () => engine.explain(query),
      () => engine.listSubjects({ ...eng, objectId: 'g0' }),
      () => engine.listObjects({ namespace: 'group', relation: 'member', subject: 'ann' }),
      () => engine.listRelations({ namespace: 'group', objectId: 'g0', subject: 'ann' }),
    ]) {
      expect(refusal(work).reason).toBe('BUDGET_EXHAUSTED');
      expect(refusal(work).message).toContain('options.readsMax');
    }
    expect(new Engine(model, { readsMax: 1_000 }).check(query)).toBe(false);
  });

  test('tuples expire by the clock that is given', () => {
    let nowMs = Date.UTC(2030, 0, 1);
    const engine = new Engine(model, { now: () => nowMs });
    const expiresAt = new Date(nowMs + 1_000);
    engine.write([{ ...plan, relation: 'owner', subject: 'ann', expiresAt }]);
    const asked = { ...plan, subject: 'ann' };
    expect(engine.check(asked)).toBe(true);
    expect(engine.explain(asked).holdsUntil).toEqual(expiresAt);
    nowMs += 999;
    expect(engine.check(asked)).toBe(true);
    nowMs += 1;
    expect(engine.check(asked)).toBe(false);
    expect(engine.explain(asked).obstacles.map(({ kind }) => kind)).toEqual(['expired']);
    expect(engine.tupleCount).toBe(1);
    nowMs = Number.NaN;
    expect(refused(() => engine.check(asked))).toEqual(['FIELD_INVALID', 'options.now']);
  });
});
