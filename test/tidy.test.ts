/**
 * Properties of the code itself, after TigerBeetle's src/tidy.zig: what may import what, how long a
 * file may be, and what no file may say. What may import what is the table in test/modules.ts.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { describe, expect, test } from 'vitest';
import { idsTested, invariantsOf, specFaults } from '../scripts/code-docs/invariants.ts';
import { IMPORT_RULES, ROOMS } from './modules.ts';
import {
  fileCircles,
  layersOf,
  foldersWithoutModule,
  importFaults,
  type ImportRules,
  importsOf,
  lintOverrides,
  moduleCircles,
  moduleOf,
  TOP,
  unusedRights,
} from './support/import-rules.ts';

const LINES_MAX = 450;
const TEST_LINES_MAX = 1000;
/** Files of a folder of src, besides tests. */
const FOLDER_FILES_MAX = 15;
/** Folders that have more: as many as they may have. */
const LARGE_FOLDERS: Readonly<Record<string, number>> = {
  'src/runner/api': 19,
  'src/runner/host/sandbox': 22,
  'src/runner/host/tools': 18,
  'src/runner/language': 41,
  'src/runner/scheduler': 30,
  'src/runner/secrets': 30,
  'src/runner/sync': 33,
};

/** What no file may hold, in parts so that this file may be searched too, and what to write instead. */
const BANNED: readonly (readonly [RegExp, string])[] = [
  [new RegExp(['FIX', 'ME'].join('')), 'do it, or open an issue'],
  [new RegExp(['\\bTO', 'DO\\b'].join('')), 'do it, or open an issue'],
  [/(?<![\w.*])\/(?:work|farm|root|home)\/\w/, 'a path relative to the project'],
  [new RegExp(['registry', '\\.npmjs|proxy', '\\.golang|pypi', '\\.org'].join('')), 'no registry'],
  [
    new RegExp(['catch \\{', '\\s*\\}'].join('')),
    'handle the error, or say why it does not matter',
  ],
];

const NOT_OURS = [
  'node_modules/**',
  '**/gen/**',
  '.data/**',
  'coverage/**',
  'test/runner/compat/act/**',
];
const TEXT_FILES = [
  '{src,test,bench,load,verify,scripts,migrations,docs}/**/*.{ts,mjs,js,sql,md,json,yaml,yml,sh,txt}',
  'proto/**/*.proto',
  '*.{ts,md,json,yaml,yml}',
  '.ci/run',
  '.npmrc',
];

function filesOf(patterns: readonly string[]): readonly string[] {
  return patterns
    .flatMap((pattern) => globSync(pattern, { exclude: NOT_OURS }))
    .map((path) => path.replaceAll('\\', '/'));
}

/** Headings of docs/ARCHITECTURE.md whose first block of code draws modules, and the folder that their names begin below. */
const DRAWINGS: readonly (readonly [string, string])[] = [
  ['## Modules and layers', TOP],
  ['## The workflow runner', 'runner'],
  ['## The notification service', 'notify'],
];

/** The modules that a drawing shows, each with its layer; `main.ts` stands for the folder itself. */
function modulesDrawn(heading: string, service: string): readonly (readonly [string, number])[] {
  const [, section] = readFileSync('docs/ARCHITECTURE.md', 'utf8').split(`${heading}\n`);
  const [, drawing = ''] = (section ?? '').split('```');
  let layer = 0;
  return drawing
    .split('\n')
    .slice(2, -1)
    .flatMap((line) => {
      const [, number, modules = ''] = /^ {1,2}(\d+| )\s+(.*?)(?: {2}|$)/.exec(line) ?? [];
      if (number !== ' ') layer = Number(number);
      return modules.split(' · ').map((module): readonly [string, number] => {
        return [module === 'main.ts' ? service : join(service, module), layer];
      });
    });
}

const sources = globSync('src/**/*.ts').map((path) => path.replaceAll('\\', '/'));
const imports = sources
  .flatMap((path) => importsOf(path, readFileSync(path, 'utf8')))
  // Unit tests use what all tests share.
  .filter(({ from, to }) => !(from.endsWith('.test.ts') && to.startsWith('test/')));

