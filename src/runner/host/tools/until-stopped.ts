import { AppError } from '../../../shared/app-error.ts';

/**
 * What `work` comes to, which goes on for others when `signal` fires first. Errors: its, CANCELLED.
 */
export async function untilStopped<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return await work;
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(new AppError('CANCELLED', 'The step was stopped'));
  signal.addEventListener('abort', stop);
  try {
    if (signal.aborted) stop();
    return await Promise.race([work, stopped.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
