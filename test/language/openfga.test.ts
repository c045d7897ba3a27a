import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { printGate } from '../../src/language/gate/print-gate-tree.ts';
import {
  readOpenFgaDsl,
  readOpenFgaJson,
  readOpenFgaMod,
  readOpenFgaModules,
} from '../../src/language/openfga/read-openfga-model.ts';
import { readStoreFile, referenceOf } from '../../src/language/openfga/read-store-file.ts';
import { readSuiteFile } from '../../src/language/openfga/read-suite-file.ts';
import { importPeerModel, type ImportedModel } from '../../src/language/peers/import-peer-model.ts';
import { importSuite } from '../../src/language/peers/import-suite.ts';
import { tupleLine } from '../../src/language/peers/tuple-line.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { anyCharacter } from '../support/any-text.ts';
import { byLength } from '../support/test-length.ts';

const DSL = `model
  schema 1.1

type user

type Team
  relations
    define member: [user, Team#member]

type folder
  relations
    define viewer: [user, user:*] or viewer from parent
    define parent: [folder]

type document
  relations
    define parent: [folder, Team]
    define banned: [user]
    define editor: [user with inOffice, Team#member]
    define viewer: ([user] or editor or viewer from parent) but not banned

condition inOffice(ip: ipaddress, cidrs: list<string>) {
  cidrs.exists(cidr, ip.in_cidr(cidr))
}
`;

function importDsl(text: string, userType?: string): ImportedModel {
  return importPeerModel(readOpenFgaDsl(text), { userType });
}

function problemsOf(text: string, userType?: string): readonly string[] {
  return importDsl(text, userType).problems.map((one) => `${one.place}: ${one.text}`);
}

function typesOf(relations: string, others = ''): string {
  return `model\n  schema 1.1\ntype user\ntype app\n${others}type doc\n  relations\n${relations}\n`;
}

