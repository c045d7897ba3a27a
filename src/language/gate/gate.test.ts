import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyCharacter } from '../../../test/support/any-text.ts';
import { byLength } from '../../../test/support/test-length.ts';
import { AppError } from '../../shared/app-error.ts';
import { blockOfExpression, endOfBlock, expressionOfBlock } from '../cel-block.ts';
import { gateProblems, parseGate } from './parse-gate.ts';
import { formatGate, printGate } from './print-gate-tree.ts';

const DRIVE = `// A drive of documents.
schema 1

condition in_office(ip: ipaddress, cidrs: list<string>) {
  cidrs.exists(cidr, ip.in_cidr(cidr))
}

namespace folder {
  relation parent: [folder]
  relation viewer: [user, user:*] or viewer from parent
}

// Documents live in folders.
open namespace document { // since spring
  relation parent: [folder]
  relation owner: [user with expiration]
  relation banned: [user without expiration]

  // What people may do.

  relation editor:
    [
      user,
      // staff
      user with in_office and expiration, // short
      group#member,
      // who else?
    ]
    or owner // always
    // and above
    or editor from parent
  relation viewer: ([user] or editor or (viewer from parent and known)) but not banned
  relation known
  // more to come
} // document

// the end
`;

const DOCUMENT = {
  schema_version: 1,
  conditions: {
    in_office: {
      parameters: { ip: 'ipaddress', cidrs: 'list<string>' },
      expression: 'cidrs.exists(cidr, ip.in_cidr(cidr))',
    },
  },
  namespaces: {
    folder: {
      relations: {
        parent: { subjects: ['folder'] },
        viewer: {
          union: [{ this: {} }, { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } }],
          subjects: ['user', 'user:*'],
        },
      },
    },
    document: {
      open: true,
      relations: {
        parent: { subjects: ['folder'] },
        owner: { subjects: [{ type: 'user', expires: true }] },
        banned: { subjects: [{ type: 'user', expires: false }] },
        editor: {
          union: [
            { this: {} },
            { computed: 'owner' },
            { tuple_to_userset: { tupleset: 'parent', computed: 'editor' } },
          ],
          subjects: [
            'user',
            { type: 'user', condition: 'in_office', expires: true },
            'group#member',
          ],
        },
        viewer: {
          exclusion: {
            include: {
              union: [
                { this: {} },
                { computed: 'editor' },
                {
                  intersection: [
                    { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } },
                    { computed: 'known' },
                  ],
                },
              ],
            },
            exclude: { computed: 'banned' },
          },
          subjects: ['user'],
        },
        known: {},
      },
    },
  },
};

/** Names as models have them, words of the language and what only quotes can hold. */
const name = fc.oneof(
  fc.stringMatching(/^[a-z][a-z0-9_-]{0,6}$/),
  fc.constantFrom('or', 'and', 'but', 'not', 'from', 'this', 'with', 'open', 'relation', 'none'),
  fc.constantFrom('a-', 'built-in', 'constructor', '__proto__', 'schema', 'expiration', 'without'),
);
const anyName = fc.oneof(name, fc.string(), fc.string({ unit: anyCharacter }));
const subjectType = fc.oneof(
  name,
  name.map((one) => `${one}:*`),
  fc.tuple(name, name).map(([one, other]) => `${one}#${other}`),
  fc.string(),
);
const subject = fc.oneof(
  subjectType,
  fc.record(
    { type: subjectType, condition: anyName, expires: fc.boolean() },
    { requiredKeys: ['type'] },
  ),
);
const { rewrite } = fc.letrec<{ rewrite: object }>((tie) => ({
  rewrite: fc.oneof(
    { depthSize: 'medium', maxDepth: 5 },
    fc.constant({}),
    fc.constant({ this: {} }),
    fc.record({ computed: name }),
    fc.record({ tuple_to_userset: fc.record({ tupleset: name, computed: name }) }),
    fc.record({ union: fc.array(tie('rewrite'), { minLength: 1, maxLength: 4 }) }),
    fc.record({ intersection: fc.array(tie('rewrite'), { minLength: 1, maxLength: 4 }) }),
    fc.record({ exclusion: fc.record({ include: tie('rewrite'), exclude: tie('rewrite') }) }),
  ),
}));
const relation = fc
  .tuple(rewrite, fc.option(fc.array(subject, { maxLength: 5 }), { nil: undefined }))
  .map(([rule, subjects]) => (subjects === undefined ? rule : { ...rule, subjects }));
