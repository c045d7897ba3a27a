import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printGate } from '../../src/language/gate/print-gate-tree.ts';
import { importPeerModel, type ImportedModel } from '../../src/language/peers/import-peer-model.ts';
import { importSuite } from '../../src/language/peers/import-suite.ts';
import { readSpiceDbSchema } from '../../src/language/spicedb/read-spicedb-schema.ts';
import { readValidationFile } from '../../src/language/spicedb/read-validation-file.ts';
import { assertionOf, relationshipOf } from '../../src/language/spicedb/relationship-text.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { anyCharacter } from '../support/any-text.ts';

const SCHEMA = `use expiration
use partial

/** A person. */
definition org/user {}

caveat org/in_office(ip ipaddress, cidrs list<string>, extra map<any>) {
  // where
  cidrs.exists(cidr, ip.in_cidr(cidr)) || size({'}': 1}) > 1
}

partial archived {
  relation archived: org/user:*
}

definition team {
  relation direct: org/user | team#member
  permission member = direct; permission nobody = nil
}

definition document {
  relation parent: document | team
  relation viewer: org/user with org/in_office | org/user:* | team#member with expiration
    | org/user#... with org/in_office and expiration
  ...archived
  relation banned: org/user
  permission view: org/user = viewer + parent->view - banned - nil
  permission strict = (viewer & parent.any(view)) - (banned + nil)
  permission mixed = viewer - banned + archived & viewer
}
`;

function importSchema(text: string, userType?: string): ImportedModel {
  return importPeerModel(readSpiceDbSchema(text), { userType });
}

function problemsOf(text: string): readonly string[] {
  return importSchema(text).problems.map((one) => `${one.place}: ${one.text}`);
}

describe('schemas', () => {
  test('every form', () => {
    const imported = importSchema(SCHEMA);
    expect(imported.problems).toEqual([]);
    expect(printGate(imported.document)).toBe(`schema 1

condition org_in_office(ip: ipaddress, cidrs: list<string>, extra: map<any>) {
  // where
  cidrs.exists(cidr, ip.in_cidr(cidr)) || size({'}': 1}) > 1
}

namespace team {
  relation direct: [user, team#member]
  relation member: direct
  relation nobody: [user] but not this
  relation view: [user] but not this
}

namespace document {
  relation parent: [document, team]
  relation viewer:
    [
      user with org_in_office,
      user:*,
      team#member with expiration,
      user with org_in_office and expiration,
    ]
  relation archived: [user:*]
  relation banned: [user]
  relation view: (viewer or view from parent) but not banned
  relation strict: (viewer and view from parent) but not banned
  relation mixed: viewer but not ((banned or archived) and viewer)
}
`);
    expect(imported.notes.map((one) => `${one.place}: ${one.text}`)).toEqual([
      'definition document, permission view (line 27): the types that it is annotated with are not kept',
      'caveat org/in_office (line 7): the condition org/in_office is called org_in_office',
      'the model: objects of the type org/user are users',
      'the model: a question brings a context, an empty one at least: without any, conditions deny',
      'definition team, permission nobody (line 18): nobody holds it, whatever is written',
      'definition team (line 16): it has no view, which others walk to: one that nobody holds stands for it',
    ]);
  });

  test.each([
    ['a.all(b)', 'a.all(b) asks every related object for b: rules ask for any one here'],
    ['a->b->c', 'an arrow over an arrow has no form here'],
    ['self', 'self is the object as its own subject, which has no form here'],
    ['c->b', 'c is computed, and walks follow stored tuples only'],
    ['w->b', 'w admits doc:*, which leads nowhere here'],
    ['zz', 'the type doc has no relation zz'],
    ['zz->b', 'the type doc has no relation zz'],
    ['u->b', 'u admits users only, so that no walk leads anywhere'],
  ])('permission %s: %s', (expression, reason) => {
    const text = [
      'use self',
      'definition user {}',
      'definition doc {',
      'relation a: doc',
      'relation b: user',
      'relation w: doc:*',
      'relation u: user',
      'permission c = b',
      `permission p = ${expression}`,
      '}',
    ].join('\n');
    expect(problemsOf(text)).toContain(`definition doc, permission p (line 9): ${reason}`);
  });

  test.each([
    [
      'definition user {',
      'line 1, column 18: expected relation, permission or "}" but found the end',
    ],
    ['definition a { relation b: }', 'line 1, column 28: expected a type but found }'],
    ['definition a {\n permission b = $\n}', 'line 2, column 17: "$" means nothing'],
    [
      'namespace a {}',
      'line 1, column 1: expected definition, caveat, partial or use but found namespace',
    ],
    ['use magic', 'line 1, column 5: expected expiration, typechecking, self, partial, import'],
    ['caveat a(b int) { b < 5', 'line 1, column 17: the expression does not end'],
    ['import "other.zed"', 'import "other.zed" (line 1): imports are not followed'],
    ['definition a { ...b }', 'definition a (line 1): the partial b is not there'],
    ['partial b { ...b }\ndefinition a { ...b }', 'the partial b contains itself'],
    ['definition a {}\ndefinition a {}', 'definition a (line 2): the type a is declared twice'],
    ['definition a { relation b: a relation b: a }', 'the relation b is declared twice'],
    ['caveat c(n uint) { n < 5u }\ndefinition a {}', 'parameter n: there is no type uint here'],
    ['caveat c(n bytes) { true }\ndefinition a {}', 'parameter n: there is no type bytes here'],
    ['definition a { relation b: a with c }', 'there is no condition c'],
    ['definition a { relation b: c }', 'there is no type c'],
    ['definition a { relation b: a#c }', 'the type a has no relation c'],
  ])('%j: %s', (text, problem) => {
    expect(problemsOf(text).join('\n')).toContain(problem);
  });

  test('words are words only where they are used', () => {
    const text =
      'caveat expiration(a int) { a < 5 }\ndefinition user {}\ndefinition d { relation self: user with expiration\n permission p = self }';
    expect(printGate(importSchema(text).document)).toContain(
      '  relation self: [user with "expiration"]\n  relation p: self\n',
    );
  });
});

