/** Tests that are run against mutants of files below a path; the first path that fits counts. */
const TESTS: readonly (readonly [path: string, tests: readonly string[]])[] = [
  [
    'src/engine/',
    [
      'src/engine/**/*.test.ts',
      'test/engine/{hot-caches,warm-caches,slices,killer-graphs,engine-equals-reference}.test.ts',
    ],
  ],
  ['src/cache/', ['src/cache/**/*.test.ts']],
  ['src/model/', ['src/model/**/*.test.ts']],
  ['src/services/', ['src/services/*.test.ts']],
  ['src/workers/', ['src/workers/**/*.test.ts', 'test/workers/*.test.ts']],
  ['src/gateway/', ['src/gateway/**/*.test.ts']],
];

/** Globs of the tests for a source file. */
export function testsOf(file: string): readonly string[] {
  const found = TESTS.find(([path]) => file.startsWith(path));
  if (found === undefined) throw new Error(`no tests are known for ${file}: add them here`);
  return found[1];
}