describe('models', () => {
  test('every form, in the order of the text', () => {
    const imported = importDsl(DSL);
    expect(imported.problems).toEqual([]);
    expect(printGate(imported.document)).toBe(`schema 1

condition inoffice(ip: ipaddress, cidrs: list<string>) {
  cidrs.exists(cidr, ip.in_cidr(cidr))
}

namespace team {
  relation member: [user, team#member]
  relation viewer: [user] but not this
}

namespace folder {
  relation viewer: [user, user:*] or viewer from parent
  relation parent: [folder]
}

namespace document {
  relation parent: [folder, team]
  relation banned: [user]
  relation editor: [user with inoffice, team#member]
  relation viewer: ([user] or editor or viewer from parent) but not banned
}
`);
    expect(imported.notes.map((one) => `${one.place}: ${one.text}`)).toEqual([
      'type Team (line 6): the type Team is called team',
      'condition inOffice (line 22): the condition inOffice is called inoffice',
      'the model: objects of the type user are users',
      'the model: a question brings a context, an empty one at least: without any, conditions deny',
      'type Team (line 6): it has no viewer, which others walk to: one that nobody holds stands for it',
    ]);
  });

  test('JSON says the same as the language', () => {
    const json = {
      schema_version: '1.1',
      type_definitions: [
        { type: 'user' },
        {
          type: 'doc',
          relations: {
            owner: { this: {} },
            viewer: {
              union: {
                child: [
                  { this: {} },
                  { computedUserset: { object: '', relation: 'owner' } },
                  {
                    tupleToUserset: {
                      tupleset: { relation: 'parent' },
                      computedUserset: { relation: 'viewer' },
                    },
                  },
                ],
              },
            },
            parent: { this: {} },
            reader: {
              difference: {
                base: { computedUserset: { relation: 'viewer' } },
                subtract: { computed_userset: { relation: 'owner' } },
              },
            },
            both: {
              intersection: {
                child: [
                  { computedUserset: { relation: 'viewer' } },
                  { computedUserset: { relation: 'owner' } },
                ],
              },
            },
          },
          metadata: {
            relations: {
              owner: { directly_related_user_types: [{ type: 'user' }] },
              viewer: {
                directly_related_user_types: [
                  { type: 'user', condition: '' },
                  { type: 'user', wildcard: {} },
                  { type: 'doc', relation: 'owner' },
                ],
              },
              parent: { directly_related_user_types: [{ type: 'doc' }] },
            },
          },
        },
      ],
    };
    const imported = importPeerModel(readOpenFgaJson(JSON.stringify(json)), {
      userType: undefined,
    });
    expect(imported.problems).toEqual([]);
    expect(printGate(imported.document)).toContain(
      [
        '  relation owner: [user]',
        '  relation viewer: [user, user:*, doc#owner] or owner or viewer from parent',
        '  relation parent: [doc]',
        '  relation reader: viewer but not owner',
        '  relation both: viewer and owner',
      ].join('\n'),
    );
  });

  test('modules are one model, and places name their files', () => {
    const core =
      'module core\n\ntype user\n\ntype organization\n  relations\n    define member: [user]\n';
    const wiki = [
      'module wiki',
      'extend type organization',
      '  relations',
      '    define editor: [user] or member',
      'type page',
      '  relations',
      '    define space: [organization]',
      '    define viewer: editor from space',
      '    define public: [organization] but not banned',
      '    define banned: [user:*, organization]',
    ].join('\n');
    expect(readOpenFgaMod("schema: '1.2'\ncontents:\n  - core.fga\n  - wiki.fga\n")).toEqual({
      files: ['core.fga', 'wiki.fga'],
      problems: [],
    });
    const files = [
      { name: 'core.fga', text: core },
      { name: 'wiki.fga', text: wiki },
    ];
    const refused = importPeerModel(readOpenFgaModules(files), { userType: 'user' });
    expect(refused.problems.map(({ place }) => place)).toEqual([
      'type page, relation public (wiki.fga, line 9)',
    ]);
    const wikiAlone = { name: 'wiki.fga', text: wiki.replace(/\n.*public.*/, '') };
    const imported = importPeerModel(
      readOpenFgaModules([files[0] as typeof wikiAlone, wikiAlone]),
      {
        userType: undefined,
      },
    );
    expect(printGate(imported.document)).toContain('  relation editor: [user] or member\n');
  });

  test('what cannot be expressed is said, with the place and the reason', () => {
    const excluded = typesOf(
      '    define viewer: [user, app] but not banned\n    define banned: [user:*, app]',
    );
    expect(problemsOf(excluded)).toEqual([
      'type doc, relation viewer (line 7): it excludes everybody by a wildcard, which here excludes app, too',
    ]);
    const throughUsers = [
      'model\n  schema 1.1\ntype user\n  relations\n    define manager: [user]',
      'type doc\n  relations\n    define owner: [user]\n    define boss: manager from owner\n',
    ].join('\n');
    expect(problemsOf(throughUsers)).toEqual([
      expect.stringContaining(
        'type doc, relation boss (line 9): it walks from owner to manager of user, whose objects are users here',
      ),
      expect.stringContaining('owner admits users only'),
    ]);
    expect(printGate(importDsl(throughUsers, 'none').document)).toContain(
      'namespace user_ {\n  relation manager: [user_]\n}',
    );
    const unsigned = `${typesOf('    define viewer: [user with few]')}condition few(Count: int, x: uint) {\n  x < 5u\n}\n`;
    expect(problemsOf(unsigned)).toEqual([
      'condition few (line 8): parameter Count: the name of a parameter begins with a small letter or _ here',
      'condition few (line 8): parameter x: there is no type uint here',
    ]);
    const unknownFunction = `${typesOf('    define viewer: [user with few]')}condition few(x: int) {\n  frobnicate(x)\n}\n`;
    expect(problemsOf(unknownFunction)).toEqual([
      expect.stringContaining('condition few (line 8): the model checker says of'),
    ]);
    const collision = typesOf('    define viewer: [user]', 'type Doc\n');
    expect(problemsOf(collision)).toEqual([
      'type doc (line 6): the types Doc and doc would both become doc',
    ]);
  });

  test('wildcards of any type are taken, excluded ones as well', () => {
    const text = typesOf(
      '    define viewer: [user, app:*] but not banned\n    define banned: [user, app, app:*]',
    );
    const imported = importDsl(text);
    expect(imported.problems).toEqual([]);
    expect(printGate(imported.document)).toContain(
      [
        '  relation viewer: [user, app:*] but not banned',
        '  relation banned: [user, app, app:*]',
      ].join('\n'),
    );
    const named = printGate(importDsl(text, 'none').document);
    expect(named).toContain('  relation viewer: [user_, app:*] but not banned');
    const tuple = (id: string, relation: string) => ({
      object: { type: 'doc', id: 'd', relation: '' },
      relation: 'viewer',
      subject: { type: 'app', id, relation },
      condition: undefined,
      context: undefined,
      expiresAt: undefined,
      place: 'tuple 1',
    });
    const suite = { tuples: [tuple('*', '')], tests: [], unsupported: [] };
    expect(importSuite(imported, suite).tuples[0]?.subject).toEqual({
      kind: 'wildcardOf',
      namespace: 'app',
    });
    expect(JSON.parse(tupleLine(tuple('*', ''), { userType: 'user' }))).toMatchObject({
      subject: { wildcard_of: 'app' },
    });
    expect(() => tupleLine(tuple('*', 'member'), { userType: 'user' })).toThrow(
      'user: app:*#member is a userset of a wildcard',
    );
  });

  test('a type of users is found, or named', () => {
    const users = (text: string, asked?: string): string | undefined =>
      importDsl(text, asked).userType;
    const people =
      'model\n  schema 1.1\ntype person\ntype doc\n  relations\n    define viewer: [person]\n';
    expect(users(people)).toBe('person');
    expect(users(people, 'none')).toBeUndefined();
    expect(users(typesOf('    define viewer: [app, app:*]').replace('type user', 'type bot'))).toBe(
      'app',
    );
    expect(problemsOf(people, 'nobody')).toEqual([
      'the model: it has no type nobody whose objects could be users',
    ]);
  });

  test('groups and workspaces of the service keep their meaning', () => {
    const text = [
      'model\n  schema 1.1\ntype user',
      'type group\n  relations\n    define member: [user]',
      'type workspace\n  relations\n    define guest: [user, group#member]\n',
    ].join('\n');
    const imported = importDsl(text);
    expect(printGate(imported.document)).toContain('  relation member: [user, group#member]\n');
    expect(printGate(imported.document)).toContain('namespace workspace_ {');
    const conditional = `${text.replace('[user]', '[user with c]')}condition c(a: int) {\n  a < 5\n}\n`;
    expect(printGate(importDsl(conditional).document)).toContain('namespace group_ {');
  });

  test.each([
    ['model\n  schema 1.1\ntype doc\n  relations\n    define viewer [user]\n', 'line 5'],
    ['model\n  schema 1.0\ntype user\n', ''],
    ['', 'line 1'],
    ['type user', 'line 1'],
    [typesOf('    define viewer: editor'), 'line 7'],
    [typesOf('    define viewer: [user] or x from viewer'), ''],
    [typesOf('    define viewer: [person]'), ''],
  ])('%j is refused at %s', (text, place) => {
    const problems = problemsOf(text);
    expect(problems.length).toBeGreaterThan(0);
    expect(problems[0]).toContain(place);
  });
});

