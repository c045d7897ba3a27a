import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** The name of a test says what it needs; CONTRIBUTING.md has the rule. */
const PG = '{src,test}/**/*.pg.test.ts';
const HOST = '{src,test}/**/*.host.test.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    // By default one less, for vitest itself: with two cores that is one file at a time, most of which wait for others.
    maxWorkers: availableParallelism(),
    // Child processes and threads of the tests have it from their environment.
    // Nothing is installed behind the back of a test: those about that say so.
    env: { DEBUG_ASSERTIONS: '1', RUNNER_INSTALL_TOOLS: 'false' },
    reporters: ['default', './scripts/summary-reporter.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A second, as by default, is a limit on the machine: what is polled for comes when it comes.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['{src,test}/**/*.test.ts'],
          exclude: [PG, HOST],
          setupFiles: ['test/support/unit-guard.ts'],
          // A process for each file took half of the time. Tests that only compute share one.
          isolate: false,
        },
      },
      {
        extends: true,
        test: { name: 'pg', include: [PG], globalSetup: ['test/support/global-postgres.ts'] },
      },
      { extends: true, test: { name: 'host', include: [HOST] } },
    ],
  },
});