const expression = fc.oneof(
  fc.constantFrom('a < 5', 'a &&\n  b', '{"a": 1}["a"] == 1', "'}' == a // }", 'r"\\" == s'),
  fc.string({ unit: fc.constantFrom('a', ' ', '\n', '{', '}', '"', "'", '\\', '/', 'r', '\t') }),
  fc.string(),
  fc.string({ unit: anyCharacter }),
);
const wellFormed = (value: unknown): boolean =>
  !JSON.stringify(value).match(/\\ud[89a-f][0-9a-f]{2}/);
const condition = fc.record(
  {
    parameters: fc.dictionary(
      anyName,
      fc.oneof(
        fc.constantFrom('int', 'list<string>', 'map<list<any>>', 'or', 'list<with>'),
        fc.string(),
      ),
      { maxKeys: 4 },
    ),
    expression,
  },
  { requiredKeys: ['expression'] },
);
const model = fc
  .record(
    {
      schema_version: fc.constant(1),
      conditions: fc.dictionary(anyName, condition, { maxKeys: 3 }),
      namespaces: fc.dictionary(
        anyName,
        fc.record(
          { open: fc.boolean(), relations: fc.dictionary(anyName, relation, { maxKeys: 6 }) },
          { requiredKeys: ['relations'] },
        ),
        { maxKeys: 4 },
      ),
    },
    { requiredKeys: ['namespaces'] },
  )
  .filter(wellFormed);

function commentsOf(text: string): string[] {
  return text.match(/\/\/.*$/gm) ?? [];
}

