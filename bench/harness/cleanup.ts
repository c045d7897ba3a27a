const INTERRUPTED = 130;
const pending: (() => unknown)[] = [];
const handlers: (() => void)[] = [];
let ending: Promise<void> | undefined;

/** Has `end` called once when the program is over, failed or interrupted: what was started last ends first. */
export function atEnd(end: () => unknown): void {
  pending.push(end);
}

/** Has SIGINT and SIGTERM call `handler` instead of ending the program, until the function that it returns is called. */
export function onInterrupt(handler: () => void): () => void {
  handlers.push(handler);
  return () => void handlers.splice(handlers.indexOf(handler), 1);
}

/** Calls what is to be called at the end, once; the first failure is thrown after all were called. */
function endAll(): Promise<void> {
  ending ??= endEach();
  return ending;
}

async function endEach(): Promise<void> {
  const failures: unknown[] = [];
  for (let end = pending.pop(); end !== undefined; end = pending.pop()) {
    try {
      await end();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Runs a program, and ends what it started, also on SIGINT and SIGTERM. Once a process. */
export async function withCleanup<T>(work: () => Promise<T>): Promise<T> {
  let isInterrupted = false;
  const interrupt = (): void => {
    const handler = handlers.at(-1);
    if (handler !== undefined) {
      handler();
      return;
    }
    isInterrupted = true;
    void endAll().finally(() => process.exit(INTERRUPTED));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  try {
    return await work();
  } catch (error) {
    // What was ended under its hands fails; the process ends once all has.
    if (isInterrupted) await new Promise(() => undefined);
    throw error;
  } finally {
    await endAll();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, interrupt);
  }
}
