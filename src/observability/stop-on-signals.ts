import { AppError } from '../shared/app-error.ts';
import { onStopSignals } from '../shared/process/stop-signals.ts';
import type { SharedReason } from '../shared/reasons.ts';
import type { Logger } from './logger.ts';

/**
 * Stops a service, also one that is still starting, at the first signal, and ends the process with 0; at one more it ends
 * at once. `fail` logs and ends the process. `stopping` is aborted first: what a start does that a stop need not wait for ends.
 */
export function stopOnSignals(
  starting: Promise<{ stop(): Promise<void> }>,
  logger: Logger,
  fail: (event: string, cause: unknown) => void,
  stopping = new AbortController(),
): void {
  const stop = async (): Promise<void> => {
    // A start that has begun is awaited, then stopped in order.
    const service = await starting;
    await service.stop();
    logger.info('stopped');
    process.exit(0);
  };
  onStopSignals({
    stop: (signal) => {
      logger.info({ signal }, 'stopping');
      stopping.abort();
      stop().catch((error: unknown) => fail('stop_failed', error));
    },
    force: (signal) =>
      fail('stop_forced', new AppError<SharedReason>('SHUTTING_DOWN', `${signal} came again`)),
  });
}

/** The exit code of a process that failed. */
export const EXIT_FAILURE = 1;

/**
 * Makes what ends the process for a failure, and ends it so for exceptions that nobody caught. What the operator can act
 * on is in the message; a stack helps only with the unforeseen.
 */
export function exitOnFailure(
  logger: Pick<Logger, 'error'>,
): (event: string, cause: unknown) => never {
  const fail = (event: string, cause: unknown): never => {
    logger.error(fieldsOf(cause), event);
    process.exit(EXIT_FAILURE);
  };
  process.on('uncaughtException', (error) => fail('uncaught_exception', error));
  process.on('unhandledRejection', (error) => fail('unhandled_rejection', error));
  return fail;
}

function fieldsOf(cause: unknown): object {
  if (cause instanceof AppError) return { reason: cause.reason, error: cause.message };
  // A system error, such as a port in use.
  if (cause instanceof Error && 'syscall' in cause) return { error: cause.message };
  return { error: cause };
}