describe('imports', () => {
  test('every folder of src is a room', () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(foldersWithoutModule(IMPORT_RULES, sources)).toEqual([]);
    const modules = new Set(sources.map((path) => moduleOf(path, ROOMS)));
    expect(Object.keys(ROOMS).filter((module) => !modules.has(module))).toEqual([]);
  });

  test('every relative import names its extension and keeps the direction', () => {
    expect(imports.length).toBeGreaterThan(100);
    expect(importFaults(IMPORT_RULES, imports)).toEqual([]);
    const bare = imports.filter(({ specifier }) => !/\.(ts|json)$/.test(specifier));
    expect(bare).toEqual([]);
  });

  test('no rooms import each other, directly or around, and no row allows what nobody needs', () => {
    expect(moduleCircles(ROOMS)).toEqual([]);
    expect(unusedRights(IMPORT_RULES, imports)).toEqual([]);
  });

  test('no files import each other, directly or around; types count', () => {
    expect(fileCircles(imports)).toEqual([]);
  });

  test('the drawings in docs/ARCHITECTURE.md show each room on its floor', () => {
    const drawn = DRAWINGS.flatMap(([heading, service]) => modulesDrawn(heading, service));
    const byModule = (modules: Iterable<readonly [string, number]>): readonly string[] =>
      [...modules].map(([module, layer]) => `${module} ${layer}`).toSorted();
    expect(byModule(drawn)).toEqual(byModule(layersOf(IMPORT_RULES)));
  });
});

