/**
 * Properties of the code itself, after TigerBeetle's src/tidy.zig: what may import what, how long a
 * file may be, and what no file may say. The table here is the authority; the linter's copy of it
 * (.oxlint-boundaries.json, for editors) is written from it by `npx vitest run test/tidy.test.ts -u`.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path/posix';
import { describe, expect, test } from 'vitest';
import {
  fileCircles,
  floorsOf,
  foldersWithoutRoom,
  importFaults,
  type ImportRules,
  type ImportTable,
  importsOf,
  lintOverrides,
  roomCircles,
  roomOf,
  TOP,
  unusedRights,
} from './support/import-rules.ts';

/**
 * Room → rooms that it may import, besides itself and `shared`; `import type` counts. A room is the
 * files that lie directly in one folder of src/, named by its path: every folder has its row, and
 * 'gateway' is another room than 'gateway/hot'. '.' is the mains. docs/ARCHITECTURE.md draws it.
 */
const TABLE: ImportTable = {
  shared: [],
  config: [],
  'gen/google': [],
  'gen/grpc': [],
  'gen/notify': [],
  'gen/workspace': [],
  'gen/gatehouse': [],
  observability: [],
  model: [],
  'http/http2': [],
  decoding: [],
  http: ['http/http2'],
  cache: ['model'],
  protocol: ['model'],
  'engine/bound': ['model'],
  'engine/hot': ['engine/bound', 'model'],
  'engine/general': ['engine/bound', 'model'],
  'engine/overlay': ['engine/bound', 'model'],
  engine: ['engine/bound', 'engine/general', 'engine/hot', 'model'],
  assertions: ['cache', 'engine', 'engine/bound', 'language/gate', 'model'],
  'engine/questions': ['engine', 'engine/bound', 'engine/general', 'model'],
  store: ['model'],
  'store/sql': ['model', 'store'],
  'services/rules': ['gen/workspace'],
  services: ['model', 'services/rules', 'store', 'store/sql'],
  'services/bulk': ['model', 'services', 'store', 'store/sql'],
  'services/watch': ['model', 'services', 'services/bulk', 'store', 'store/sql'],
  'services/groups': ['model', 'services', 'services/rules', 'store/sql'],
  'services/models': ['model', 'services', 'store', 'store/sql'],
  'services/seats': ['model', 'services', 'store', 'store/sql'],
  'services/workspaces': ['model', 'services', 'services/rules', 'store', 'store/sql'],
  'workers/raw': ['model'],
  'workers/jobs': ['engine', 'engine/bound', 'engine/hot', 'model', 'protocol', 'workers/raw'],
  'workers/questions': [
    'engine',
    'engine/bound',
    'engine/general',
    'engine/overlay',
    'engine/questions',
    'model',
    'protocol',
    'workers/jobs',
  ],
  'workers/shard': ['cache', 'model', 'protocol', 'store', 'workers/jobs', 'workers/questions'],
  'workers/slot': ['model', 'protocol', 'workers/shard'],
  'gateway/callers': ['gen/gatehouse', 'gen/grpc', 'gen/workspace', 'http'],
  'gateway/connect': [
    'decoding',
    'gateway/callers',
    'gen/google',
    'gen/workspace',
    'http',
    'http/http2',
  ],
  'gateway/reads': ['gateway/connect', 'model', 'protocol', 'services'],
  'gateway/hot': [
    'gateway/callers',
    'gateway/connect',
    'gateway/reads',
    'http',
    'http/http2',
    'protocol',
  ],
  'gateway/rpc': [
    'decoding',
    'gateway/callers',
    'gateway/connect',
    'gateway/reads',
    'gen/gatehouse',
    'gen/grpc',
    'gen/workspace',
    'http',
    'model',
    'protocol',
    'services',
    'services/groups',
    'services/seats',
    'services/workspaces',
  ],
  language: [],
  'language/gate': ['language', 'model'],
  'language/openfga': ['language/peers', 'model'],
  'language/peers': ['language', 'model'],
  'language/spicedb': ['language', 'language/peers'],
  'gateway/models': [
    'assertions',
    'gateway/connect',
    'gateway/reads',
    'gateway/rpc',
    'gen/gatehouse',
    'language/gate',
    'model',
    'protocol',
    'services',
    'services/models',
  ],
  'gateway/queries': [
    'gateway/connect',
    'gateway/reads',
    'gateway/rpc',
    'gen/gatehouse',
    'gen/workspace',
    'model',
    'protocol',
    'services',
  ],
  'gateway/budgets': [
    'gateway/connect',
    'gateway/reads',
    'gateway/rpc',
    'gen/gatehouse',
    'model',
    'protocol',
    'services',
  ],
  'gateway/tuples': [
    'decoding',
    'gateway/callers',
    'gateway/connect',
    'gateway/rpc',
    'gen/gatehouse',
    'gen/workspace',
    'http',
    'model',
    'services',
    'services/bulk',
    'services/watch',
  ],
  gateway: [
    'decoding',
    'gateway/callers',
    'gateway/connect',
    'gateway/hot',
    'gateway/reads',
    'gateway/rpc',
    'gateway/tuples',
    'gen/gatehouse',
    'gen/grpc',
    'gen/workspace',
    'http',
    'http/http2',
    'observability',
    'protocol',
  ],
  'runner/face/text': [],
  'runner/host/git': [],
  'runner/model': [],
  'runner/settings': ['config', 'http'],
  'runner/face/events': ['http', 'runner/model'],
  'runner/face/page/shared': ['runner/face/text', 'runner/model'],
  'runner/host/process': ['runner/model'],
  'runner/host/sandbox': ['runner/host/git', 'runner/model'],
  'runner/host/isolation': [
    'runner/host/git',
    'runner/host/process',
    'runner/host/sandbox',
    'runner/model',
  ],
  'runner/language': ['runner/model'],
  'runner/storage': ['runner/model', 'store'],
  'runner/evaluation': ['runner/language', 'runner/model', 'runner/storage'],
  'runner/host/tools': ['runner/host/process', 'store'],
  'runner/host/actions': [
    'runner/host/git',
    'runner/language',
    'runner/model',
    'runner/storage',
    'store',
  ],
  'runner/execution/artifacts': ['runner/model', 'runner/storage'],
  'runner/execution/cache': ['runner/storage'],
  'runner/face/page/client': ['runner/face/page/shared', 'runner/face/text'],
  'runner/host/project': ['runner/host/git', 'runner/language', 'runner/model'],
  'runner/scheduler/state': ['runner/language', 'runner/model'],
  'runner/secrets': ['config', 'runner/model', 'runner/settings', 'runner/storage'],
  'runner/step-output': ['runner/host/process', 'runner/model', 'runner/storage'],
  'runner/execution/state': [
    'runner/execution/cache',
    'runner/host/actions',
    'runner/host/isolation',
    'runner/host/process',
    'runner/host/project',
    'runner/host/tools',
    'runner/model',
    'runner/step-output',
  ],
  'runner/face/cli': [
    'config',
    'observability',
    'runner/face/text',
    'runner/host/project',
    'runner/language',
    'runner/model',
    'runner/secrets',
    'runner/settings',
    'runner/storage',
  ],
  'runner/scheduler': [
    'runner/evaluation',
    'runner/host/process',
    'runner/language',
    'runner/model',
    'runner/scheduler/state',
    'runner/scheduler/triggers',
    'runner/step-output',
    'runner/storage',
  ],
  'runner/scheduler/triggers': [
    'runner/host/git',
    'runner/host/project',
    'runner/language',
    'runner/model',
    'runner/storage',
  ],
  'runner/sync': [
    'decoding',
    'runner/host/git',
    'runner/host/sandbox',
    'runner/model',
    'runner/secrets',
    'runner/storage',
  ],
  'runner/execution/steps': [
    'runner/evaluation',
    'runner/execution/state',
    'runner/host/isolation',
    'runner/host/process',
    'runner/model',
    'runner/step-output',
  ],
  'runner/face/api': [
    'decoding',
    'http',
    'runner/face/events',
    'runner/language',
    'runner/model',
    'runner/scheduler/triggers',
    'runner/secrets',
    'runner/settings',
    'runner/sync',
  ],
  'runner/execution/built-ins': [
    'runner/execution/artifacts',
    'runner/execution/cache',
    'runner/execution/state',
    'runner/execution/steps',
    'runner/host/git',
    'runner/host/isolation',
    'runner/host/project',
    'runner/host/sandbox',
    'runner/host/tools',
    'runner/model',
    'runner/storage',
  ],
  'runner/face/page': [
    'runner/face/api',
    'runner/face/page/shared',
    'runner/language',
    'runner/model',
  ],
  'runner/execution/actions': [
    'runner/evaluation',
    'runner/execution/built-ins',
    'runner/execution/state',
    'runner/execution/steps',
    'runner/host/actions',
    'runner/host/isolation',
    'runner/host/tools',
    'runner/language',
    'runner/model',
    'runner/storage',
  ],
  'runner/execution': [
    'runner/evaluation',
    'runner/execution/actions',
    'runner/execution/state',
    'runner/execution/steps',
    'runner/host/actions',
    'runner/host/process',
    'runner/model',
    'runner/step-output',
  ],
  'runner/parts': [
    'observability',
    'runner/execution',
    'runner/execution/artifacts',
    'runner/execution/built-ins',
    'runner/execution/cache',
    'runner/execution/state',
    'runner/face/api',
    'runner/face/cli',
    'runner/face/events',
    'runner/face/page',
    'runner/host/actions',
    'runner/host/git',
    'runner/host/isolation',
    'runner/host/process',
    'runner/host/project',
    'runner/host/sandbox',
    'runner/host/tools',
    'runner/language',
    'runner/model',
    'runner/scheduler',
    'runner/scheduler/state',
    'runner/scheduler/triggers',
    'runner/secrets',
    'runner/settings',
    'runner/storage',
    'runner/sync',
  ],
  runner: [
    'config',
    'http',
    'observability',
    'runner/face/api',
    'runner/face/cli',
    'runner/parts',
    'runner/secrets',
    'runner/settings',
    'runner/storage',
  ],
  'notify/model': [],
  'notify/core': ['notify/model', 'observability'],
  'notify/store': ['notify/model', 'store'],
  'notify/channels': ['notify/core', 'notify/model', 'observability'],
  'notify/live': ['http', 'notify/core', 'notify/model', 'observability'],
  'notify/api': [
    'decoding',
    'gen/google',
    'gen/notify',
    'http',
    'notify/core',
    'notify/live',
    'notify/model',
    'observability',
  ],
  'notify/service': [
    'config',
    'gen/notify',
    'http',
    'notify/api',
    'notify/channels',
    'notify/core',
    'notify/live',
    'notify/model',
    'notify/store',
    'observability',
    'store',
  ],
  notify: ['config', 'notify/core', 'notify/service', 'observability'],
  authz: [
    'assertions',
    'cache',
    'config',
    'decoding',
    'engine/bound',
    'gateway',
    'gateway/budgets',
    'gateway/callers',
    'gateway/connect',
    'gateway/models',
    'gateway/queries',
    'gateway/reads',
    'gateway/rpc',
    'gateway/tuples',
    'http',
    'model',
    'observability',
    'protocol',
    'services',
    'services/bulk',
    'services/watch',
    'services/groups',
    'services/models',
    'services/seats',
    'services/workspaces',
    'store',
    'store/sql',
    'workers/jobs',
    'workers/questions',
    'workers/shard',
    'workers/slot',
  ],
  '.': ['authz', 'config', 'gateway', 'http', 'observability'],
};
const GENERATED = ['gen/gatehouse', 'gen/google', 'gen/grpc', 'gen/notify', 'gen/workspace'];
const RULES: ImportRules = {
  table: TABLE,
  byAll: ['shared'],
  typesByAll: ['config'],
  isolated: ['shared', ...GENERATED],
  whole: GENERATED,
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

/** Headings of docs/ARCHITECTURE.md whose first block of code draws rooms, and the folder that their names begin below. */
const DRAWINGS: readonly (readonly [string, string])[] = [
  ['## Rooms and floors', TOP],
  ['## The workflow runner', 'runner'],
  ['## The notification service', 'notify'],
];

/** The rooms that a drawing shows, each with its floor; `main.ts` stands for the folder itself. */
function roomsDrawn(heading: string, house: string): readonly (readonly [string, number])[] {
  const [, section] = readFileSync('docs/ARCHITECTURE.md', 'utf8').split(`${heading}\n`);
  const [, drawing = ''] = (section ?? '').split('```');
  let floor = 0;
  return drawing
    .split('\n')
    .slice(2, -1)
    .flatMap((line) => {
      const [, number, rooms = ''] = /^ {1,2}(\d+| )\s+(.*?)(?: {2}|$)/.exec(line) ?? [];
      if (number !== ' ') floor = Number(number);
      return rooms.split(' · ').map((room): readonly [string, number] => {
        return [room === 'main.ts' ? house : join(house, room), floor];
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
    expect(foldersWithoutRoom(RULES, sources)).toEqual([]);
    const rooms = new Set(sources.map((path) => roomOf(path, TABLE)));
    expect(Object.keys(TABLE).filter((room) => !rooms.has(room))).toEqual([]);
  });

  test('every relative import names its extension and keeps the direction', () => {
    expect(imports.length).toBeGreaterThan(100);
    expect(importFaults(RULES, imports)).toEqual([]);
    const bare = imports.filter(({ specifier }) => !/\.(ts|json)$/.test(specifier));
    expect(bare).toEqual([]);
  });

  test('no rooms import each other, directly or around, and no row allows what nobody needs', () => {
    expect(roomCircles(TABLE)).toEqual([]);
    expect(unusedRights(RULES, imports)).toEqual([]);
  });

  test('no files import each other, directly or around; types count', () => {
    expect(fileCircles(imports)).toEqual([]);
  });

  test('the drawings in docs/ARCHITECTURE.md show each room on its floor', () => {
    const drawn = DRAWINGS.flatMap(([heading, house]) => roomsDrawn(heading, house));
    const byRoom = (rooms: Iterable<readonly [string, number]>): readonly string[] =>
      [...rooms].map(([room, floor]) => `${room} ${floor}`).toSorted();
    expect(byRoom(drawn)).toEqual(byRoom(floorsOf(RULES)));
  });

  test("the linter's copy of the table is the table", async () => {
    const text = `${JSON.stringify({ overrides: lintOverrides(RULES, sources) }, null, 2)}\n`;
    await expect(text).toMatchFileSnapshot('../.oxlint-boundaries.json');
  });
});

test('no file is too long', () => {
  const errors = filesOf(['{src,test,bench,load,verify,scripts}/**/*.ts']).flatMap((path) => {
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

/** Services that check reasons by their one union, and where it stands; elsewhere each room has its own. */
const REASONS_OF: Readonly<Record<string, string>> = {
  'src/runner/': 'src/runner/model/runner-reason.ts',
  'src/notify/': 'src/notify/model/notify-reason.ts',
};

test('an error is made with a reason that its room or service owns', () => {
  const errors = sources.flatMap((path) => {
    if (path.endsWith('.test.ts') || path === 'src/shared/app-error.ts') return [];
    const service = Object.keys(REASONS_OF).find((prefix) => path.startsWith(prefix));
    const known = service === undefined ? '' : readFileSync(REASONS_OF[service] ?? '', 'utf8');
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
    expect(paths.map((path) => roomOf(path, rules.table))).toEqual([
      TOP,
      'a',
      'a/inner',
      'a',
      undefined,
    ]);
    expect(foldersWithoutRoom(rules, [...paths, 'src/b/deep/x.ts'])).toEqual(['a/other', 'd']);
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
    expect(roomCircles(rules.table)).toEqual([]);
    expect(roomCircles({ a: ['b'], b: ['a'], c: ['a'] })).toEqual([['a', 'b']]);
    expect(roomCircles({ a: ['a/x'], 'a/x': ['a'] })).toEqual([['a', 'a/x']]);
    expect(roomCircles({ a: ['b'], b: ['c'], c: ['a'], d: ['a', 'c'] })).toEqual([['a', 'b', 'c']]);
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
    const forbids = (room: string, specifier: string): boolean | undefined => {
      const override = overrides.find(({ files }) => files[0]?.startsWith(`src/${room}`));
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
