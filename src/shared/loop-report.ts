/** Receives the outcome of each run of a background loop. */
export interface LoopReport {
  succeeded(): void;
  failed(error: unknown): void;
}

/** Discards outcomes: for tests and commands, which see failures themselves. */
export const silentReport: LoopReport = { succeeded: () => undefined, failed: () => undefined };

/**
 * Runs a loop's work once and reports its outcome; after a failure the next run tries again. Never
 * rejects.
 */
export async function reportedRun(report: LoopReport, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
    report.succeeded();
  } catch (error) {
    report.failed(error);
  }
}
