import { describe, expect, test } from 'vitest';
import { Engine, formatGate, parseModel, runTests, type Tuple } from '../../src/library/index.ts';
import { eng, GATE, model, office, plan, refusal, refused, TUPLES } from './support.ts';

describe('a model', () => {
  test('is read from text, from JSON and from its document, and written as both', () => {
    const document = model.toJSON();
    expect(parseModel(document).toGate()).toBe(GATE);
    expect(parseModel(JSON.stringify(model)).toJSON()).toEqual(document);
    expect(formatGate('namespace   doc{relation viewer // all\n}')).toBe(
      'namespace doc {\n  relation viewer // all\n}\n',
    );
    expect(model.warnings).toEqual([]);
  });

  test('that is wrong says where, all at once', () => {
    const syntax = refusal(() => parseModel('namespace doc {\n  relation a b\n  relation c d\n}'));
    expect([syntax.reason, syntax.problems.map(({ line, column }) => [line, column])]).toEqual([
      'MODEL_INVALID',
      [
        [2, 14],
        [3, 14],
      ],
    ]);
    const names = refusal(() =>
      parseModel(
        'namespace doc {\n  relation viewer: [user] or ownr\n  relation owner: [user] or viewr\n}',
      ),
    );
    expect(names.message).toContain('line 2, column 30: ');
    expect(names.message).toMatch(/did you mean "owner"\? \(and 1 more\)$/);
    expect(names.problems.map(({ line, path }) => [line, path])).toEqual([
      [2, '$.namespaces.doc.relations.viewer.union[1].computed'],
      [3, '$.namespaces.doc.relations.owner.union[1].computed'],
    ]);
    const json = refusal(() => parseModel('{"namespaces":{"doc":{"relation":{}}}}'));
    expect([json.problems[0]?.path, json.problems[0]?.line]).toEqual([
      '$.namespaces.doc.relation',
      undefined,
    ]);
    expect(refusal(() => formatGate('namespace')).problems).toHaveLength(1);
    expect(refused(() => new Engine({ ...model }))).toEqual(['FIELD_INVALID', 'model']);
  });
});

