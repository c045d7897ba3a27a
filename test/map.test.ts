/* The map in CONTRIBUTING.md, its tree and the steps of each addition, and the files to read in docs/ARCHITECTURE.md. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';

const [, MAP = ''] = readFileSync('CONTRIBUTING.md', 'utf8').split('\n## Map\n');
const [TREE_PART = '', STEPS_PART = ''] = (MAP.split('\n## ')[0] ?? '').split('\n### How to add\n');
const ADDITIONS = ['an RPC', 'a query', 'a setting', 'a metric', 'a channel', 'a built-in action'];

type Step = { readonly what: string; readonly file: string; readonly at: string };

/** Rows of the table of additions; an empty first cell goes on with the addition above it. */
function stepsOf(text: string): readonly Step[] {
  let what = '';
  return [...text.matchAll(/^\| ([^|]*)\| `([^`]+)` \| `([^`]+)` \| /gm)].map(
    ([, name = '', file = '', at = '']) => {
      what = name.trim() === '' ? what : name.trim();
      return { what, file, at };
    },
  );
}

/** Steps that cannot be followed: the file is not there, or holds no such place. */
const lost = (steps: readonly Step[]): readonly Step[] =>
  steps.filter(({ file, at }) => !existsSync(file) || !readFileSync(file, 'utf8').includes(at));

test('the tree has a line a folder, at most 100, and names what is there', () => {
  const [, drawing = ''] = TREE_PART.split('```');
  const lines = drawing.split('\n').filter((line) => line.trim() !== '');
  const named = lines.flatMap((line) => (line.split(/ {2,}/)[0] ?? '').split(' '));
  expect(named.length).toBeGreaterThan(30);
  expect(lines.length).toBeLessThanOrEqual(100);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
  const folders = globSync('src/{*,*/*}')
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => statSync(path).isDirectory() && !path.startsWith('src/gen'));
  expect(folders.length).toBeGreaterThan(80);
  expect(folders.filter((path) => !drawing.includes(path.slice('src/'.length)))).toEqual([]);
  const files = [...drawing.matchAll(/[\w-]+\.ts\b/g)].map(([file]) => file);
  expect(files.filter((file) => globSync(`src/**/${file}`).length === 0)).toEqual([]);
});

test('the ten files to read are there', () => {
  const [, section = ''] = readFileSync('docs/ARCHITECTURE.md', 'utf8').split(
    '\n## Ten files to read\n',
  );
  const rows = (section.split('\n## ')[0] ?? '').matchAll(/^\| \d+ \| `([^`]+)` \| \w/gm);
  const files = [...rows].map(([, file = '']) => file);
  expect(files).toHaveLength(10);
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
});

test('each addition has its steps, and each step its file and its place', () => {
  const steps = stepsOf(STEPS_PART);
  expect([...new Set(steps.map(({ what }) => what))]).toEqual(ADDITIONS);
  for (const addition of ADDITIONS) {
    const own = steps.filter(({ what }) => what === addition);
    expect(own.length, addition).toBeGreaterThanOrEqual(3);
  }
  expect(lost(steps)).toEqual([]);
  const rows = STEPS_PART.split('\n').filter((line) => line.startsWith('| ')).length - 1;
  expect(steps).toHaveLength(rows);
});

/** An addition that is there already: the folder and the word by which its places are found, and files of its own. */
const EXAMPLES: readonly (readonly [string, string, RegExp, RegExp])[] = [
  ['an RPC', 'src', /\breadRelationTuples\b/, /^$/],
  [
    'a query',
    'src',
    /\blistSubjects\b/,
    /\/(?:list-subjects-handlers|list-queries|start-list-subjects|library\/engine)\.ts$/,
  ],
  ['a channel', 'src/notify', /\bemailChannel\b/, /^$/],
  ['a built-in action', 'src/runner', /astral-sh\/setup-uv/, /^$/],
];

test.each(EXAMPLES)(
  'the steps of %s name every place of one that is there',
  (what, root, word, own) => {
    const named = new Set(
      stepsOf(STEPS_PART).flatMap((step) => (step.what === what ? [step.file] : [])),
    );
    const places = globSync(`${root}/**/*.ts`)
      .map((path) => path.replaceAll('\\', '/'))
      .filter((path) => !/^src\/(gen|cli)\/|\.test\.ts$/.test(path))
      .filter((path) => word.test(readFileSync(path, 'utf8')));
    expect(places.length).toBeGreaterThan(1);
    expect(places.filter((path) => !named.has(path) && !own.test(path))).toEqual([]);
  },
);

test('a step without its file, and one without its place, are found', () => {
  const text = '| a thing | `package.json` | `"name"` | x |\n| | `none.ts` | `y` | x |\n';
  const steps = [...stepsOf(text), { what: 'z', file: 'package.json', at: 'not in there' }];
  expect(lost(steps).map(({ what, file }) => [what, file])).toEqual([
    ['a thing', 'none.ts'],
    ['z', 'package.json'],
  ]);
});