describe('validation files', () => {
  const FILE = `schema: |-
  use expiration
  caveat few(n int) { n < 5 }
  definition user {}
  definition doc {
    relation viewer: user | user with few | user with expiration | user:*
    permission view = viewer
  }
relationships: |
  // people
  doc:1#viewer@user:ann
  doc:1#viewer@user:bob[few:{"n":9}]
  doc:1#viewer@user:cat[few]

  doc:2#viewer@user:dan[expiration:2200-01-01T00:00:00.5Z]
assertions:
  assertTrue:
    - doc:1#view@user:ann
    - 'doc:1#view@user:cat with {"n": 1}'
  assertCaveated: ["doc:1#view@user:cat"]
  assertFalse: ["doc:1#view@user:bob", "doc:1#view@user:*"]
validation:
  doc:1#view:
    - "[user:ann] is <doc:1#viewer>"
    - "[user:cat[...]] is <doc:1#viewer>"
    - "[user:* - {user:eve}] is <doc:1#viewer>"
`;

  test('become tuples and questions', () => {
    const { schema, suite } = readValidationFile(FILE, String);
    const imported = importSchema(schema.kind === 'text' ? schema.text : '');
    expect(imported.problems).toEqual([]);
    const asked = importSuite(imported, suite);
    expect(asked.problems).toEqual([]);
    expect(
      asked.tuples.map((one) => [one.conditionName, one.conditionParams, one.expiresAtUs]),
    ).toEqual([
      [undefined, undefined, undefined],
      ['few', '{"n":9}', undefined],
      ['few', undefined, undefined],
      [undefined, undefined, BigInt(Date.parse('2200-01-01T00:00:00.500Z')) * 1000n],
    ]);
    expect(
      asked.tests[0]?.checks.map((one) => [one.subject, one.contextJson, one.isAllowed]),
    ).toEqual([
      [{ kind: 'user', userId: 'ann' }, '{}', true],
      [{ kind: 'user', userId: 'cat' }, '{"n":1}', true],
      [{ kind: 'user', userId: 'cat' }, '{}', false],
      [{ kind: 'user', userId: 'bob' }, '{}', false],
      [{ kind: 'user', userId: 'ann' }, '{}', true],
      [{ kind: 'user', userId: 'cat' }, '{}', false],
    ]);
    expect(asked.unsupported.map(({ place }) => place)).toEqual([
      'validation, doc:1#view, [2]',
      'assertFalse[1]',
    ]);
  });

  test.each([
    ['schemaFile: ./a.zed', undefined],
    ['relationships: ""', 'has neither schema nor schemaFile'],
    [
      'schema: a\nrelationships: "doc:1#viewer"',
      'relationships, line 1: "doc:1#viewer" is no relationship',
    ],
    ['schema: a\nrelationshipsFile: "\\n#"', '\n#, line 2: "#" is no relationship'],
    [
      'schema: a\nassertions: { assertTrue: [\'a:b#c@d:e with {"n":[9007199254740993]}\'] }',
      'assertTrue[0], context.n[0]: 9007199254740993 is beyond 2^53',
    ],
    ['schema: a\nassertions: { assertTrue: [1] }', 'assertTrue[0]: must be a string'],
    ['schema: a\nassertions: { assertTrue: ["a:b#c@d:e with {"] }', 'assertTrue[0]: { is no JSON'],
    [
      'schema: a\nassertions: { assertTrue: ["a:b#c@d:e[f]"] }',
      'an assertion has its context behind',
    ],
  ])('%j', (text, problem) => {
    if (problem === undefined)
      expect(readValidationFile(text, String).schema).toEqual({ kind: 'file', path: './a.zed' });
    else expect(() => readValidationFile(text, String)).toThrow(problem);
  });

  test('relationships', () => {
    expect(relationshipOf('a/b:x|y=1#c@d/e:f-g#...', '')).toMatchObject({
      object: { type: 'a/b', id: 'x|y=1', relation: '' },
      relation: 'c',
      subject: { type: 'd/e', id: 'f-g', relation: '' },
    });
    const both = relationshipOf('a:b#c@d:e#f[g/h:{"i":"]"}][expiration:2030-01-01T00:00:00Z]', '');
    expect(both).toMatchObject({
      condition: 'g/h',
      context: { i: ']' },
      expiresAt: '2030-01-01T00:00:00Z',
    });
    expect(both.subject.relation).toBe('f');
    expect(assertionOf('a:b#c@d:e  with {"x": " with "}', true, '').context).toEqual({
      x: ' with ',
    });
  });
});

