import { posix } from 'node:path';

/** One numbered invariant or constraint of a SPEC block. */
export type Invariant = {
  /** A letter and a number, as `I1`; unique in its file. */
  readonly id: string;
  readonly statement: string;
  /** The file that says it. */
  readonly path: string;
  /** The test files that it names, from the root of the project. */
  readonly tests: readonly string[];
};

export type SourceFile = { readonly path: string; readonly text: string };

const COMMENT = /\/\*[\s\S]*?\*\//g;
const ITEM = /^ \* ([A-Z]\d{1,2}) +(\S.*(?:\n \* {2,}\S.*)*)/gm;
const TEST = /\[([\w./-]+\.test\.ts)\]/g;
const TITLE =
  /(?:\b(?:test|it|describe)(?:\.\w+(?:\([^)]*\))?)*|\])\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g;
/** At the beginning of a title (`I1 to I10:`, `M3, M4:`) or in parentheses (`(S2, S3)`). */
const LEADING = /^((?:[A-Z]\d{1,2}(?:, | to | )?)+):/;
const BRACKETED = /\(([A-Z]\d{1,2}(?:, [A-Z]\d{1,2})*)\)/g;

/**
 * The numbered invariants in the comments of a file: lines that begin with `I1 ` and those that are
 * indented below. Tests are named in brackets, by their path from the root or beside the file.
 */
export function invariantsOf({ path, text }: SourceFile): readonly Invariant[] {
  const comments = text.match(COMMENT) ?? [];
  return comments.flatMap((comment) =>
    [...comment.matchAll(ITEM)].map(([, id = '', body = '']) => {
      const whole = body.replaceAll(/\n \* +/g, ' ');
      const tests = [...whole.matchAll(TEST)].map(([, name = '']) =>
        name.includes('/') ? name : posix.join(posix.dirname(path), name),
      );
      return { id, statement: whole.replaceAll(TEST, '').trim(), path, tests };
    }),
  );
}

/** The invariants that the titles of a test file name. */
export function idsTested(text: string): ReadonlySet<string> {
  const titles = [...text.matchAll(TITLE)].map(([, , title = '']) => title);
  return new Set(titles.flatMap((title) => idsOf(title)));
}

function idsOf(title: string): readonly string[] {
  const lists = [
    LEADING.exec(title)?.[1] ?? '',
    ...[...title.matchAll(BRACKETED)].map((m) => m[1]),
  ];
  return lists.flatMap((list = '') => {
    const range = /^([A-Z])(\d+) to [A-Z](\d+)$/.exec(list);
    if (range === null) return list.match(/[A-Z]\d+/g) ?? [];
    const [, letter = '', from, to] = range;
    const count = Number(to) - Number(from) + 1;
    return Array.from({ length: count }, (_, i) => `${letter}${Number(from) + i}`);
  });
}

/** What is missing, as lines: an invariant without a test that names it, a test of an invariant that names it not. */
export function specFaults(
  sources: readonly SourceFile[],
  tests: readonly SourceFile[],
): readonly string[] {
  const invariants = sources.flatMap(invariantsOf);
  const tested = new Map(tests.map(({ path, text }) => [path, idsTested(text)]));
  const claimed = new Set(
    invariants.flatMap(({ id, tests: named }) => named.map((path) => `${path} ${id}`)),
  );
  return [
    ...invariants
      .filter((invariant) => invariant.tests.length === 0)
      .map(({ path, id }) => `${path}: ${id} names no test`),
    ...invariants.flatMap(({ path, id, tests: named }) =>
      named
        .filter((test) => tested.get(test)?.has(id) !== true)
        .map((test) => `${path}: ${id}: ${test} has no test whose title names it`),
    ),
    ...[...tested].flatMap(([path, ids]) =>
      [...ids]
        .filter((id) => !claimed.has(`${path} ${id}`))
        .map((id) => `${path}: ${id} is said by no file that names this test`),
    ),
  ];
}

/** docs/invariants.md: a table with each file that states any, named in its first row. */
export function invariantsMarkdown(sources: readonly SourceFile[]): string {
  const rows = sources.flatMap((source) =>
    invariantsOf(source).map(({ id, statement, path, tests }, index) => {
      const named = tests.map((test) => `\`${test}\``).join(', ');
      const file = index === 0 ? `\`${path}\`` : '';
      return `| ${file} | ${id} | ${statement.replaceAll('|', '\\|')} | ${named} |`;
    }),
  );
  const head = '| file | | invariant | test |\n|---|---|---|---|';
  return `# Invariants\n\nPromises of parts of the code to each other, and the tests that name them. Generated from comments in the code by \`npm run docs:code\`; \`test/tidy.test.ts\` fails where an\ninvariant has no test, or a test no invariant.\n\n${head}\n${rows.join('\n')}\n`;
}
