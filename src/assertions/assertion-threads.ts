import { Piscina } from 'piscina';
import type { AuthzReason } from '../model/reasons.ts';
import { AppError, errorFromData } from '../shared/app-error.ts';
import type { AssertionReply, AssertionTask } from './assertion-thread.ts';
import type { FilesResult } from './test-files.ts';

/** Maximum number of calls that wait while the files of another call run. */
const QUEUE_MAX = 8;
/** Time in ms after which an idle thread ends, and frees all that it has read. */
const IDLE_MS = 5_000;
const HEAP_MB_MAX = 512;

/**
 * Runs files of assertions on one thread, separate from those that decide, one call at a time. The thread starts on
 * demand and ends when idle. It ends at once if a call is aborted while it runs.
 */
export class AssertionThreads {
  readonly #pool = new Piscina<AssertionTask, AssertionReply>({
    filename: new URL('./assertion-thread.ts', import.meta.url).href,
    minThreads: 0,
    maxThreads: 1,
    maxQueue: QUEUE_MAX,
    idleTimeout: IDLE_MS,
    atomics: 'disabled',
    recordTiming: false,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
  });

  /**
   * Resolves with the result of the files. Errors: ASSERTIONS_INVALID, MODEL_INVALID, QUEUE_FULL; the reason of
   * `signal`, or CANCELLED if that is no AppError; DEADLINE_EXCEEDED after `timeoutMs`.
   */
  async run(task: AssertionTask, timeoutMs: number, signal: AbortSignal): Promise<FilesResult> {
    if (this.#pool.queueSize >= QUEUE_MAX) throw queueFull();
    const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(timeoutMs)));
    try {
      const reply = await this.#pool.run(task, { signal: AbortSignal.any([signal, timeout]) });
      if (reply.result !== undefined) return reply.result;
      if (reply.error.reason !== 'INTERNAL') throw errorFromData(reply.error);
      throw new Error(reply.stack);
    } catch (error) {
      if (signal.aborted && signal.reason instanceof AppError) throw signal.reason;
      if (signal.aborted) throw new AppError<AuthzReason>('CANCELLED', 'the caller has gone');
      if (!timeout.aborted) throw error;
      const problem = 'the files of assertions were not run to their end before the deadline';
      throw new AppError<AuthzReason>('DEADLINE_EXCEEDED', problem, {}, error);
    }
  }
}

function queueFull(): AppError {
  const problem = 'too many calls wait for their assertions to be run';
  return new AppError<AuthzReason>('QUEUE_FULL', problem, { limit: String(QUEUE_MAX) });
}
