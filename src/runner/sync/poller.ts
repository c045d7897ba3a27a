import type { PullReport } from './pull-all.ts';

/** What the poller does and asks. */
export type PollerOptions = {
  /** 0: not now; asked before each pause and again when the settings change. */
  readonly intervalMs: () => number;
  readonly pull: () => Promise<PullReport | undefined>;
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly nowMs: () => number;
  /** Problems of a pull that did not even report. */
  readonly onError: (error: Error) => void;
};

/** Pulls again and again, with the interval between the end of one and the begin of the next. */
export interface Poller {
  /** To be called after the settings have changed. */
  settingsChanged(): void;
  nextPollAt(): string | undefined;
  stop(): Promise<void>;
}

export function startPoller(options: PollerOptions): Poller {
  const { intervalMs, pull, wait, nowMs, onError } = options;
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
        extraMs = pauseAsked(await pull());
      } catch (error) {
        onError(error as Error);
      }
    }
    nextMs = undefined;
    loop = undefined;
  };
  const begin = (): void => {
    if (loop !== undefined || isStopped || intervalMs() === 0) return;
    loop = run().catch((error: unknown) => {
      loop = undefined;
      onError(error as Error);
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
