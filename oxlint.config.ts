/** The linter's rules. Warnings are errors; the rules that are off say why. */
import { globSync } from 'node:fs';
import { defineConfig } from 'oxlint';
import { IMPORT_RULES } from './test/modules.ts';
import { lintOverrides } from './test/support/import-rules.ts';

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error' },
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: 'error' },
  ignorePatterns: [
    'src/gen/**',
    'test/conformance-connect/gen/**',
    'test/runner/compat/act/**',
    'load/recipes/**',
    // Programs as users write them.
    'clients/*/examples/**',
    'dist/**',
  ],
  rules: {
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    'max-lines': ['error', { max: 450 }],
    'max-lines-per-function': ['error', { max: 70 }],
    'no-console': 'error',
    'no-empty': 'error',
    'typescript/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/require-await': 'error',
    'typescript/switch-exhaustiveness-check': [
      'error',
      { considerDefaultExhaustiveForUnions: true },
    ],
    'unicorn/filename-case': ['error', { case: 'kebabCase' }],

    // noImplicitReturns of tsc sees exhaustive switches; this one does not.
    'typescript/consistent-return': 'off',
    // Reads of typed arrays within bounds are asserted with `as number`.
    'typescript/no-unsafe-type-assertion': 'off',
    // fast-check is used through its default export, as its documentation does.
    'import/no-named-as-default-member': 'off',
    // node-pg, uWebSockets.js and process set-up are imported for their effect in places.
    'import/no-unassigned-import': 'off',
    // Helpers stand next to the one function that uses them.
    'unicorn/consistent-function-scoping': 'off',
    // Flags are set by callbacks while a loop awaits.
    'no-unmodified-loop-condition': 'off',
    // Node's own fields begin with an underscore.
    'no-underscore-dangle': 'off',
    // fc.assert is an assertion.
    'vitest/expect-expect': 'off',
    // Lists that were just made are sorted in place: a copy more is a cost.
    'unicorn/no-array-sort': 'off',
    // Properties expect different things of accepted and refused input.
    'vitest/no-conditional-expect': 'off',
    // Helpers of tests expect, too.
    'vitest/no-standalone-expect': 'off',
    // vitest's expect takes a message.
    'vitest/valid-expect': ['error', { maxArgs: 2 }],
    // One awaits the next on purpose.
    'no-await-in-loop': 'off',
  },
  overrides: [
    ...lintOverrides(IMPORT_RULES, globSync('src/gen/**/*.ts', { cwd: import.meta.dirname })),
    {
      // Entries that another program loads by their default export.
      files: [
        '*.config.ts',
        '**/*-worker.ts',
        'src/assertions/assertion-thread.ts',
        'test/support/global-*.ts',
        'scripts/*-reporter.ts',
      ],
      rules: { 'import/no-default-export': 'off' },
    },
    {
      files: ['**/*.test.ts', 'test/**/*.ts'],
      rules: {
        'max-lines': ['error', { max: 1000 }],
        'max-lines-per-function': 'off',
      },
    },
    {
      // Programs whose output is their result.
      files: ['scripts/**', 'bench/**', 'load/**', 'verify/**'],
      rules: { 'no-console': 'off' },
    },
  ],
});
