const INTERRUPTED = 130;
/** npm passes on a signal that the terminal has sent already: one that follows so soon is the same. */
const SAME_MS = 1_000;
const pending: (() => unknown)[] = [];
const handlers: (() => boolean)[] = [];
let ending: Promise<void> | undefined;

/** Has `end` called once when the program is over, failed or interrupted: what was started last ends first. */
export function atEnd(end: () => unknown): void {
  pending.push(end);
}

/** Has SIGINT and SIGTERM call `handler` first, until the function that is returned is called; where it answers false the program ends. */
export function onInterrupt(handler: () => boolean): () => void {
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
  let signalledMs = -Infinity;
  const interrupt = (): void => {
    const nowMs = performance.now();
    if (nowMs - signalledMs < SAME_MS) return;
    signalledMs = nowMs;
    const handler = handlers.at(-1);
    if (handler?.() === true) return;
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
    // A second signal may still be on its way.
    if (signalledMs < 0)
      for (const signal of ['SIGINT', 'SIGTERM'] as const)
        process.removeListener(signal, interrupt);
  }
}
