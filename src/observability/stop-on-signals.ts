import { AppError } from '../shared/app-error.ts';
import { onStopSignals } from '../shared/stop-signals.ts';
import type { Logger } from './logger.ts';

/** Why a process ends at once, for its log. */
export type StopReason = 'SHUTTING_DOWN';

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
    // What has begun must be ended in order.
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
      fail('stop_forced', new AppError<StopReason>('SHUTTING_DOWN', `${signal} came again`)),
  });
}
