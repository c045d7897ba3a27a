import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../../test/support/any-text.ts';
import { readAssertionFile } from './assertion-file.ts';
import { subjectFromText, textOfTuple, tupleFromText } from './tuple-text.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

const problemsOf = (text: string) =>
  (readAssertionFile(text).problems ?? []).map(({ line, message }) => `${line}: ${message}`);

function documentOf(text: string) {
  const { document, problems } = readAssertionFile(text);
  if (document === undefined) throw new Error(JSON.stringify(problems));
  return document;
}

const FULL = `# a comment
name: drive
model_file: drive.gate
now: 2026-01-01T00:00:00Z
context:
  ip: 10.0.0.1
tuples:
  - doc:readme#viewer@user:alice
  - tuple: doc:plan#viewer@group:eng#member
    condition: ip_in_cidrs
    params: { cidrs: [10.0.0.0/8] }
    expires_at: 2030-01-31T12:00:00.5Z
tests:
  - name: readers
    tuples:
      - doc:readme#parent@folder:f
    allow:
      - doc:readme#viewer@user:alice
      - check: doc:plan#viewer@group:eng#member
        context: { ip: 10.1.1.1 }
    deny: [doc:readme#viewer@user:bob]
    check:
      - user: user:alice
        object: doc:readme
        context: {}
        assertions: { viewer: true, editor: false }
    list_objects:
      - user: user:alice
        type: doc
        assertions:
          viewer: [doc:readme, doc:a, doc:readme]
          editor: []
  - now: 2027-01-01T00:00:00Z
    deny: [doc:x#viewer@folder:f]
`;