describe('store files', () => {
  const FILE = `name: demo
model: |
${DSL.replaceAll(/^/gm, '  ')}
tuples:
  - user: user:anne
    relation: viewer
    object: folder:plans
  - user: user:*
    relation: viewer
    object: folder:open
  - user: folder:plans
    relation: parent
    object: document:a
  - user: user:bob
    relation: editor
    object: document:a
    condition:
      name: inOffice
      context: { cidrs: [10.0.0.0/8] }
tests:
  - name: first
    tuples:
      - { user: user:carl, relation: member, object: 'Team:eng' }
    check:
      - user: user:anne
        object: document:a
        assertions: { viewer: true, editor: false }
      - users: [user:bob]
        objects: [document:a]
        context: { ip: 10.1.1.1 }
        assertions: { viewer: true }
      - user: Team:eng#member
        object: Team:eng
        assertions: { member: true }
      - user: Team:x#member
        object: Team:eng
        assertions: { member: false }
      - { user: user:anne, object: document:a, assertions: { nothing: false } }
      - { user: 'user:*', object: document:a, assertions: { viewer: false } }
    list_objects:
      - user: user:anne
        type: document
        assertions: { viewer: [document:a] }
      - user: user:bob
        type: document
        context: { ip: 10.1.1.1 }
        assertions: { viewer: [document:a] }
    list_users:
      - object: document:a
        user_filter: [{ type: user }]
        assertions: { viewer: { users: [user:anne] } }
`;

  test('become tuples and questions, and what cannot be asked is said', () => {
    const { model, suite } = readStoreFile(FILE, () => '');
    const imported = importDsl(model.kind === 'text' ? model.text : '');
    const asked = importSuite(imported, suite);
    expect(asked.problems).toEqual([]);
    expect(asked.tuples).toHaveLength(4);
    expect(asked.tuples[1]?.subject).toEqual({ kind: 'wildcard' });
    expect(asked.tuples[2]?.subject).toEqual({
      kind: 'set',
      namespace: 'folder',
      objectId: 'plans',
      relation: '',
    });
    expect(asked.tuples[3]).toMatchObject({
      conditionName: 'inoffice',
      conditionParams: '{"cidrs":["10.0.0.0/8"]}',
    });
    const [first] = asked.tests;
    expect(first?.tuples).toHaveLength(1);
    expect(
      first?.checks.map((check) => [check.relation, check.contextJson, check.isAllowed]),
    ).toEqual([
      ['viewer', '{}', true],
      ['editor', '{}', false],
      ['viewer', '{"ip":"10.1.1.1"}', true],
      ['member', '{}', true],
    ]);
    expect(first?.lists).toEqual([]);
    expect(asked.unsupported.map(({ text }) => text)).toEqual([
      'users are not listed in tests',
      'a userset is allowed here, too, if one of its members is',
      'the model has no relation nothing of document',
      'nobody can ask for the wildcard itself',
      'a list leaves tuples with a condition out',
      'a list is asked without a context',
    ]);
  });

  test('lists are of users, and hold each id once, sorted', () => {
    const text = [
      'model: x',
      'tests:',
      '  - list_objects:',
      '      - { user: user:a, type: doc, assertions: { viewer: [doc:b, doc:a, doc:b], owner: } }',
      '      - { user: app:a, type: doc, assertions: { viewer: [] } }',
    ].join('\n');
    const model = importDsl(typesOf('    define viewer: [user, app]\n    define owner: [user]'));
    const { tests, unsupported } = importSuite(model, readStoreFile(text, () => '').suite);
    expect(tests[0]?.lists.map(({ relation, ids }) => [relation, ids])).toEqual([
      ['viewer', ['a', 'b']],
      ['owner', []],
    ]);
    expect(unsupported.map((one) => one.text)).toEqual(['objects are listed for users only']);
  });

  test('tuples that the model does not admit are left out, with a word', () => {
    const text =
      'model: |\n  model\n    schema 1.1\n  type user\n  type doc\n    relations\n      define viewer: [user]\ntuples:\n  - { user: "user:*", relation: viewer, object: "doc:1" }\n';
    const { model, suite } = readStoreFile(text, () => '');
    const imported = importDsl(model.kind === 'text' ? model.text : '');
    const { tuples, problems } = importSuite(imported, suite);
    expect(tuples).toEqual([]);
    expect(problems[0]?.text).toContain('the model does not admit it: doc#viewer admits user');
  });

  test('files that it names are read', () => {
    const text = 'model_file: ./model.fga\ntuple_file: ./t.yaml\ntuple_files: [more.json]\n';
    const files: Readonly<Record<string, string>> = {
      './t.yaml': '- { user: "user:a", relation: viewer, object: "doc:1" }',
      'more.json': '[{"user":"user:b","relation":"viewer","object":"doc:1"}]',
    };
    const { model, suite } = readStoreFile(text, (path) => files[path] ?? '');
    expect(model).toEqual({ kind: 'file', path: './model.fga' });
    expect(suite.tuples.map(({ subject }) => subject.id)).toEqual(['b', 'a']);
  });

  test.each([
    ['- a', 'must be an object'],
    ['tuples: []', 'has neither model nor model_file'],
    ['model: x\ntuples: 5', 'tuples: must be a list'],
    ['model: x\ntuples: [{user: a}]', 'tuples[0].object: must be a string'],
    [
      'model: x\ntests: [{check: [{user: "u:a", object: "d:1", assertions: {v: 1}}]}]',
      'must be true or false',
    ],
    ['model: x\ntuple_file: t.csv', 'from YAML and JSON only'],
    ['a: [', 'line 1'],
    ['['.repeat(byLength(50_000, 200_000)), ''],
    [`a: &a [1]\nb: [${'*a, '.repeat(200)}]`, ''],
  ])('%j is refused', (text, message) => {
    expect(() => readStoreFile(text, () => '')).toThrow(AppError);
    expect(() => readStoreFile(text, () => '')).toThrow(message);
  });

  test('references', () => {
    expect(referenceOf('group:a:b#member', '')).toEqual({
      type: 'group',
      id: 'a:b',
      relation: 'member',
    });
    expect(referenceOf('user:*', '')).toEqual({ type: 'user', id: '*', relation: '' });
    for (const text of ['user', ':a', 'user:', '#a:b']) {
      expect(() => referenceOf(text, 'here')).toThrow('here: ');
    }
  });
});

