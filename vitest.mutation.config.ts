import { defineConfig } from 'vitest/config';

/**
 * What scripts/mutate.ts runs for each mutant: tests without a database, a server or a thread, named
 * by the environment variable MUTATION_TESTS (globs, separated by spaces).
 */
export default defineConfig({
  test: {
    include: (process.env['MUTATION_TESTS'] ?? '').split(' ').filter((glob) => glob !== ''),
    exclude: ['**/*.pg.test.ts', '**/node_modules/**'],
    testTimeout: 20_000,
  },
});
