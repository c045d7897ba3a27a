/** Report of a loop in the background on how each of its runs ended. */
export interface LoopReport {
  succeeded(): void;
  failed(error: unknown): void;
}

/** Says it nobody: for tests and commands, which see failures themselves. */
export const silentReport: LoopReport = { succeeded: () => undefined, failed: () => undefined };

/** One run of a loop; its failure is reported, and the next run tries again. Never rejects. */
export async function reportedRun(report: LoopReport, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
    report.succeeded();
  } catch (error) {
    report.failed(error);
  }
}
