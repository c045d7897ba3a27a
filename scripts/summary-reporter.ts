import type { Reporter, TestModule } from 'vitest/node';

/**
 * Ends a run with the plain line `N passed, N failed` (and `N skipped` where there are any). A file
 * that could not run counts as one failure.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    let passed = 0;
    let skipped = 0;
    let failed = unhandled.length;
    for (const module of modules) {
      let failedHere = 0;
      for (const { result } of [...module.children.allTests()].map((test) => ({
        result: test.result(),
      }))) {
        if (result.state === 'passed') passed++;
        else if (result.state === 'skipped') skipped++;
        else failedHere++;
      }
      failed += failedHere === 0 && !module.ok() ? 1 : failedHere;
    }
    const tail = skipped === 0 ? '' : `, ${skipped} skipped`;
    process.stdout.write(`\n${passed} passed, ${failed} failed${tail}\n`);
  }
}
