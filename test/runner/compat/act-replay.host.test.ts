import { describe, expect, onTestFinished, test } from 'vitest';
import { startRunner } from '../../support/runner.ts';
import { byLength } from '../../support/test-length.ts';
import { HOST_CASES, OTHER_CASES, type ActCase } from './act-cases.ts';
import { actTestData, isRunnable, makeActWorkspace, removeWorkspace } from './act-workspace.ts';
import { runCase } from './run-case.ts';

const LISTS = {
  "act's list for hosts": HOST_CASES.filter((_, index) => index % byLength(8, 1) === 0),
  'others that need no container': OTHER_CASES.filter((_, index) => index % byLength(4, 1) === 0),
};
const TIMEOUT_MS = 180_000;
const testData = actTestData();
/** Some of the workflows ask for it; a CI may have none, or another than the desk of a developer. */
const HOST = { SHELL: '/bin/bash' };

/** All at once; the runner itself keeps them apart. Answers with a line for each unexpected result. */
async function replay(cases: readonly ActCase[]): Promise<readonly string[]> {
  const workspace = makeActWorkspace(testData, cases);
  onTestFinished(() => removeWorkspace(workspace));
  const settings = { RUNNER_MAX_CONCURRENT_RUNS: '4' };
  const { runner } = await startRunner(workspace, settings, undefined, HOST);
  const unexpected = await Promise.all(
    cases.map(async (one) => {
      const { result, details } = await runCase(runner.parts, one);
      const isAsExpected = result === one.expected;
      if (isAsExpected === (one.differs === undefined)) return [];
      return [`${one.path}: ${result}, not as said: ${details.join('\n  ')}`];
    }),
  );
  return unexpected.flat();
}

describe("act's own workflows", () => {
  for (const [name, list] of Object.entries(LISTS)) {
    test(`as act expects: ${name}`, { timeout: TIMEOUT_MS }, async () => {
      const cases = list.filter((one) => isRunnable(testData, one));
      expect(await replay(cases)).toEqual([]);
      const agreeing = cases.filter(({ differs }) => differs === undefined).length;
      process.stdout.write(
        `${name}: ${agreeing} of ${cases.length} as in act, of ${list.length}\n`,
      );
    });
  }
});
