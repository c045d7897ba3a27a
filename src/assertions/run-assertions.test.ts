import { describe, expect, test } from 'vitest';
import { parseModel } from '../model/namespace/namespace-model.ts';
import { modelOfText, testFiles } from './test-files.ts';

const MODEL = `
namespace user_group {
  relation member
}
`;
const DRIVE = parseModel(
  JSON.stringify({
    namespaces: {
      folder: { relations: { viewer: {} } },
      doc: {
        relations: {
          parent: {},
          banned: {},
          viewer: {
            exclusion: {
              include: {
                union: [{}, { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } }],
              },
              exclude: { computed: 'banned' },
            },
          },
        },
      },
    },
  }),
);
const LIMITS = { depthMax: 256, readBudget: 10_000 };

function run(text: string, model = DRIVE) {
  const files = [{ name: 'a.yaml', text }];
  return testFiles(
    files,
    () => model,
    LIMITS,
    (index) => `files[${index}].text`,
  );
}

describe('a run of assertions', () => {
  test('passes where all holds, over the tuples of the file and of each test', () => {
    const result = run(`
tuples:
  - folder:f#viewer@user:alice
  - doc:d#parent@folder:f
tests:
  - name: inherited
    allow: [doc:d#viewer@user:alice]
    deny: [doc:d#viewer@user:bob]
    list_objects:
      - { user: user:alice, type: doc, assertions: { viewer: [doc:d], banned: [] } }
  - name: banned
    tuples: [doc:d#banned@user:alice]
    deny: [doc:d#viewer@user:alice]
    list_objects:
      - { user: user:alice, type: doc, assertions: { viewer: [], banned: [doc:d] } }
`);
    expect(result).toEqual({ assertions: 7, failures: [] });
  });

  test('tells what does not hold, where, and what is instead', () => {
    const { assertions, failures } = run(`
tuples: [doc:a#viewer@user:alice, doc:b#viewer@user:alice]
tests:
  - name: wrong
    allow:
      - check: doc:c#viewer@user:alice
        context: { ip: 10.0.0.1 }
    deny:
      - doc:a#viewer@user:alice
    list_objects:
      - user: user:alice
        type: doc
        assertions:
          viewer: [doc:a, doc:z]
`);
    expect(assertions).toBe(3);
    expect(failures).toEqual([
      {
        file: 'a.yaml',
        test: 'wrong',
        assertion: 'doc:c#viewer@user:alice with {"ip":"10.0.0.1"}',
        expected: 'true',
        actual: 'false',
        line: 6,
      },
      {
        file: 'a.yaml',
        test: 'wrong',
        assertion: 'doc:a#viewer@user:alice',
        expected: 'false',
        actual: 'true',
        line: 9,
      },
      {
        file: 'a.yaml',
        test: 'wrong',
        assertion: 'list_objects doc#viewer@user:alice',
        expected: '[a, z]',
        actual: '[a, b]: without [z], with [b] besides',
        line: 14,
      },
    ]);
  });

  test('looks at all of a long list, however much of it is shown', () => {
    const ids = Array.from({ length: 30 }, (_, i) => `d${String(i).padStart(2, '0')}`);
    const tuples = ids.map((id) => `doc:${id}#viewer@user:u`).join(', ');
    const list = (meant: readonly string[]) =>
      run(`
tuples: [${tuples}]
tests:
  - list_objects:
      - { user: user:u, type: doc, assertions: { viewer: [${meant.map((id) => `doc:${id}`).join(', ')}] } }
`).failures.map(({ actual }) => actual);
    expect(list(ids)).toEqual([]);
    expect(list([...ids.slice(0, 29), 'd99'])).toEqual([
      `[${ids.slice(0, 20).join(', ')}, and 10 more]: without [d99], with [d29] besides`,
    ]);
  });

  test('a slip in a name does not pass for a deny', () => {
    const { failures } = run('tests: [{ deny: [doc:d#veiwer@user:u, docs:d#viewer@user:u] }]');
    expect(failures.map(({ actual }) => actual)).toEqual([
      'error: neither the model nor a tuple has a relation "veiwer" of doc; did you mean "viewer"?',
      'error: neither the model nor a tuple has a namespace "docs"; did you mean "doc"?',
    ]);
  });

  test('decides expiry by the time of the test', () => {
    const at = (now: string) =>
      run(`
tuples: [{ tuple: doc:d#viewer@user:u, expires_at: 2030-01-01T00:00:00Z }]
tests: [{ now: ${now}, allow: [doc:d#viewer@user:u] }]
`).failures.length;
    expect([at('2029-12-31T23:59:59Z'), at('2030-01-01T00:00:00Z')]).toEqual([0, 1]);
  });

  test('an evaluation that exceeds its budget holds nothing', () => {
    const tuples = Array.from({ length: 300 }, (_, i) => `doc:d#viewer@folder:f${i}#viewer`);
    const { failures } = testFiles(
      [
        {
          name: 'a',
          text: `tuples: [${tuples.join(', ')}]\ntests: [{ deny: [doc:d#viewer@user:u] }]`,
        },
      ],
      () => DRIVE,
      { depthMax: 256, readBudget: 100 },
      () => 'f',
    );
    expect(failures[0]?.actual).toMatch(/^error: .*budget/);
  });

  test('a tuple that a typed model does not admit fails its test', () => {
    const typed = parseModel(
      JSON.stringify({ namespaces: { doc: { relations: { viewer: { subjects: ['user'] } } } } }),
    );
    const text = `
tuples: [doc:d#viewer@group:g#member]
tests:
  - name: one
    tuples: [doc:d#veiwer@user:u]
    deny: [doc:d#viewer@user:u]
`;
    const { failures } = run(text, typed);
    expect(failures.map(({ test: name, assertion, line }) => [name, assertion, line])).toEqual([
      ['(tuples of the file)', 'tuple doc:d#viewer@group:g#member', 2],
      ['one', 'tuple doc:d#veiwer@user:u', 5],
    ]);
  });
});

describe('the model of a file', () => {
  test('is read in both forms, by the rules of a write', () => {
    expect([...modelOfText('{"namespaces":{"doc":{"relations":{}}}}').namespaces.keys()]).toContain(
      'doc',
    );
    expect([...modelOfText(MODEL).namespaces.keys()]).toContain('user_group');
    expect(() => modelOfText('namespace {')).toThrow(/line 1/);
  });

  test('that is wrong is a problem of the file at its line', () => {
    const text = 'model: |\n  namespace {\ntests: [{ allow: [doc:d#viewer@user:u] }]';
    const files = [{ name: 'a', text }];
    const modelOf = ({ model }: { model?: { value: string } | undefined }) =>
      modelOfText(model?.value ?? '');
    expect(() => testFiles(files, modelOf, LIMITS, () => 'files[0].text')).toThrow(
      /^files\[0\]\.text: line 1, column 1: gate: line 1/,
    );
  });

  test('a file that is none is refused with the place of its first problem', () => {
    expect(() => run('tests:\n  - alow: []\n    dney: []')).toThrow(
      'files[0].text: line 2, column 5: "alow" is not known here; did you mean "allow"? (and 1 more)',
    );
  });
});