describe('tuples', () => {
  test('are written and deleted, as text or as objects, and counted', () => {
    const engine = new Engine(model);
    expect([engine.write(TUPLES), engine.write([...TUPLES, office]), engine.tupleCount]).toEqual([
      3, 1, 4,
    ]);
    expect(
      engine.delete([{ ...plan, relation: 'owner', subject: 'ben' }, 'doc:none#owner@user:x']),
    ).toBe(1);
    expect(engine.tupleCount).toBe(3);
  });

  test('of which one is refused leave nothing behind', () => {
    const engine = new Engine(model);
    expect(refused(() => engine.write([...TUPLES, 'doc:plan#owner@group:eng#member']))).toEqual([
      'TUPLE_NOT_ADMITTED',
      'tuples[3].subject',
    ]);
    expect(engine.tupleCount).toBe(0);
  });

  const bad: readonly [string, unknown, string][] = [
    ['FIELD_INVALID', 'doc:plan', 'tuples[0]'],
    ['FIELD_INVALID', { ...plan, subject: 'ann', conditionName: 'x' }, 'tuples[0].conditionName'],
    ['FIELD_REQUIRED', plan, 'tuples[0].subject'],
    ['FIELD_REQUIRED', { ...plan, objectId: undefined, subject: 'ann' }, 'tuples[0].objectId'],
    ['FIELD_INVALID', { ...plan, objectId: 7, subject: 'ann' }, 'tuples[0].objectId'],
    ['FIELD_INVALID', { ...plan, objectId: 'a#b', subject: 'ann' }, 'tuples[0].objectId'],
    ['FIELD_INVALID', { ...plan, namespace: 'Doc', subject: 'ann' }, 'tuples[0].namespace'],
    ['FIELD_INVALID', { ...plan, subject: '\ud800' }, 'tuples[0].subject'],
    ['FIELD_INVALID', { ...plan, subject: { everyone: 1 } }, 'tuples[0].subject.everyone'],
    ['FIELD_INVALID', { ...plan, subject: { ...eng, id: 1 } }, 'tuples[0].subject.id'],
    [
      'FIELD_INVALID',
      { ...office, conditionParams: { network: new Date() } },
      'tuples[0].conditionParams.network',
    ],
    ['FIELD_INVALID', { ...office, condition: undefined }, 'tuples[0].conditionParams'],
    ['FIELD_INVALID', { ...plan, subject: 'ann', expiresAt: 5 }, 'tuples[0].expiresAt'],
    [
      'FIELD_INVALID',
      { ...plan, subject: 'ann', expiresAt: new Date(Number.NaN) },
      'tuples[0].expiresAt',
    ],
    ['TUPLE_NOT_ADMITTED', { ...office, condition: 'in_ofice' }, 'tuples[0].condition'],
    [
      'TUPLE_NOT_ADMITTED',
      { ...office, conditionParams: { network: 7 } },
      'tuples[0].conditionParams',
    ],
    ['TUPLE_NOT_ADMITTED', { ...plan, relation: 'viewr', subject: 'ann' }, 'tuples[0].relation'],
    ['TUPLE_NOT_ADMITTED', { ...plan, relation: 'guest', subject: 'ann' }, 'tuples[0].expiresAt'],
  ];
  test.each(bad)('%s: %j', (reason, tuple, field) => {
    expect(refused(() => new Engine(model).write([tuple as Tuple]))).toEqual([reason, field]);
  });

  test('must be a list, of which none stands twice', () => {
    const engine = new Engine(model);
    expect(refused(() => engine.write('doc:a#owner@user:b' as unknown as string[]))).toEqual([
      'FIELD_INVALID',
      'tuples',
    ]);
    expect(
      refused(() =>
        engine.write(['doc:a#owner@user:b', 'doc:b#owner@user:b', 'doc:a#owner@user:b']),
      ),
    ).toEqual(['FIELD_INVALID', 'tuples[2]']);
  });

  test('that do not fit leave an engine that answers nothing', () => {
    const engine = new Engine(model, { indexBytesMax: 400_000 });
    engine.write(TUPLES);
    const many = Array.from({ length: 50_000 }, (_, i) => `doc:d${i}#owner@user:u${i}`);
    expect(refusal(() => engine.write(many)).reason).toBe('SHARD_TOO_LARGE');
    for (const work of [
      () => engine.check({ ...plan, subject: 'ann' }),
      () => engine.check('doc:plan#viewer@user:ann'),
      () => engine.listObjects({ ...plan, subject: 'ann' }),
      () => engine.write([]),
    ]) {
      expect(refusal(work).reason).toBe('ENGINE_DAMAGED');
    }
  });
});

describe('tests of a file', () => {
  const text = (expected: string) =>
    `tuples: [doc:plan#owner@user:ann]\ntests:\n  - name: owners\n    ${expected}: [doc:plan#viewer@user:ann]\n`;

  test('hold or say what is', () => {
    expect(runTests(text('allow'), { model })).toEqual({ assertions: 1, failures: [] });
    expect(runTests(text('deny'), { model })).toEqual({
      assertions: 1,
      failures: [
        {
          test: 'owners',
          assertion: 'doc:plan#viewer@user:ann',
          expected: 'false',
          actual: 'true',
          line: 4,
        },
      ],
    });
    const own = `model: |\n  namespace doc {\n    relation viewer\n  }\n${text('deny').replace('owner@', 'viewer@')}`;
    expect(runTests(own, { model }).failures).toHaveLength(1);
  });

  test('that are none are refused with their place', () => {
    const place = (work: () => unknown) => {
      const { reason, problems } = refusal(work);
      return [reason, problems.map(({ line, column }) => [line, column])];
    };
    expect(place(() => runTests('tests:\n  - alow: []', { model }))).toEqual([
      'ASSERTIONS_INVALID',
      [[2, 5]],
    ]);
    expect(place(() => runTests(text('allow')))).toEqual(['ASSERTIONS_INVALID', [[1, 1]]]);
    expect(place(() => runTests(`model: |\n  namespace {\n${text('allow')}`))).toEqual([
      'ASSERTIONS_INVALID',
      [[1, 1]],
    ]);
    expect(refused(() => runTests(text('allow'), { model, readsMax: 0 }))).toEqual([
      'FIELD_INVALID',
      'options.readsMax',
    ]);
  });
});