describe('a file of assertions', () => {
  test('is read with its lines', () => {
    const { model, tuples, tests } = documentOf(FULL);
    expect(model).toEqual({ kind: 'file', value: 'drive.gate', line: 3 });
    expect(tuples.map(({ line }) => line)).toEqual([8, 9]);
    expect(tuples[1]?.tuple).toMatchObject({
      conditionName: 'ip_in_cidrs',
      conditionParams: '{"cidrs":["10.0.0.0/8"]}',
      expiresAtUs: 1_896_091_200_500_000n,
      subject: { kind: 'set', namespace: 'group', objectId: 'eng', relation: 'member' },
    });
    const [first, second] = tests;
    expect(first).toMatchObject({ name: 'readers', line: 14, nowMs: 1_767_225_600_000 });
    expect(first?.assertions.map((one) => [one.line, one.kind, one.expected])).toEqual([
      [18, 'check', true],
      [19, 'check', true],
      [21, 'check', false],
      [26, 'check', true],
      [26, 'check', false],
      [31, 'listObjects', ['a', 'readme']],
      [32, 'listObjects', []],
    ]);
    const contexts = first?.assertions.flatMap((one) =>
      one.kind === 'check' ? [one.contextJson] : [],
    );
    expect(contexts).toEqual([
      '{"ip":"10.0.0.1"}',
      '{"ip":"10.1.1.1"}',
      '{"ip":"10.0.0.1"}',
      '{}',
      '{}',
    ]);
    expect(second).toMatchObject({ name: 'test 2', nowMs: 1_798_761_600_000 });
  });

  test('an empty context is one, and a context without a value is none', () => {
    const contextOf = (own: string): unknown => {
      const entry = `{ check: 'a:b#c@user:d'${own} }`;
      const [only] = documentOf(`context: { x: 1 }\ntests: [{ allow: [${entry}] }]`).tests;
      const [first] = only?.assertions ?? [];
      return first?.kind === 'check' ? first.contextJson : undefined;
    };
    expect(contextOf('')).toBe('{"x":1}');
    expect(contextOf(', context: {}')).toBe('{}');
    expect(contextOf(', context: ')).toBe('');
    expect(contextOf(', context: null')).toBe('');
  });

  test('brings its model along as text, or as a mapping', () => {
    const tests = 'tests: [{ allow: [a:b#c@user:d] }]';
    expect(documentOf(`model: |\n  namespace doc {\n  }\n${tests}`).model).toEqual({
      kind: 'text',
      value: 'namespace doc {\n}\n',
      line: 1,
    });
    const { model } = documentOf(`model:\n  namespaces: { doc: { relations: {} } }\n${tests}`);
    expect(model).toEqual({
      kind: 'text',
      value: '{"namespaces":{"doc":{"relations":{}}}}',
      line: 2,
    });
  });

  test.each([
    ['', ['1: a file of assertions must be a mapping', '1: tests: a file has one at least']],
    ['tests: 5', ['1: tests must be a list', '1: tests: a file has one at least']],
    ['tests:\n  - name: x', ['2: a test asserts something: allow, deny, check or list_objects']],
    ['tests:\n  - alow: []', ['2: "alow" is not known here; did you mean "allow"?']],
    [
      'tests:\n  - allow:\n    - doc:readme',
      ['3: check: must read namespace:object#relation@subject'],
    ],
    [
      'tests:\n  - allow:\n    - Doc:a#b@user:c',
      ['3: check: the namespace: must match [a-z][a-z0-9_-]{0,63}'],
    ],
    [
      'tests:\n  - allow:\n    - doc:a#b@user:*',
      ['3: a question is about one user or set: user:* stands in tuples alone'],
    ],
    [
      'tests:\n  - allow:\n    - doc:a#b@alice',
      ['3: check: the subject must read user:…, namespace:object#relation or namespace:object'],
    ],
    [
      'tuples: [a:b#c@user:d]\ntests:\n  - tuples:\n    - a:b#c@user:d\n    allow: [a:b#c@user:d]',
      ['4: a:b#c@user:d stands on line 1 already'],
    ],
    [
      'tests:\n  - check:\n    - user: user:a\n      object: doc:a\n      assertions: { viewer: yes }',
      ['5: viewer must be true or false'],
    ],
    [
      'tests:\n  - check:\n    - user: user:a\n      object: doc:a\n      assertions: {}',
      ['5: assertions: names one relation at least'],
    ],
    [
      'tests:\n  - list_objects:\n    - user: group:a#b\n      type: doc\n      assertions: { viewer: [] }',
      ['3: user: objects are listed for a user, as user:alice'],
    ],
    [
      'tests:\n  - list_objects:\n    - user: user:a\n      type: doc\n      assertions:\n        viewer: [file:a]',
      ['6: an object must read doc:…, as the list is of this type'],
    ],
    [
      'now: yesterday\ntests: [{ allow: [a:b#c@user:d] }]',
      ['1: now must be a time as 2030-01-31T12:00:00Z'],
    ],
    [
      'tuples: [{ tuple: a:b#c@user:d, params: {} }]\ntests: [{ allow: [a:b#c@user:d] }]',
      ['1: params need a condition'],
    ],
    [
      'a: &x 1\ntests: *x',
      [
        '1: "a" is not known here; a file of assertions has name, model, model_file, tuples, context, now, tests',
        '2: tests must be a list',
        '1: tests: a file has one at least',
      ],
    ],
    [
      'context: { a: !!binary aGk= }\ntests: [{ allow: [a:b#c@user:d] }]',
      ['1: anchors, aliases and tags are not taken'],
    ],
    [
      'tests: []\ntests: []',
      ['2: "tests" stands twice in one mapping', '1: tests: a file has one at least'],
    ],
    ['tests: []\n---\ntests: []', ['2: one file holds one document']],
    [
      'tests: [',
      ['1: Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ],
  ])('%j: %j', (text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  test('has bounds', () => {
    expect(problemsOf(`# ${'x'.repeat(1024 * 1024)}`)).toEqual([
      '1: a file has at most 1048576 bytes',
    ]);
    expect(problemsOf('['.repeat(200_000))).not.toEqual([]);
    expect(
      problemsOf(
        `context: ${'{a: '.repeat(100)}1${'}'.repeat(100)}\ntests: [{ allow: [a:b#c@user:d] }]`,
      ),
    ).toEqual(['1: is nested more than 64 deep']);
    const many = Array.from({ length: 10_001 }, (_, i) => `- a:b#c@user:${i}`).join('\n');
    expect(problemsOf(`tuples:\n${many}\ntests: [{ allow: [a:b#c@user:d] }]`)).toEqual([
      '1: a file has at most 10000 tuples',
    ]);
    expect(problemsOf(`tests:\n- allow:\n  ${many.replaceAll('\n', '\n  ')}`)).toEqual([
      '2: a file has at most 10000 assertions',
    ]);
    expect(problemsOf('a\u0000')).toEqual(['1: is not well-formed Unicode']);
  });
});

const ids = fc
  .string({ unit: anyCharacter, minLength: 1, maxLength: 20, size: 'max' })
  .filter((id) => /^[^\p{Cc}#]+$/u.test(id) && id.isWellFormed() && Buffer.byteLength(id) <= 256);
const names = fc.stringMatching(/^[a-z][a-z0-9_-]{0,8}$/);

test(`a text of a tuple has one meaning (seed ${seed})`, () => {
  const subjects = fc.oneof(
    fc.record({ kind: fc.constant('user' as const), userId: ids.filter((id) => id !== '*') }),
    fc.constant({ kind: 'wildcard' as const }),
    fc.record({
      kind: fc.constant('set' as const),
      namespace: names.filter((name) => name !== 'user'),
      objectId: ids,
      relation: fc.oneof(names, fc.constant('')),
    }),
  );
  fc.assert(
    fc.property(names, ids, names, subjects, (namespace, objectId, relation, subject) => {
      const tuple = { namespace, objectId, relation, subject };
      expect(tupleFromText(textOfTuple(tuple))).toEqual(tuple);
    }),
    { numRuns: 300 * FUZZ_RUNS, seed },
  );
  expect(subjectFromText('user:a:b@c|d')).toEqual({ kind: 'user', userId: 'a:b@c|d' });
});

test(`whatever a text says, it is read or refused with places (seed ${seed})`, () => {
  const pieces = fc.constantFrom(
    'tests',
    'allow',
    'deny',
    'check',
    'list_objects',
    'tuples',
    'context',
    'model',
    ': ',
    '\n',
    '  ',
    '- ',
    'a:b#c@user:d',
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    '|',
    '>',
    '&a',
    '*a',
    '!!str',
    '---',
    '? ',
    'true',
    'null',
    '1e400',
    '\u0085',
    '\ud800',
    '#',
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 60, size: 'max' }), (parts) => {
      const { document, problems } = readAssertionFile(parts.join(''));
      if (document === undefined) {
        expect(problems.length).toBeGreaterThan(0);
        for (const { line, column } of problems) expect(Math.min(line, column)).toBeGreaterThan(0);
      } else expect(document.tests.length).toBeGreaterThan(0);
    }),
    { numRuns: 1_000 * FUZZ_RUNS, seed },
  );
});
