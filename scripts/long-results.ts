/** What the long tests of a folder came to. */
export type Result = {
  /** With a `+` behind it where the tree differed from it. */
  readonly commit: string;
  readonly passed: boolean;
  readonly seconds: number;
  /** The run's last line: `N passed, N failed`, and `N skipped` where there are any. */
  readonly summary: string;
};

/** By folder. */
export type Results = Record<string, Result>;

/** Has a folder passed at this very commit? What a changed tree showed says nothing of the next change. */
export function isSettled(known: Result | undefined, commit: string): boolean {
  return known?.passed === true && known.commit === commit && !commit.endsWith('+');
}

/** The summaries of several runs as one. */
export function sumOf(results: readonly Result[]): string {
  const sums = { passed: 0, failed: 0, skipped: 0 };
  for (const { summary } of results) {
    for (const [, count, kind] of summary.matchAll(/(\d+) (passed|failed|skipped)/g)) {
      sums[kind as keyof typeof sums] += Number(count);
    }
  }
  const tail = sums.skipped === 0 ? '' : `, ${sums.skipped} skipped`;
  return `${sums.passed} passed, ${sums.failed} failed${tail}`;
}
