/* The words of the code: no banned synonym of the glossary in src, one name for one type. */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GLOSSARY, type Term } from './support/glossary.ts';
import { partsOfName, wordsOfSource } from './support/source-words.ts';
import { declaredTwice, type TypedFile, typeNamesOf } from './support/type-names.ts';

const SOURCES = globSync('src/**/*.ts')
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => !path.startsWith('src/gen/') && !path.endsWith('.test.ts'))
  .toSorted();
const textOf = (path: string): string => readFileSync(path, 'utf8');
const partsByName = new Map<string, readonly string[]>();
function partsOf(name: string): readonly string[] {
  let parts = partsByName.get(name);
  if (parts === undefined) partsByName.set(name, (parts = partsOfName(name)));
  return parts;
}

const bansByTerms = new WeakMap<readonly Term[], Map<string, readonly Term[]>>();

/** The rows that ban a part of a name: few names say what any row bans. */
function bansOf(name: string, terms: readonly Term[]): readonly Term[] {
  let bans = bansByTerms.get(terms);
  if (bans === undefined) bansByTerms.set(terms, (bans = new Map()));
  let found = bans.get(name);
  if (found === undefined) {
    found = terms.filter(({ names }) => partsOf(name).some((part) => names?.test(part)));
    bans.set(name, found);
  }
  return found;
}

/** What a source says that a row of the glossary bans, each with its place. */
function faultsOf(path: string, source: string, terms: readonly Term[]): readonly string[] {
  const rows = terms.filter(
    ({ where, except = [] }) =>
      (where?.test(path) ?? true) && !except.some(([excepted]) => excepted.test(path)),
  );
  const { names, comments } = wordsOfSource(source);
  const banned = names.filter(([name]) => bansOf(name, terms).length > 0);
  const file = path.replace(/^src\//, '').replaceAll(/[-/.]/g, '_');
  return rows.flatMap((row) => {
    const { word, names: bannedNames, comments: bannedInComments } = row;
    const found = banned.filter(([name]) => bansOf(name, terms).includes(row));
    const said = comments.flatMap(([text, line]) => {
      const match = bannedInComments?.exec(text);
      return match === null || match === undefined ? [] : [[match[0], line] as const];
    });
    const inPath = file.split('_').filter((part) => bannedNames?.test(part));
    return [...found, ...said, ...inPath.map((part) => [part, 0] as const)].map(
      ([text, line]) => `${path}:${line}: ${text} (write ${word})`,
    );
  });
}

test('no name, comment or path of src uses a banned synonym', () => {
  expect(SOURCES.length).toBeGreaterThan(500);
  expect(SOURCES.flatMap((path) => faultsOf(path, textOf(path), GLOSSARY))).toEqual([]);
});

test('every row bans what it names, and every exception is of use', () => {
  expect(GLOSSARY.length).toBeGreaterThanOrEqual(30);
  for (const { names, where, except = [], not } of GLOSSARY) {
    const whole = SOURCES.filter((path) => where?.test(path) ?? true);
    expect(whole.length, not).toBeGreaterThan(0);
    for (const [path] of except) {
      expect(
        whole.some((source) => path.test(source)),
        `${not}: ${path.source}`,
      ).toBe(true);
    }
    expect(names, not).toBeDefined();
  }
});

test('banned synonyms are found in names, comments, templates and paths, and nowhere else', () => {
  const terms: readonly Term[] = [
    { word: 'rung', meaning: '', not: 'step', names: /^steps?$/, comments: /\bsteps?\b/i },
    { word: 'UNSURE', meaning: '', not: 'MAYBE', names: /^MAYBE$/ },
  ];
  const faults = (text: string, path = 'src/x.ts'): number => faultsOf(path, text, terms).length;
  expect(faults('const stepCount = 1;')).toBe(1);
  expect(faults('// one step')).toBe(1);
  expect(faults('const a = `x ${steps.length}`;')).toBe(1);
  expect(faults('const a = MAYBE;')).toBe(1);
  expect(faults('', 'src/a/step-of.ts')).toBe(1);
  expect(faults("const a = 'step'; const b = `step`; const c = stepped; const d = /step/;")).toBe(
    0,
  );
  expect(faults('const maybe = 1;')).toBe(0);
});

/** Methods that many classes had, each with another meaning; a method is called what it does. */
const VAGUE_METHOD =
  /^ {2}(?:(?:protected|static|override|async|abstract) |\*)*#?(push|find|take|give|look|ask|keep|tell)[(<](?:[^;\n]*\)(?:: .*)? \{|.*\): .*;|(?:.*\()?)$/gm;
const vagueMethodsOf = (text: string): readonly string[] =>
  [...text.matchAll(VAGUE_METHOD)].map(([, name = '']) => name);

test('no method has one of the vague names that once stood in many classes', () => {
  const found = SOURCES.filter((path) => !/^src\/(runner|notify)\//.test(path)).flatMap((path) =>
    vagueMethodsOf(textOf(path)).map((name) => `${path}: ${name}`),
  );
  expect(found).toEqual([]);
});

test('vague methods are found in classes and interfaces, and calls of others are not', () => {
  const text = `class A {
  take(count: number): number {
  }
  async #find<K>(
    key: K,
  ): Promise<void> {
  }
}
interface B {
  give(size: number): void;
}
function c() {
  take(1);
  ask(1, () => {
  });
}
`;
  expect(vagueMethodsOf(text)).toEqual(['take', 'find', 'give']);
});

test('no name of a type is declared in two files', () => {
  const files: readonly TypedFile[] = SOURCES.map((path) => ({
    path,
    names: typeNamesOf(textOf(path)),
  }));
  expect(files.flatMap(({ names }) => names).length).toBeGreaterThan(1_000);
  expect([...declaredTwice(files)]).toEqual([]);
});

test('names that are declared twice are found', () => {
  const declared = typeNamesOf('type A = 1;\nexport class B {}\nexport type { C };\n  type D = 2;');
  expect(declared).toEqual(['A', 'B']);
  const tree = [
    { path: 'src/a/x.ts', names: ['Row', 'Row'] },
    { path: 'src/b/z.ts', names: ['Row', 'Other'] },
    { path: 'src/c/w.ts', names: ['Single'] },
    { path: 'src/d/v.ts', names: ['Other'] },
  ];
  expect([...declaredTwice(tree)]).toEqual([
    ['Row', ['src/a/x.ts', 'src/b/z.ts']],
    ['Other', ['src/b/z.ts', 'src/d/v.ts']],
  ]);
});
