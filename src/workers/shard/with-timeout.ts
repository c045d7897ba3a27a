/**
 * Runs `work` with a signal that aborts after `ms`. AbortSignal.timeout would keep its timer, and what listens, until
 * then, however soon the work has ended: thousands of loads a second.
 */
export async function withTimeout<T>(
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new DOMException('the time was up', 'TimeoutError'));
  }, ms);
  timer.unref();
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
  }
}
