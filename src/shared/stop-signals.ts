import type { EventEmitter } from 'node:events';

/** Nobody who insists does so sooner, and a busy npm may take this long to pass a signal on. */
const ECHO_MS = 1_000;

export type StopHandlers = {
  /** Ends what runs, in order. */
  readonly stop: (signal: NodeJS.Signals) => void;
  /** Somebody insists: ends at once. */
  readonly force: (signal: NodeJS.Signals) => void;
};

/**
 * A function to be called at each signal that tells whether it is the copy of one before: npm passes on
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
 * From now on the first SIGTERM or SIGINT calls `stop`, and every later one that is no copy `force`. `source`
 * and `nowMs` stand for the process and its monotonic clock in tests.
 */
export function onStopSignals(
  { stop, force }: StopHandlers,
  source: Pick<EventEmitter, 'on'> = process,
  nowMs = (): number => performance.now(),
): void {
  const isEcho = createEchoFilter(ECHO_MS, nowMs);
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isEcho()) return;
    if (isStopping) return force(signal);
    isStopping = true;
    stop(signal);
  };
  source.on('SIGTERM', onSignal);
  source.on('SIGINT', onSignal);
}