test("stages of OpenFGA's own suite", () => {
  const model =
    'model\n  schema 1.1\ntype user\ntype doc\n  relations\n    define viewer: [user]\n';
  const tuple = (id: string): object => ({
    user: `user:${id}`,
    relation: 'viewer',
    object: 'doc:1',
  });
  const suite = {
    tests: [
      {
        name: 'one',
        stages: [
          {
            model,
            tuples: [tuple('a')],
            checkAssertions: [{ tuple: tuple('a'), expectation: true }],
          },
          {
            model,
            tuples: [tuple('b')],
            checkAssertions: [
              { tuple: tuple('c'), contextualTuples: [tuple('c')], expectation: true },
              { tuple: tuple('d'), errorCode: 2000 },
            ],
            listObjectsAssertions: [
              {
                request: { user: 'user:a', type: 'doc', relation: 'viewer' },
                expectation: ['doc:1'],
              },
            ],
            listUsersAssertions: [{}],
          },
        ],
      },
    ],
  };
  const stages = readSuiteFile(JSON.stringify(suite));
  expect(stages.map((stage) => stage.suite.tuples.length)).toEqual([1, 2]);
  expect(stages[1]?.suite.tests.map((one) => [one.tuples.length, one.lists.length])).toEqual([
    [1, 0],
    [0, 1],
  ]);
  expect(stages[1]?.suite.unsupported).toHaveLength(2);
});

