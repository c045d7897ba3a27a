/**
 * The first answer of two: a second call is made where the first has not answered after `afterMs`, and the slower of
 * the two is aborted. It costs the service at most one more call, and cuts the tail of one slow instance (Dean and
 * Barroso, "The Tail at Scale", 2013). An error of one waits for the other.
 */
export function hedged<Result>(
  afterMs: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const calls: AbortController[] = [];
    let failures = 0;
    const start = (): void => {
      const controller = new AbortController();
      calls.push(controller);
      call(AbortSignal.any([signal, controller.signal])).then(
        (result) => {
          clearTimeout(timer);
          for (const other of calls) if (other !== controller) other.abort();
          resolve(result);
        },
        (error: unknown) => {
          failures += 1;
          // Before the second was made the failure is the answer: repeating is the retry's work.
          if (failures < calls.length) return;
          clearTimeout(timer);
          reject(error);
        },
      );
    };
    const timer = setTimeout(start, afterMs);
    start();
  });
}
