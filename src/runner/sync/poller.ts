import type { LoopReport } from '../../shared/loop-report.ts';
import type { PullReport } from './pull-all.ts';

/** What the poller does and asks. */
export type PollerOptions = {
  /** 0: not now; asked before each pause and again when the settings change. */
  readonly intervalMs: () => number;
  readonly pull: () => Promise<PullReport | undefined>;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly nowMs: () => number;
  /** Hears of each pull; one of which a part failed has failed. */
  readonly report: LoopReport;
};

/** Pulls again and again, with the interval between the end of one and the begin of the next. */
export interface Poller {
  /** To be called after the settings have changed. */
  settingsChanged(): void;
  nextPollAt(): string | undefined;
  stop(): Promise<void>;
}

export function startPoller(options: PollerOptions): Poller {
  const { intervalMs, pull, wait, nowMs, report } = options;
  let pause = new AbortController();
  let isStopped = false;
  let nextMs: number | undefined;
  let extraMs = 0;
  let loop: Promise<void> | undefined;

  const run = async (): Promise<void> => {
    while (!isStopped && intervalMs() > 0) {
      const waitMs = Math.max(intervalMs(), extraMs);
      nextMs = nowMs() + waitMs;
      if (!(await waited(wait, waitMs, pause.signal))) {
        pause = new AbortController();
        continue;
      }
      nextMs = undefined;
      try {
        const pulled = await pull();
        extraMs = pauseAsked(pulled);
        const failed = pulled?.errors[0];
        if (failed === undefined) report.succeeded();
        else report.failed(new Error(`${failed.kind}: ${failed.message}`));
      } catch (error) {
        if (!isStopped) report.failed(error);
      }
    }
    nextMs = undefined;
    loop = undefined;
  };
  const begin = (): void => {
    if (loop !== undefined || isStopped || intervalMs() === 0) return;
    loop = run().catch((error: unknown) => {
      loop = undefined;
      report.failed(error);
    });
  };
  begin();
  return {
    settingsChanged() {
      pause.abort();
      begin();
    },
    nextPollAt: () =>
      nextMs === undefined || intervalMs() === 0 ? undefined : new Date(nextMs).toISOString(),
    async stop() {
      isStopped = true;
      pause.abort();
      await loop;
    },
  };
}

/** False when the pause was cut short. */
async function waited(
  wait: PollerOptions['wait'],
  ms: number,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await wait(ms, signal);
    return !signal.aborted;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

/** The longest pause that the host asked for. */
function pauseAsked(report: PullReport | undefined): number {
  const seconds = (report?.errors ?? []).map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0);
  return Math.max(0, ...seconds) * 1000;
}
