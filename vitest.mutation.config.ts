import { defineConfig } from 'vitest/config';

/**
 * What Stryker runs: the unit tests that reach the file in question. Their random inputs are the same each time, and few,
 * since it tells tests by their names, which have the seed.
 */
export default defineConfig({
  test: {
    include: ['{src,test}/**/*.test.ts'],
    exclude: ['**/*.{pg,host,long}.test.ts', '**/node_modules/**'],
    env: { SEED: '7', FUZZ_RUNS: '0.25' },
    testTimeout: 20_000,
  },
});