describe('both ways', () => {
  test('a model of every form', () => {
    expect(parseGate(DRIVE).document).toEqual(DOCUMENT);
    expect(parseGate(printGate(DOCUMENT)).document).toEqual(DOCUMENT);
    expect(formatGate(DRIVE)).toBe(DRIVE);
  });

  test.each(['or', 'list<or>', 'map<list<this>>'])('a reserved word as a type: %s', (type) => {
    const conditions = { c: { parameters: { p: type }, expression: 'true' } };
    const text = printGate({ conditions, namespaces: {} });
    expect(text).toContain(`p: "${type}"`);
    expect(parseGate(text).document).toEqual({ conditions, namespaces: {} });
  });

  test('JSON → gate → JSON is equal, and the text is formatted', () => {
    fc.assert(
      fc.property(model, (document) => {
        const text = printGate(document);
        const parsed = parseGate(text);
        expect(parsed.document).toEqual(JSON.parse(JSON.stringify(document)));
        expect(JSON.parse(parsed.json)).toEqual(parsed.document);
        expect(formatGate(text)).toBe(text);
      }),
      { numRuns: byLength(100, 1000) },
    );
  });

  test('gate → JSON → gate is the formatted text, however it was laid out', () => {
    const gap = fc.constantFrom(' ', '\n', '\n\n\n', '\t', '\r\n', ' \n ');
    fc.assert(
      fc.property(model, fc.array(gap, { minLength: 50, maxLength: 50 }), (document, gaps) => {
        // Conditions are left as they are: white space is part of an expression.
        const { conditions, ...rest } = document;
        const text = printGate(rest);
        let at = 0;
        const laidOut = text.replaceAll(/("(?:[^"\\\n]|\\.)*")|\s+/g, (found, quoted) =>
          quoted === undefined ? (gaps[at++ % gaps.length] as string) : found,
        );
        expect(formatGate(laidOut)).toBe(text);
        expect(printGate(parseGate(laidOut).document)).toBe(text);
        expect(conditions).toBe(document.conditions);
      }),
      { numRuns: byLength(50, 500) },
    );
  });

  test('comments stay, each once, and a formatted text stays as it is', () => {
    const pieces = DRIVE.replaceAll(/\/\/.*$/gm, '').match(/\s+|[\w:#*<>.-]+|./g) ?? [];
    // Not within the expression, whose comments are CEL's.
    const from = pieces.findIndex((piece) => piece === 'namespace');
    fc.assert(
      fc.property(fc.array(fc.nat(2000), { minLength: 1, maxLength: 12 }), (spots) => {
        const marked = [...pieces];
        spots.forEach((spot, index) => {
          const at = from + (spot % (pieces.length - from));
          if (/^[:#*]|^\w+$/.test(pieces[at] ?? '') && /^[:#*]/.test(pieces[at + 1] ?? '')) return;
          marked[at] += ` // ${index}\n`;
        });
        const text = marked.join('');
        const formatted = formatGate(text);
        expect(formatGate(formatted)).toBe(formatted);
        expect(commentsOf(formatted).toSorted()).toEqual(commentsOf(text).toSorted());
        expect(parseGate(formatted).document).toEqual(parseGate(text).document);
      }),
      { numRuns: byLength(100, 1000) },
    );
  });
});

describe('forms that few models need', () => {
  test.each([
    ['built-in\n', { namespaces: {} }],
    ['conditions none\n\nbuilt-in\n', { conditions: {}, namespaces: {} }],
    ['namespace a {}\n', { namespaces: { a: { relations: {} } } }],
    ['closed namespace a {}\n', { namespaces: { a: { open: false, relations: {} } } }],
    [
      'namespace "or" {\n  relation "from": "and" from "but"\n}\n',
      {
        namespaces: {
          or: { relations: { from: { tuple_to_userset: { tupleset: 'but', computed: 'and' } } } },
        },
      },
    ],
    [
      'namespace a {\n  relation b [(user)]: this\n  relation c: or b\n  relation d: and ()\n}\n',
      {
        namespaces: {
          a: {
            relations: {
              b: { this: {}, subjects: [{ type: 'user' }] },
              c: { union: [{ computed: 'b' }] },
              d: { intersection: [{}] },
            },
          },
        },
      },
    ],
    ['condition c "{"\n\nbuilt-in\n', { conditions: { c: { expression: '{' } }, namespaces: {} }],
  ])('%j', (text, document) => {
    expect(parseGate(text).document).toEqual(document);
    expect(printGate(document)).toBe(text);
    expect(formatGate(text)).toBe(text);
  });

  test.each([
    ['namespace a { relation b: (c or d) }', '  relation b: c or d\n'],
    ['namespace a { relation b: ((c)) or ((d or e)) }', '  relation b: c or (d or e)\n'],
    ['namespace a { relation b: or c or d }', '  relation b: c or d\n'],
    ['namespace a { relation b [user]: c or this }', '  relation b: c or [user]\n'],
    ['namespace a { relation b: this or [user] }', '  relation b: [user] or this\n'],
    ['namespace a { relation b: [user,] }', '  relation b: [user]\n'],
  ])('%s has one layout', (text, line) => {
    expect(formatGate(text)).toBe(`namespace a {\n${line}}\n`);
  });
});

describe('expressions', () => {
  test.each([
    [' a }', 3],
    [' {"x": 1} }', 10],
    [" '}' }", 5],
    [" '\\'}' }", 7],
    [" r'\\' }", 6],
    [' """ } """ }', 11],
    [' // }\n }', 7],
    [" x' }\n }", 7],
    [' { }', undefined],
  ])('%j ends at %s', (text, end) => {
    expect(endOfBlock(text, 0)).toBe(end);
  });

  test('the indentation that all lines share is not theirs', () => {
    expect(expressionOfBlock('\n    a &&\n      b\n\n    && c\n  ')).toBe('a &&\n  b\n\n&& c');
    expect(expressionOfBlock(' a < 5 ')).toBe('a < 5');
    expect(blockOfExpression('a &&\n  b')).toBe('{\n  a &&\n    b\n}');
    expect(blockOfExpression(' a')).toBeUndefined();
    expect(blockOfExpression('a }')).toBeUndefined();
  });
});

describe('problems', () => {
  const single = (text: string): string => {
    const [first] = gateProblems(text);
    return `${first?.line}:${first?.column} ${first?.message} (${first?.hint})`;
  };

  test.each([
    ['', '1:1 expected a namespace', 'built-in'],
    ['// nothing', '1:11 expected a namespace', 'built-in'],
    ['type user', '1:1', 'namespace document { … }'],
    ['nmaespace user {}', '1:1', 'did you mean "namespace"?'],
    ['namespace a {\n  relaton b\n}', '2:3', 'did you mean "relation"?'],
    ['namespace a {\n  define b: c\n}', '2:3', 'a relation begins with "relation"'],
    ['namespace a {\n  permission b = c\n}', '2:3', 'a permission is a relation'],
    ['namespace a {\n  relation b: c + d\n}', '2:17', 'a union is written with "or"'],
    ['namespace a {\n  relation b: user | c\n}', '2:20', 'subjects are a list'],
    ['namespace a {\n  relation b: c->d\n}', '2:16', '"viewer from parent"'],
    ['namespace a {\n  relation b: c or d and e\n}', '2:22', 'parentheses'],
    ['namespace a {\n  relation b: c but not d but not e\n}', '2:27', 'parentheses'],
    ['namespace a {\n  relation b: [user] or [c]\n}', '2:25', 'lists its subjects once'],
    ['namespace a {\n  relation b: [user with c and d]\n}', '2:32', 'several are entries'],
    ['namespace a {\n  relation or: [user]\n}', '2:12', 'stands in quotes: "or"'],
    ['namespace a {\n  relation b\n  relation b\n}', '3:12', 'is there already'],
    ['namespace a {}\nnamespace a {}', '2:11', 'is there already'],
    ['namespace a {}\ncondition c() { true }', '2:1', 'stand before namespaces'],
    ['condition c(a: int, a: int) { true }', '1:21', 'is there already'],
    ['condition c(a: int) { true ', '1:21', 'does not end'],
    ['namespace a {\n  /* no */\n}', '2:3', 'a comment begins with //'],
    ['namespace a {\n  # no\n}', '2:3', 'a comment begins with //'],
    ['schema 1.1\nnamespace a {}', '1:8', 'the schema is 1'],
    ['namespace 𝒂𝒃 {}', '1:11', ''],
    ['namespace a { relation b: "𝒂𝒃" ? }', '1:32', ''],
  ])('%j: %s … %s', (text, place, hint) => {
    expect(single(text)).toContain(place);
    expect(single(text)).toContain(hint);
    expect(() => parseGate(text)).toThrow(
      expect.objectContaining({
        reason: 'MODEL_INVALID',
        message: expect.stringContaining(`line ${place.split(':')[0]}, column `) as unknown,
      }),
    );
  });

  test('several are told at once, and none that follows from another', () => {
    const text = [
      'namespace a ; {',
      '  relation b: [user]',
      '}',
      'namespace c {',
      '  relation d: or',
      '  relation e: f g',
      '  relation h: [user]',
      '}',
      'namespace i {',
      '  relation j: k + l',
      '}',
    ].join('\n');
    expect(gateProblems(text).map(({ line }) => line)).toEqual([1, 6, 6, 10]);
  });

  test('a path of the document is found in the text', () => {
    const { locate } = parseGate(DRIVE);
    const lineOf = (path: string): string | undefined =>
      DRIVE.split('\n')[locate(path).line - 1]?.slice(locate(path).column - 1);
    expect(lineOf('$.namespaces.document')).toMatch(/^open namespace document/);
    expect(lineOf('$.namespaces.document.relations.known')).toMatch(/^relation known/);
    expect(lineOf('$.namespaces.document.relations.editor.union[1]')).toMatch(/^owner \/\//);
    expect(lineOf('$.namespaces.document.relations.editor.union[1].computed')).toMatch(/^owner/);
    expect(lineOf('$.namespaces.document.relations.editor.subjects[1].condition')).toMatch(
      /^user with in_office/,
    );
    const nested =
      '$.namespaces.document.relations.viewer.exclusion.include.union[2].intersection[1]';
    expect(lineOf(nested)).toMatch(/^known\)\)/);
    expect(lineOf('$.conditions.in_office.expression')).toMatch(/^cidrs\.exists/);
    expect(locate('$.elsewhere')).toEqual({ line: 1, column: 1 });
  });
});

const WORDS =
  'namespace relation condition open or and but not from this a user with expiration schema built-in 1 \u0000 \ud800 \u2028'.split(
    ' ',
  );

const MARKS = [
  '{',
  '}',
  '(',
  ')',
  '[',
  ']',
  ':',
  '*',
  '#',
  ',',
  '"',
  "'",
  '\\',
  '//',
  '\n',
  '<',
  '>',
  '->',
];

describe('hostile text', () => {
  function typed(read: () => unknown): void {
    try {
      read();
    } catch (error) {
      if (!(error instanceof AppError) || error.reason !== 'MODEL_INVALID') throw error;
    }
  }

  test('whatever it is, it is read or refused', () => {
    const words = fc.constantFrom(...WORDS, ...MARKS);
    const text = fc.oneof(
      fc.array(words, { maxLength: 60 }).map((list) => list.join(' ')),
      fc.array(words, { maxLength: 60 }).map((list) => list.join('')),
      fc.string({ unit: anyCharacter, maxLength: 200 }),
      fc.tuple(fc.nat(DRIVE.length), fc.nat(20), fc.string()).map(([at, length, put]) => {
        return DRIVE.slice(0, at) + put + DRIVE.slice(at + length);
      }),
    );
    fc.assert(
      fc.property(text, (one) => {
        typed(() => parseGate(one));
        typed(() => expect(formatGate(formatGate(one))).toBe(formatGate(one)));
      }),
      { numRuns: byLength(300, 3000) },
    );
  });

  test('any JSON is printed or refused', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        typed(() => printGate(value));
        typed(() => printGate({ namespaces: value }));
        typed(() => printGate({ namespaces: { a: { relations: { b: value } } } }));
        typed(() => printGate({ conditions: value, namespaces: {} }));
      }),
    );
  });

  test('nesting and size are bounded', () => {
    const deep = `namespace a { relation b: ${'('.repeat(100_000)}`;
    expect(() => parseGate(deep)).toThrow('nested more than 32 deep');
    expect(() => parseGate(`condition c(a: ${'list<'.repeat(100_000)}`)).toThrow('too deep');
    expect(() => parseGate(' '.repeat(8 * 1024 * 1024 + 1))).toThrow('is longer than');
    let deepRule: object = {};
    for (let i = 0; i < 100_000; i++) deepRule = { union: [deepRule] };
    expect(() => printGate({ namespaces: { a: { relations: { b: deepRule } } } })).toThrow(
      'is nested more than 32 deep',
    );
    const long = 'a'.repeat(1024 * 1024);
    for (const text of [long, `namespace ${long} {}\nnamespace ${long} {}`, `"${long}`]) {
      expect(gateProblems(text)[0]?.message.length).toBeLessThan(200);
    }
    const many = 'namespace a { ? }\n'.repeat(100_000);
    expect(gateProblems(many)).toHaveLength(100);
  });
});
