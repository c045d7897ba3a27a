import { Code, ConnectError } from '@connectrpc/connect';
import { AppError } from '../../../shared/app-error.ts';
import { cancelled, deadlineExceeded, outcomeUnknown } from './call-errors.ts';

/** Time in ms after its deadline in which a change is still answered with its outcome. */
const LAST_WORD_MS = 150;

/**
 * Settles as `work` does, or rejects as soon as `signal` is aborted. A handler that does not listen to its signal thus cannot
 * delay an answer beyond the deadline.
 *
 * The error "the deadline has passed" would mean that nothing was changed. A change therefore rejects with
 * WRITE_OUTCOME_UNKNOWN, once LAST_WORD_MS more have passed.
 */
export function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  mayChange: boolean,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const onAbort = (): void => {
      const reason = abortReason(signal);
      if (!mayChange || !isDeadline(reason)) reject(reason);
      else timer = setTimeout(() => reject(outcomeUnknown()), LAST_WORD_MS);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    // Removed before the result is passed on: the end of the call aborts its signal, too.
    const settled = (): void => {
      signal.removeEventListener('abort', onAbort);
      clearTimeout(timer);
    };
    work.then(
      (value) => {
        settled();
        resolve(value);
      },
      (error: unknown) => {
        settled();
        reject(error);
      },
    );
  });
}

/**
 * Yields what `answers` yields, and awaits each no longer than until `signal` is aborted. With `mayChange`, the outcome of a
 * change may still come for a moment after the deadline; if it does not, the error is WRITE_OUTCOME_UNKNOWN.
 * Errors: those of `answers`; DEADLINE_EXCEEDED, CANCELLED.
 */
export async function* givenUntilAborted<T>(
  answers: AsyncIterable<T>,
  signal: AbortSignal,
  mayChange: boolean,
): AsyncGenerator<T> {
  const iterator = answers[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await untilAborted(iterator.next(), signal, mayChange);
      if (step.done === true) return;
      yield step.value;
    }
  } finally {
    // Not awaited: a handler that is stuck would never return.
    iterator.return?.().catch(ignoreLateFailure);
  }
}

/**
 * The reason why a call has ended before its answer: its deadline has passed, its client or its credential has gone, or the
 * process ends.
 */
export function abortReason(signal: AbortSignal): unknown {
  const reason: unknown = signal.reason;
  if (reason instanceof AppError || reason instanceof ConnectError) return reason;
  if (reason instanceof Error && reason.name === 'TimeoutError') return deadlineExceeded();
  return cancelled();
}

function isDeadline(reason: unknown): boolean {
  return reason instanceof ConnectError
    ? reason.code === Code.DeadlineExceeded
    : reason instanceof AppError && reason.reason === 'DEADLINE_EXCEEDED';
}

function ignoreLateFailure(): void {
  // The answer was given when the signal was aborted; what the work says after that has no reader.
}