/** Who may import benchmarks and load tests: the first folder of the importer, by what is imported. */
const MEASURING: readonly (readonly [imported: string, importers: RegExp])[] = [
  ['load/', /^(?:load|test\/load)\//],
  ['bench/harness/', /^(?:bench|load|test\/(?:bench|load)|scripts\/benchmarks)\//],
  ['bench/', /^(?:bench|test\/bench)\//],
];

test('load tests import the harness of benchmarks, and nothing else imports either', () => {
  const files = filesOf(['{src,test,bench,load,verify,scripts,clients}/**/*.{ts,mjs}']);
  const measured = files
    .flatMap((path) => importsOf(path, readFileSync(path, 'utf8')))
    .filter(({ to }) => /^(?:bench|load)\//.test(to));
  expect(measured.length).toBeGreaterThan(50);
  const faults = measured.filter(({ from, to }) => {
    const rule = MEASURING.find(([imported]) => to.startsWith(imported));
    return rule !== undefined && !rule[1].test(from);
  });
  expect(faults.map(({ from, to }) => `${from} imports ${to}`)).toEqual([]);
});

test('no file is too long', () => {
  const errors = filesOf(['{src,test,bench,load,verify,scripts}/**/*.ts']).flatMap((path) => {
    const lines = readFileSync(path, 'utf8').split('\n').length - 1;
    const max = path.startsWith('test/') || path.endsWith('.test.ts') ? TEST_LINES_MAX : LINES_MAX;
    return lines > max ? [`${path}: ${lines} lines > ${max}`] : [];
  });
  expect(errors).toEqual([]);
});

test('no folder of src has too many files', () => {
  const files = sources.filter(
    (path) => !path.endsWith('.test.ts') && !path.startsWith('src/gen/'),
  );
  const sizes = Map.groupBy(files, dirname);
  expect(sizes.size).toBeGreaterThan(100);
  const large = [...sizes].filter(([, { length }]) => length > FOLDER_FILES_MAX);
  expect(Object.fromEntries(large.map(([folder, { length }]) => [folder, length]))).toEqual(
    LARGE_FOLDERS,
  );
});

/** V8 makes a dictionary of each (findings/v8-literal-with-accessors-is-a-dictionary.sh). A class has its members two columns in. */
test('no object literal of what evaluates has an accessor', () => {
  const files = globSync('src/{cache,engine,model,workers}/**/*.ts');
  expect(files.length).toBeGreaterThan(100);
  const found = files.filter((path) => /^ {4,}get \w+\(\)/m.test(readFileSync(path, 'utf8')));
  expect(found).toEqual([]);
});

test('no file says what none may say', () => {
  const files = filesOf(TEXT_FILES);
  expect(files.length).toBeGreaterThan(100);
  const errors = files.flatMap((path) => {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.flatMap((line, index) =>
      BANNED.filter(([pattern]) => pattern.test(line)).map(
        ([, instead]) => `${path}:${index + 1}: ${line.trim()} (write ${instead})`,
      ),
    );
  });
  expect(errors).toEqual([]);
});

/** Services that check reasons by a list, and where it stands; elsewhere the compiler does, by the union that is named. */
const REASONS_OF: Readonly<Record<string, string>> = {
  'src/runner/': 'src/runner/model/reasons.ts',
  'src/notify/': 'src/notify/model/reasons.ts',
};

const SHARED_REASONS = 'src/shared/reasons.ts';

test('an error is made with a reason of its service', () => {
  const errors = sources.flatMap((path) => {
    if (path.endsWith('.test.ts') || path === 'src/shared/app-error.ts') return [];
    const service = Object.keys(REASONS_OF).find((prefix) => path.startsWith(prefix));
    const lists = service === undefined ? [] : [REASONS_OF[service] ?? '', SHARED_REASONS];
    const known = lists.map((list) => readFileSync(list, 'utf8')).join('');
    // Without the name of a union the compiler takes any reason.
    const made = readFileSync(path, 'utf8').matchAll(/new AppError\(\s*(?:'(\w+)')?/g);
    return [...made]
      .filter(([, reason]) => {
        if (service === undefined) return true;
        return reason !== undefined && !known.includes(`'${reason}'`);
      })
      .map(([text]) => `${path}: ${text}`);
  });
  expect(errors).toEqual([]);
});

test('every dependency has its reason', () => {
  const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Readonly<
    Record<string, Readonly<Record<string, string>> | undefined>
  >;
  const kinds = ['dependencies', 'optionalDependencies', 'devDependencies'];
  const versions = Object.fromEntries(
    kinds.flatMap((kind) => Object.entries(manifest[kind] ?? {})),
  );
  const names = Object.keys(versions);
  expect(names.length).toBeGreaterThan(20);
  const reasons = readFileSync('docs/dependencies.md', 'utf8');
  const firstCells = [...reasons.matchAll(/^\| (`[^|]+`) \| \S/gm)].map(([, cell = '']) => cell);
  const reasoned = new Set(firstCells.flatMap((cell) => cell.slice(1, -1).split('`, `')));
  expect(names.filter((name) => !reasoned.has(name))).toEqual([]);
  const inexact = names.filter((name) => !/^(npm:[\w.-]+@)?\d[\w.-]*$/.test(versions[name] ?? ''));
  expect(inexact).toEqual([]);
  const resolved = readFileSync('package-lock.json', 'utf8').match(/"resolved":.*/)?.[0];
  expect(resolved).toBeUndefined();
});

test('files that documents name exist', () => {
  const named = filesOf(['*.md', 'docs/**/*.md']).flatMap((path) =>
    [
      ...readFileSync(path, 'utf8').matchAll(/`((?:src|test|docs|migrations|scripts)\/[\w./-]+)`/g),
    ].map(([, target]) => ({ path, target: target ?? '' })),
  );
  expect(named.length).toBeGreaterThan(20);
  // `npm run docs:api` writes docs/api.md, which is not kept.
  const missing = named.filter(({ target }) => !existsSync(target) && target !== 'docs/api.md');
  expect(missing).toEqual([]);
});

describe('invariants', () => {
  const read = (path: string) => ({ path, text: readFileSync(path, 'utf8') });

  test('each names a test that names it, and no test names another', () => {
    const code = sources.filter((path) => !path.endsWith('.test.ts')).map(read);
    const tests = filesOf(['{src,test}/**/*.test.ts']).filter(
      (path) => path !== 'test/tidy.test.ts',
    );
    expect(code.flatMap(invariantsOf).length).toBeGreaterThan(70);
    expect(specFaults(code, tests.map(read))).toEqual([]);
  });

  test('a missing half of a pair is found, whichever it is', () => {
    const spec = (...lines: readonly string[]) => ({
      path: 'src/a/state.ts',
      text: ['/**', ' * SPEC of it.', ' *', ...lines.map((line) => ` * ${line}`), ' */'].join('\n'),
    });
    const tested = (path: string, ...titles: readonly string[]) => ({
      path,
      text: titles.map((title) => `test('${title}', () => {});`).join('\n'),
    });
    const two = spec(
      'I1  It holds,',
      '    always. [state.test.ts]',
      'C2 So does this. [test/b/c.test.ts]',
    );
    expect(invariantsOf(two).map(({ id, statement }) => [id, statement])).toEqual([
      ['I1', 'It holds, always.'],
      ['C2', 'So does this.'],
    ]);
    const both = [
      tested('src/a/state.test.ts', 'holds (I1)'),
      tested('test/b/c.test.ts', 'C2: so'),
    ];
    expect(specFaults([two], both)).toEqual([]);
    expect(specFaults([two], both.slice(0, 1))).toHaveLength(1);
    expect(
      specFaults([two], [tested('src/a/state.test.ts', 'holds'), ...both.slice(1)]),
    ).toHaveLength(1);
    expect(specFaults([spec('I1 It holds.')], both.slice(2))).toHaveLength(1);
    expect(specFaults([two], [...both, tested('src/a/d.test.ts', 'C3, C4: more')])).toHaveLength(2);
    expect([...idsTested("test('I1 to I3: all', f); it.each(X)('M1 E1: two', f)")]).toEqual([
      'I1',
      'I2',
      'I3',
      'M1',
      'E1',
    ]);
  });
});

test('banned text is recognized', () => {
  const samples = [
    ['// FIX', 'ME later'],
    ['see /ro', 'ot/x'],
    ['https://registry', '.npmjs.org'],
    ['catch {', '}'],
  ].map((parts) => parts.join(''));
  for (const sample of samples) {
    expect(BANNED.filter(([pattern]) => pattern.test(sample))).toHaveLength(1);
  }
});

describe('the rules of imports', () => {
  const rules: ImportRules = {
    table: {
      a: ['b', 'a/inner'],
      'a/inner': ['b'],
      b: [],
      c: [],
      shared: [],
      config: [],
      [TOP]: ['a'],
    },
    byAll: ['shared'],
    typesByAll: ['config'],
    isolated: ['shared'],
    whole: ['b'],
  };
  const of = (path: string, ...lines: readonly string[]) => importsOf(path, lines.join('\n'));

  test('imports are recognized in all their forms', () => {
    const text = [
      "import { a } from './a.ts';",
      "import type { B } from '../b/b.ts';",
      'import {',
      '  c,',
      "} from './c.ts';",
      "export { d } from './d.ts';",
      "import './e.ts';",
      "const f = await import('./f.ts');",
      "export const path = join(import.meta.dirname, '../data');",
      "import { g } from 'g';",
    ];
    const found = of('src/x/y.ts', ...text);
    const targets = ['x/a', 'b/b', 'x/c', 'x/d', 'x/e', 'x/f'].map((name) => `src/${name}.ts`);
    expect(found.map(({ to }) => to)).toEqual(targets);
    expect(found.filter(({ isType }) => isType).map(({ to }) => to)).toEqual(['src/b/b.ts']);
  });

  test('a file lies in the room with the longest path above it', () => {
    const paths = ['src/x.ts', 'src/a/x.ts', 'src/a/inner/x.ts', 'src/a/other/x.ts', 'src/d/x.ts'];
    expect(paths.map((path) => moduleOf(path, rules.table))).toEqual([
      TOP,
      'a',
      'a/inner',
      'a',
      undefined,
    ]);
    expect(foldersWithoutModule(rules, [...paths, 'src/b/deep/x.ts'])).toEqual(['a/other', 'd']);
  });

  test('an import of a parent by its child, or between siblings, needs a row of its own', () => {
    const faults = (path: string, line: string) => importFaults(rules, of(path, line)).length;
    expect(faults('src/a/x.ts', "import { y } from './inner/y.ts';")).toBe(0);
    expect(faults('src/a/inner/x.ts', "import { y } from '../y.ts';")).toBe(1);
    expect(faults('src/a/inner/x.ts', "import type { Y } from '../y.ts';")).toBe(1);
    expect(faults('src/a/inner/x.ts', "import { y } from '../../b/deep/y.ts';")).toBe(0);
    expect(faults('src/b/x.ts', "const y = await import('../a/inner/y.ts');")).toBe(1);
    expect(faults('src/b/x.ts', "export { y } from '../y.ts';")).toBe(1);
    expect(faults('src/b/x.ts', "import { y } from '../shared/y.ts';")).toBe(0);
    expect(faults('src/b/x.ts', "import type { Y } from '../config/y.ts';")).toBe(0);
    expect(faults('src/b/x.ts', "import { y } from '../config/y.ts';")).toBe(1);
    expect(faults('src/shared/x.ts', "import type { Y } from '../config/y.ts';")).toBe(1);
    expect(faults('src/a/x.ts', "import { y } from '../nowhere/y.ts';")).toBe(1);
  });

  test('rooms that import each other are found: siblings, parent and child, and around', () => {
    expect(moduleCircles(rules.table)).toEqual([]);
    expect(moduleCircles({ a: ['b'], b: ['a'], c: ['a'] })).toEqual([['a', 'b']]);
    expect(moduleCircles({ a: ['a/x'], 'a/x': ['a'] })).toEqual([['a', 'a/x']]);
    expect(moduleCircles({ a: ['b'], b: ['c'], c: ['a'], d: ['a', 'c'] })).toEqual([
      ['a', 'b', 'c'],
    ]);
  });

  test('files that import each other are found, by their types as well', () => {
    const pair = [
      ...of('src/a/x.ts', "import { y } from './y.ts';"),
      ...of('src/a/y.ts', "import type { X } from './x.ts';"),
      ...of('src/a/z.ts', "import { x } from './x.ts';"),
    ];
    expect(fileCircles(pair)).toEqual([['src/a/x.ts', 'src/a/y.ts']]);
    expect(fileCircles(pair.filter(({ isType }) => !isType))).toEqual([]);
  });

  test('a right that no import needs is found', () => {
    const used = [
      ...of('src/a/x.ts', "import { y } from './inner/y.ts';", "import { b } from '../b/b.ts';"),
      ...of('src/main.ts', "import { x } from './a/x.ts';"),
    ];
    expect(unusedRights(rules, used)).toEqual(['a/inner → b']);
  });

  test("the linter's form forbids each room by the path that leads to it", () => {
    const overrides = lintOverrides(rules, ['src/a/x.ts', 'src/a/inner/x.ts', 'src/b/a/x.ts']);
    const forbids = (module: string, specifier: string): boolean | undefined => {
      const override = overrides.find(({ files }) => files[0]?.startsWith(`src/${module}`));
      const text = JSON.stringify(override?.rules);
      const regex = /"regex":("[^"]*")/.exec(text)?.[1];
      return regex === undefined ? undefined : new RegExp(JSON.parse(regex)).test(specifier);
    };
    expect(forbids('a/inner/', '../x.ts')).toBe(true);
    expect(forbids('a/inner/', '../../b/deep/x.ts')).toBe(false);
    expect(forbids('a/*', './inner/x.ts')).toBe(false);
    expect(forbids('b/', '../../c/x.ts')).toBe(true);
    expect(forbids('b/', '../a/x.ts')).toBe(false); // may be its own folder: left to the table
  });
});
