import { describe, expect, test } from 'vitest';
import { AppError } from '../../shared/app-error.ts';
import { checkModelDocument, parseModel } from './namespace-model.ts';

function pathOfError(json: string, check: (json: string) => unknown = parseModel) {
  try {
    check(json);
  } catch (error) {
    if (!(error instanceof AppError) || error.reason !== 'MODEL_INVALID') throw error;
    expect(error.message).toContain(error.metadata['path']);
    expect(error.metadata['field']).toBe('model_json');
    return error.metadata['path'];
  }
  return undefined;
}

function docWith(relations: unknown): string {
  return JSON.stringify({ namespaces: { doc: { relations } } });
}

function nested(depth: number): unknown {
  let rewrite: unknown = {};
  for (let i = 1; i < depth; i++) rewrite = { union: [rewrite] };
  return rewrite;
}

describe('parseModel', () => {
  test.each([
    '',
    '{"namespaces":{}}',
    '{"$schema":"./model.schema.json","schema_version":1,"namespaces":{}}',
  ])('the built-in model: %s', (json) => {
    expect([...parseModel(json).namespaces.keys()]).toEqual(['workspace', 'group', 'resource']);
  });

  test('merges workspace and group unless the document defines them', () => {
    const model = parseModel('{"namespaces":{"doc":{"relations":{}},"group":{"relations":{}}}}');
    expect([...model.namespaces.keys()].sort()).toEqual(['doc', 'group', 'workspace']);
    expect(model.namespaces.get('group')?.size).toBe(0);
    expect(model.namespaces.get('workspace')?.get('guest')).toEqual({
      op: 'union',
      children: [{ op: 'this' }, { op: 'computed', relation: 'member' }],
    });
  });

  test('every operator', () => {
    const json = docWith({
      owner: {},
      own: { this: {} },
      viewer: {
        intersection: [
          { union: [{ this: {} }, { computed: 'owner' }] },
          { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
        ],
      },
      reader: { exclusion: { include: { computed: 'viewer' }, exclude: { computed: 'banned' } } },
    });
    const relations = parseModel(json).namespaces.get('doc');
    expect(relations?.get('owner')).toEqual({ op: 'this' });
    expect(relations?.get('own')).toEqual({ op: 'this' });
    expect(relations?.get('viewer')).toEqual({
      op: 'intersection',
      children: [
        { op: 'union', children: [{ op: 'this' }, { op: 'computed', relation: 'owner' }] },
        { op: 'tupleToUserset', tupleset: 'parent', computed: 'viewer' },
      ],
    });
    expect(relations?.get('reader')).toEqual({
      op: 'exclusion',
      include: { op: 'computed', relation: 'viewer' },
      exclude: { op: 'computed', relation: 'banned' },
    });
  });

  test.each([
    ['{', '$'],
    ['[]', '$'],
    ['null', '$'],
    ['{}', '$.namespaces'],
    ['{"namespaces":[]}', '$.namespaces'],
    ['{"schema_version":2,"namespaces":{}}', '$.schema_version'],
    ['{"schema_version":"1","namespaces":{}}', '$.schema_version'],
    ['{"$schema":1,"namespaces":{}}', '$.$schema'],
    ['{"namespaces":{},"extra":1}', '$.extra'],
    ['{"namespaces":{"Doc":{"relations":{}}}}', '$.namespaces.Doc'],
    ['{"namespaces":{"seat":{"relations":{}}}}', '$.namespaces.seat'],
    ['{"namespaces":{"doc":{}}}', '$.namespaces.doc.relations'],
    ['{"namespaces":{"doc":{"relations":{},"x":1}}}', '$.namespaces.doc.x'],
    [docWith({ A: {} }), '$.namespaces.doc.relations.A'],
    [docWith({ a: 1 }), '$.namespaces.doc.relations.a'],
    [docWith(1), '$.namespaces.doc.relations'],
    [docWith({ 'a b': {} }), '$.namespaces.doc.relations.a b'],
    [docWith({ [`a${'b'.repeat(64)}`]: {} }), `$.namespaces.doc.relations.a${'b'.repeat(64)}`],
    [docWith({ a: { computed: ['b'] } }), '$.namespaces.doc.relations.a.computed'],
    [
      docWith({ a: { tuple_to_userset: { computed: 'p' } } }),
      '$.namespaces.doc.relations.a.tuple_to_userset.tupleset',
    ],
    [
      docWith({ a: { exclusion: { exclude: {} } } }),
      '$.namespaces.doc.relations.a.exclusion.include',
    ],
    [docWith({ a: { nope: {} } }), '$.namespaces.doc.relations.a.nope'],
    [docWith({ a: { this: {}, computed: 'b' } }), '$.namespaces.doc.relations.a'],
    [docWith({ a: { this: { x: 1 } } }), '$.namespaces.doc.relations.a.this.x'],
    [docWith({ a: { computed: 1 } }), '$.namespaces.doc.relations.a.computed'],
    [docWith({ a: { computed: 'B' } }), '$.namespaces.doc.relations.a.computed'],
    [docWith({ a: { union: [] } }), '$.namespaces.doc.relations.a.union'],
    [docWith({ a: { intersection: {} } }), '$.namespaces.doc.relations.a.intersection'],
    [docWith({ a: { union: [{}, { union: [] }] } }), '$.namespaces.doc.relations.a.union[1].union'],
    [
      docWith({ a: { exclusion: { include: {} } } }),
      '$.namespaces.doc.relations.a.exclusion.exclude',
    ],
    [
      docWith({ a: { tuple_to_userset: { tupleset: 'p' } } }),
      '$.namespaces.doc.relations.a.tuple_to_userset.computed',
    ],
    [docWith({ a: { computed: 'a' } }), '$.namespaces.doc.relations.a'],
    [
      docWith({
        a: { union: [{ computed: 'b' }] },
        b: { exclusion: { include: {}, exclude: { computed: 'a' } } },
      }),
      '$.namespaces.doc.relations.a',
    ],
  ])('refuses %s at %s', (json, path) => {
    expect(pathOfError(json)).toBe(path);
  });

  test('a relation that is computed from itself, with the way round', () => {
    const of = (relations: Record<string, unknown>) => () => parseModel(docWith(relations));
    const [viaB, viaA] = [{ computed: 'b' }, { computed: 'a' }];
    expect(of({ a: viaA })).toThrow('relations.a: is computed from itself: a → a');
    expect(of({ x: viaA, a: { union: [{}, viaB] }, b: viaA })).toThrow(
      'relations.a: is computed from itself: a → b → a',
    );
    const long = Array.from({ length: 40 }, (_, i) => [`r${i}`, { computed: `r${(i + 1) % 40}` }]);
    expect(of(Object.fromEntries(long))).toThrow(
      'r0 → r1 → r2 → r3 → r4 → r5 → r6 → r7 → (25 more) → r33 → r34 → r35 → r36 → r37 → r38 → r39 → r0',
    );
  });

  test('limits: namespaces, relations, nesting', () => {
    const many = (count: number): Record<string, unknown> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`, { relations: {} }]));
    expect(pathOfError(JSON.stringify({ namespaces: many(256) }))).toBeUndefined();
    expect(pathOfError(JSON.stringify({ namespaces: many(257) }))).toBe('$.namespaces');
    const relations = (count: number): Record<string, unknown> =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`r${i}`, {}]));
    expect(pathOfError(docWith(relations(256)))).toBeUndefined();
    expect(pathOfError(docWith(relations(257)))).toBe('$.namespaces.doc.relations');
    expect(pathOfError(docWith({ a: nested(32) }))).toBeUndefined();
    expect(pathOfError(docWith({ a: nested(33) }))).toContain('$.namespaces.doc.relations.a');
  });

  test.each(['include', 'exclude'])('nesting is counted through %s, too', (side) => {
    const deep = (depth: number): unknown => {
      let rewrite: unknown = {};
      for (let i = 1; i < depth; i++)
        rewrite = { exclusion: { include: {}, exclude: {}, [side]: rewrite } };
      return rewrite;
    };
    expect(pathOfError(docWith({ a: deep(32) }))).toBeUndefined();
    expect(pathOfError(docWith({ a: deep(33) }))).toContain('$.namespaces.doc.relations.a');
  });

  test('a walk at the root of a rewrite is none of its own computed relations', () => {
    const walk = { tuple_to_userset: { tupleset: 'parent', computed: 'a' } };
    const relations = parseModel(docWith({ a: walk })).namespaces.get('doc');
    expect(relations?.get('a')).toEqual({
      op: 'tupleToUserset',
      tupleset: 'parent',
      computed: 'a',
    });
  });

  test('relations that lead to each other many times over are looked at once', () => {
    const relations: Record<string, unknown> = {};
    for (let i = 0; i < 60; i++) {
      relations[`r${i}`] = { union: [{ computed: `r${i + 1}` }, { computed: `r${i + 1}` }] };
    }
    expect(parseModel(docWith(relations)).namespaces.get('doc')?.size).toBe(60);
  });

  test('what is no JSON is told so, with the cause', () => {
    expect(() => parseModel('{')).toThrow('model_json: $: is not valid JSON');
    expect(() => parseModel('{')).toThrow(
      expect.objectContaining({ cause: expect.any(SyntaxError) as unknown }),
    );
  });

  test('a member named __proto__ is no way around', () => {
    expect(pathOfError('{"namespaces":{"__proto__":{"relations":{}}}}')).toBe(
      '$.namespaces.__proto__',
    );
  });
});

describe('checkModelDocument', () => {
  const tupleToUserset = '{"tuple_to_userset":{"tupleset":"p","tupleset":"p","computed":"v"}}';

  test.each([
    ['{"namespaces":{},"namespaces":{}}', '$'],
    ['{"schema_version":1,"schema_version":1,"namespaces":{}}', '$'],
    ['{"namespaces":{"doc":{"relations":{}},"doc":{"relations":{"a":{}}}}}', '$.namespaces'],
    ['{"namespaces":{"doc":{"relations":{},"relations":{}}}}', '$.namespaces.doc'],
    [
      '{"namespaces":{"doc":{"relations":{"viewer":{},"v\\u0069ewer":{}}}}}',
      '$.namespaces.doc.relations',
    ],
    [
      '{"namespaces":{"doc":{"relations":{"a":{"union":[{},{"computed":"b","computed":"c"}]}}}}}',
      '$.namespaces.doc.relations.a.union[1]',
    ],
    [
      `{"namespaces":{"doc":{"relations":{"a":${'{"union":['.repeat(31)}${tupleToUserset}${']}'.repeat(31)}}}}}`,
      `$.namespaces.doc.relations.a${'.union[0]'.repeat(31)}.tuple_to_userset`,
    ],
  ])('refuses %s, which still loads', (json, path) => {
    expect(pathOfError(json)).toBeUndefined();
    expect(pathOfError(json, checkModelDocument)).toBe(path);
  });

  test('names the key', () => {
    const json = '{"namespaces":{"doc":{"relations":{"viewer":{},"editor":{},"viewer":{}}}}}';
    expect(() => checkModelDocument(json)).toThrow(
      'model_json: $.namespaces.doc.relations: duplicate key "viewer"',
    );
  });

  test('takes the same name in different places, and refuses what parseModel refuses', () => {
    const relations = { viewer: {}, relations: { union: [{ computed: 'viewer' }, { this: {} }] } };
    const json = JSON.stringify({ namespaces: { doc: { relations }, viewer: { relations } } });
    expect(pathOfError(json, checkModelDocument)).toBeUndefined();
    expect(pathOfError('{', checkModelDocument)).toBe('$');
  });
});
