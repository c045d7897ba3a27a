import type { EventEmitter } from 'node:events';

/** npm passes a signal on that the terminal has already sent to everybody. */
const SAME_SIGNAL_MS = 1_000;

export type StopHandlers = {
  /** Ends what runs, in order. */
  readonly stop: (signal: NodeJS.Signals) => void;
  /** Somebody insists: ends at once. */
  readonly force: (signal: NodeJS.Signals) => void;
};

/**
 * From now on the first SIGTERM or SIGINT calls `stop`, and one that comes more than a second later `force`.
 * Those within the second are the same Ctrl-C told twice. `source` and `nowMs` stand for the process
 * and its monotonic clock in tests.
 */
export function onStopSignals(
  { stop, force }: StopHandlers,
  source: Pick<EventEmitter, 'on'> = process,
  nowMs = (): number => performance.now(),
): void {
  let stoppingSinceMs: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (stoppingSinceMs === undefined) {
      stoppingSinceMs = nowMs();
      stop(signal);
    } else if (nowMs() - stoppingSinceMs > SAME_SIGNAL_MS) force(signal);
  };
  source.on('SIGTERM', onSignal);
  source.on('SIGINT', onSignal);
}
