import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The name of a test says what it needs, and whether it is long; CONTRIBUTING.md has the rule. */
const ALL = '{src,test}/**/*.test.ts';
const PG = '{src,test}/**/*.pg.test.ts';
const HOST = '{src,test}/**/*.host.test.ts';
const LONG = '{src,test}/**/*.long.{,pg.,host.}test.ts';

const LONG_UNIT = '{src,test}/**/*.long.test.ts';
/** What starts processes may take this long: machines that run tests do other things, too. */
const PROCESSES_MS = 120_000;
const TEMPLATE = 'test/support/global-template.ts';
const POSTGRES = 'test/support/global-postgres.ts';

/** TEST_LENGTH picks the short tests (`npm test`) or the long ones (`npm run test:long`). Without it both run. */
function leftOut(length: string | undefined): string[] {
  if (length === undefined || length === '') return [];
  if (length === 'short') return [LONG];
  if (length === 'long') return ['{src,test}/**/!(*.long|*.long.pg|*.long.host).test.ts'];
  throw new Error(`TEST_LENGTH is ${length}: it must be short or long`);
}

const length = process.env['TEST_LENGTH'];
const notThese = leftOut(length);
/**
 * The short tests draw the same random inputs each time, so that a change is red for what it changed. All others draw
 * new ones, and print the seed. A seed that is given counts for both.
 */
const seeds =
  length === 'short'
    ? ['SEED', 'FAULT_SEED', 'HOSTILE_SEED'].map((name) => [name, process.env[name] ?? '1'])
    : [];
const setupFiles = ['test/support/cpu-meter.ts', 'test/support/fuzz-seed.ts'];

export default defineConfig({
  test: {
    pool: 'forks',
    // One more than there are cores: files that start processes wait for them half of the time.
    maxWorkers: availableParallelism() + 1,
    // Threads of services have it from the process, and load a service's sources in half of the time.
    execArgv: ['--import', fileURLToPath(new URL('scripts/source-cache.mjs', import.meta.url))],
    // Child processes and threads of the tests have it from their environment.
    // Nothing is installed behind the back of a test: those about that say so.
    env: {
      DEBUG_ASSERTIONS: '1',
      RUNNER_INSTALL_TOOLS: 'false',
      ...(Object.fromEntries(seeds) as Record<string, string>),
    },
    setupFiles,
    reporters: ['default', './scripts/summary-reporter.ts'],
    testTimeout: 30_000,
    hookTimeout: PROCESSES_MS,
    // A second, as by default, is a limit on the machine: what is polled for comes when it comes.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: [ALL],
          exclude: [PG, HOST, LONG_UNIT, ...notThese],
          setupFiles: [...setupFiles, 'test/support/unit-guard.ts'],
          // A process for each file took half of the time. Tests that only compute share one.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'unit-long',
          include: [LONG_UNIT],
          exclude: notThese,
          setupFiles: [...setupFiles, 'test/support/unit-guard.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'pg',
          include: [PG],
          testTimeout: PROCESSES_MS,
          exclude: notThese,
          globalSetup: [TEMPLATE, POSTGRES, 'test/support/global-instance.ts'],
          // To load the service anew for each file took a third of the time. Files share no database.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          name: 'host',
          include: [HOST],
          testTimeout: PROCESSES_MS,
          exclude: notThese,
          globalSetup: [TEMPLATE, POSTGRES],
        },
      },
    ],
  },
});