describe('hostile text', () => {
  test('whatever it is, it is read or refused', () => {
    const words = fc.constantFrom(
      ...'definition user caveat relation permission partial use import nil self with and expiration a b { } ( ) : | # * + & - -> . , = ... // /* */ " < >'.split(
        ' ',
      ),
      '\n',
      '\u0000',
      '\ud800',
    );
    const text = fc.oneof(
      fc.array(words, { maxLength: 60 }).map((list) => list.join(' ')),
      fc.string({ unit: anyCharacter, maxLength: 200 }),
      fc.tuple(fc.nat(SCHEMA.length), fc.nat(20), fc.string()).map(([at, length, put]) => {
        return SCHEMA.slice(0, at) + put + SCHEMA.slice(at + length);
      }),
    );
    fc.assert(
      fc.property(text, (one) => {
        const imported = importSchema(one);
        expect(imported.document === undefined).toBe(imported.problems.length > 0);
        for (const read of [
          (file: string) => readValidationFile(file, String),
          (file: string) => relationshipOf(file, ''),
        ]) {
          try {
            read(one);
          } catch (error) {
            if (!(error instanceof AppError)) throw error;
          }
        }
      }),
      { numRuns: 500 },
    );
  }, 60_000);

  test('nesting and size are bounded', () => {
    const within = (expression: string): string =>
      `definition user {}\ndefinition doc { relation a: user\n permission p = ${expression} }`;
    expect(problemsOf(within('('.repeat(200_000)))[0]).toContain('nested more than 100 deep');
    expect(problemsOf(within(`a${' - a'.repeat(200_000)}`))[0]).toContain('nested more than 100');
    expect(problemsOf(within(`a${' - a'.repeat(80)}`))[0]).toContain('nested more than 32 deep');
    expect(problemsOf(`caveat c(a ${'list<'.repeat(200_000)}`)[0]).toContain('nested too deep');
    expect(problemsOf(' '.repeat(1024 * 1024 + 1))[0]).toContain('is longer than');
    const names = Array.from({ length: 60 }, (_, at) => `p${at}`);
    const partials = names.map((name, at) => `partial ${name} { ...p${at + 1}\n ...p${at + 1} }`);
    const bomb = `${partials.join('\n')}\npartial p60 {}\ndefinition user { ...p0 }`;
    expect(problemsOf(bomb)[0]).toContain('more than 65536 members');
  });
});