describe('hostile text', () => {
  const words = fc.constantFrom(
    ...'model schema 1.1 type user relations define viewer : [ ] or and but not from condition ( ) { } # , doc'.split(
      ' ',
    ),
    '\n',
    '  ',
    '\u0000',
    '\ud800',
  );

  test('whatever it is, it is read or refused', () => {
    const text = fc.oneof(
      fc.array(words, { maxLength: 40 }).map((list) => list.join(' ')),
      fc.string({ unit: anyCharacter, maxLength: 100 }),
      fc.tuple(fc.nat(DSL.length), fc.nat(20), fc.string()).map(([at, length, put]) => {
        return DSL.slice(0, at) + put + DSL.slice(at + length);
      }),
    );
    fc.assert(
      fc.property(text, (one) => {
        const imported = importDsl(one);
        expect(imported.document === undefined).toBe(imported.problems.length > 0);
        readOpenFgaMod(one);
        readOpenFgaModules([{ name: 'a.fga', text: one }]);
      }),
      { numRuns: byLength(25, 100) },
    );
  }, 60_000);

  test('any JSON is read or refused', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (value, other) => {
        const relations = { a: value };
        const metadata = { relations: { a: { directly_related_user_types: other } } };
        const model = {
          schema_version: '1.1',
          type_definitions: [{ type: 't', relations, metadata }],
        };
        for (const one of [value, { schema_version: '1.1', type_definitions: value }, model]) {
          const imported = importPeerModel(readOpenFgaJson(JSON.stringify(one)), {
            userType: undefined,
          });
          expect(imported.document === undefined).toBe(imported.problems.length > 0);
        }
      }),
    );
  });

  test('nesting and size are bounded', () => {
    const deep = typesOf(`    define viewer: ${'('.repeat(100_000)}[user]${')'.repeat(100_000)}`);
    expect(problemsOf(deep)[0]).toContain('nested more than 100 deep');
    expect(problemsOf(' '.repeat(1024 * 1024 + 1))[0]).toContain('is longer than');
    expect(readOpenFgaJson('['.repeat(2 * 1024 * 1024)).problems[0]?.text).toContain('longer');
    expect(readOpenFgaJson('['.repeat(500_000)).problems).toHaveLength(1);
    let rule: object = { this: {} };
    for (let i = 0; i < 1_000; i++) rule = { union: { child: [rule] } };
    const json = {
      schema_version: '1.1',
      type_definitions: [{ type: 't', relations: { a: rule } }],
    };
    expect(readOpenFgaJson(JSON.stringify(json)).problems[0]?.text).toContain('nested more than');
  });
});
