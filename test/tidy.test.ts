/**
 * Properties of the code itself, after TigerBeetle's src/tidy.zig: what may import what, how long a
 * file may be, and what no file may say. The table here is the authority; the linter's copy of it
 * (.oxlint-boundaries.json, for editors) is written from it by `npx vitest run test/tidy.test.ts -u`.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, posix } from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * Folder → folders that it may import, besides itself and `shared`; `import type` counts. `config`
 * may be imported by all for its types; its values only where it is listed. '.' is the mains.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  shared: [],
  gen: [],
  config: [],
  observability: [],
  model: [],
  engine: ['model'],
  cache: ['model'],
  protocol: ['gen', 'model'],
  store: ['model', 'observability'],
  services: ['gen', 'model', 'observability', 'store'],
  workers: ['cache', 'engine', 'model', 'observability', 'protocol', 'store'],
  http: ['observability'],
  gateway: ['gen', 'http', 'model', 'observability', 'protocol', 'services'],
  runner: ['config', 'http', 'observability', 'store'],
  notify: ['config', 'gen', 'http', 'observability', 'store'],
  '.': ['authz', 'config', 'gateway', 'observability'],
  authz: [
    'config',
    'gateway',
    'gen',
    'http',
    'model',
    'observability',
    'protocol',
    'services',
    'store',
    'workers',
  ],
};
/** These import nothing of ours, not even `shared`. */
const ISOLATED: readonly string[] = ['shared', 'gen'];
/** Of `gen`, all that a folder may import that has nothing to do with the authorization service. */
const GENERATED_FOR: Readonly<Record<string, RegExp>> = {
  notify: /^src\/gen\/(?:google|notify)\//,
};
const FOLDERS = Object.keys(ALLOWED);
/** Folders below another one that share a name with a top one: the linter's patterns cannot tell them apart. */
const SAME_NAMES: Readonly<Record<string, readonly string[]>> = {
  runner: ['cache', 'model'],
  notify: ['model'],
};

const LINES_MAX = 600;
const TEST_LINES_MAX = 1000;

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

const IMPORT = /^\s*(?:import|export)\s(type\s)?(?:[^'"();]*?\sfrom\s+)?'(\.[^']+)'/gm;
const DYNAMIC_IMPORT = /\bimport\(\s*'(\.[^']+)'/g;

const NOT_OURS = [
  'node_modules/**',
  '**/gen/**',
  '.data/**',
  'coverage/**',
  'test/runner/compat/act/**',
];
const TEXT_FILES = [
  '{src,test,bench,load,scripts,migrations,docs}/**/*.{ts,mjs,js,sql,md,json,yaml,yml,sh,txt}',
  'proto/**/*.proto',
  '*.{ts,md,json,yaml,yml}',
  '.ci/run',
  '.npmrc',
];

/** The folder of src/ that a path lies in; '.' for files directly in src/. */
function folderOf(path: string): string {
  const parts = path.split('/');
  return parts.length > 2 ? (parts[1] ?? '.') : '.';
}

function filesOf(patterns: readonly string[]): readonly string[] {
  return patterns
    .flatMap((pattern) => globSync(pattern, { exclude: NOT_OURS }))
    .map((path) => path.replaceAll('\\', '/'));
}

type Import = { readonly target: string; readonly isType: boolean };

function importsOf(text: string): readonly Import[] {
  const fixed = [...text.matchAll(IMPORT)].map(([, type, target]) => ({
    target: target ?? '',
    isType: type !== undefined,
  }));
  const dynamic = [...text.matchAll(DYNAMIC_IMPORT)].map(([, target]) => ({
    target: target ?? '',
    isType: false,
  }));
  return [...fixed, ...dynamic];
}

function mayImport(from: string, to: string, isType: boolean): boolean {
  if (from === to) return true;
  if (ISOLATED.includes(from)) return false;
  if (to === 'shared' || (to === 'config' && isType)) return true;
  return (ALLOWED[from] ?? []).includes(to);
}

const sources = globSync('src/**/*.ts').map((path) => path.replaceAll('\\', '/'));

describe('imports', () => {
  test('there are sources in every folder that exists', () => {
    expect(sources.length).toBeGreaterThan(50);
    expect(sources.map(folderOf).filter((folder) => !FOLDERS.includes(folder))).toEqual([]);
  });

  test('every relative import names its extension and keeps the direction', () => {
    const errors: string[] = [];
    let seen = 0;
    for (const path of sources) {
      for (const { target, isType } of importsOf(readFileSync(path, 'utf8'))) {
        seen++;
        const resolved = posix.normalize(posix.join(dirname(path), target));
        // Unit tests use what all tests share.
        if (path.endsWith('.test.ts') && resolved.startsWith('test/')) continue;
        const from = folderOf(path);
        const to = folderOf(resolved);
        if (!/\.(ts|json)$/.test(target)) errors.push(`${path}: '${target}' has no extension`);
        const isForeign = to === 'gen' && GENERATED_FOR[from]?.test(resolved) === false;
        if (isForeign) errors.push(`${path}: '${target}' belongs to another service`);
        if (!mayImport(from, to, isType)) errors.push(`${path}: ${from} → ${to} ('${target}')`);
      }
    }
    expect(seen).toBeGreaterThan(100);
    expect(errors).toEqual([]);
  });

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
    ].join('\n');
    expect(importsOf(text).map(({ target }) => target)).toEqual([
      './a.ts',
      '../b/b.ts',
      './c.ts',
      './d.ts',
      './e.ts',
      './f.ts',
    ]);
  });

  test("the linter's copy of the table is the table", async () => {
    const overrides = FOLDERS.filter((folder) => folder !== '.').map((folder) => ({
      files: [`src/${folder}/**/*.ts`],
      rules: {
        'no-restricted-imports': [
          'error',
          {
            patterns: [
              {
                group: FOLDERS.filter((to) => to !== '.' && !mayImport(folder, to, true))
                  .filter((to) => !(SAME_NAMES[folder] ?? []).includes(to))
                  .map((to) => `**/${to}/**`),
                message: 'The import direction is in test/tidy.test.ts.',
              },
            ],
          },
        ],
      },
    }));
    const text = `${JSON.stringify({ overrides }, null, 2)}\n`;
    await expect(text).toMatchFileSnapshot('../.oxlint-boundaries.json');
  });
});

test('no file is too long', () => {
  const errors = filesOf(['{src,test,bench,load,scripts}/**/*.ts']).flatMap((path) => {
    const lines = readFileSync(path, 'utf8').split('\n').length - 1;
    const max = path.startsWith('test/') || path.endsWith('.test.ts') ? TEST_LINES_MAX : LINES_MAX;
    return lines > max ? [`${path}: ${lines} lines > ${max}`] : [];
  });
  expect(errors).toEqual([]);
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
  expect(names.filter((name) => !reasons.includes(`\n| \`${name}\` | `))).toEqual([]);
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
  const missing = named.filter(({ target }) => !existsSync(target));
  expect(missing).toEqual([]);
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
