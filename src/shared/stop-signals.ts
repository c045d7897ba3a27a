import type { EventEmitter } from 'node:events';
import { onParentGone } from './parent-watch.ts';

/** Nobody who insists does so sooner, and a busy npm may take this long to pass a signal on. */
const ECHO_MS = 1_000;

export type StopHandlers = {
  /** Ends what runs, in order. `cause` is the signal, or who has ended: for the log. */
  readonly stop: (cause: string) => void;
  /** Somebody insists: ends at once. */
  readonly force: (signal: NodeJS.Signals) => void;
};

/** Where the orders to stop come from; others than this process's in tests. */
export type StopSources = {
  readonly signals: Pick<EventEmitter, 'on'>;
  /** The monotonic clock. */
  readonly nowMs: () => number;
  readonly onParentGone: (gone: (what: string) => void) => void;
};

const OF_THIS_PROCESS: StopSources = {
  signals: process,
  nowMs: () => performance.now(),
  onParentGone,
};
/** SIGHUP is a terminal that was closed. */
const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/**
 * A function to be called at each signal that says whether it is the copy of one before: npm passes on
 * what the terminal has already sent to everybody. That is one within `windowMs` of the last that was none.
 */
export function createEchoFilter(
  windowMs = ECHO_MS,
  nowMs = (): number => performance.now(),
): () => boolean {
  let lastMs = Number.NEGATIVE_INFINITY;
  return () => {
    const isEcho = nowMs() - lastMs <= windowMs;
    if (!isEcho) lastMs = nowMs();
    return isEcho;
  };
}

/**
 * From now on the first of `signals`, or the end of the npm that runs this process, calls `stop`, and every later signal that is
 * no copy `force`.
 */
export function onStopSignals(
  { stop, force }: StopHandlers,
  signals: readonly NodeJS.Signals[] = STOP_SIGNALS,
  sources = OF_THIS_PROCESS,
): void {
  const isEcho = createEchoFilter(ECHO_MS, sources.nowMs);
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isEcho()) return;
    if (isStopping) return force(signal);
    isStopping = true;
    stop(signal);
  };
  for (const signal of signals) sources.signals.on(signal, onSignal);
  sources.onParentGone((what) => {
    // Nobody insists by ending.
    if (isStopping) return;
    isStopping = true;
    stop(what);
  });
}
