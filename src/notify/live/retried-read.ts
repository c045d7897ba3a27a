import { AppError } from '../../shared/app-error.ts';
import type { NotifyLog } from '../core/event-log.ts';
import type { UserKey } from '../model/notification.ts';

/** What `retry_failed` says was tried. */
const CATCH_UP_KEY = 'stream_catch_up';
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;

/**
 * What `read` of the store returns, tried with growing pauses until it succeeds; each failure is logged
 * once. `waitingId` names a stream that waits for it; undefined ends the attempts, and is the result then.
 * Never rejects.
 */
export async function retriedRead<T>(
  log: Pick<NotifyLog, 'retryFailed'>,
  { tenantId, userId }: UserKey,
  waitingId: () => string | undefined,
  read: () => Promise<T>,
): Promise<T | undefined> {
  for (let attempt = 1; ; attempt++) {
    const connectionId = waitingId();
    if (connectionId === undefined) return undefined;
    try {
      return await read();
    } catch (error) {
      const text = error instanceof AppError ? error.message : 'internal error';
      log.retryFailed({ key: CATCH_UP_KEY, connectionId, attempt, error: text, tenantId, userId });
      const ceilingMs = Math.min(RETRY_MS_MIN * 2 ** (attempt - 1), RETRY_MS_MAX);
      const delayMs = ceilingMs * (0.5 + Math.random() / 2);
      await new Promise((resolve) => setTimeout(resolve, delayMs).unref());
    }
  }
}
