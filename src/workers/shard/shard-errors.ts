import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

/** A read that may not wait asks for more than is held. */
export function behind(): AppError {
  return new AppError<AuthzReason>('SHARD_BEHIND', 'the shard is not held at that position');
}

/** The index shows a change that was committed under newer settings than those of the read. */
export function settingsOld(version: number): AppError {
  return new AppError<AuthzReason>(
    'SETTINGS_OLD',
    'the settings of the project are older than what the shard holds',
    { version: String(version) },
  );
}

/** The shard is being loaded, for longer than the caller can wait: it may come back in `leftMs`. */
export function loadsLong(leftMs: number): AppError {
  const seconds = String(Math.ceil(leftMs / 1_000));
  return new AppError<AuthzReason>(
    'SHARD_UNAVAILABLE',
    `the tenant's tuples are being loaded, which takes about ${seconds} s more`,
    { retry_after_seconds: seconds },
  );
}

/** The caller's own time is over, whatever it waited for. */
export function deadlineExceeded(): AppError {
  return new AppError<AuthzReason>('DEADLINE_EXCEEDED', 'the deadline ended before the decision');
}

/**
 * The error of a job whose wait ended: DEADLINE_EXCEEDED where its caller's own time is over, else unavailable with
 * `message`.
 */
export function waitOver(
  job: { readonly deadlineMs: number; readonly isDeadlineStated: boolean },
  nowMs: number,
  message: string,
): AppError {
  const isCallersTimeOver = job.isDeadlineStated && job.deadlineMs <= nowMs;
  return isCallersTimeOver ? deadlineExceeded() : unavailable(message);
}

/** The shard cannot answer now. */
export function unavailable(message: string, cause?: unknown): AppError {
  return new AppError<AuthzReason>('SHARD_UNAVAILABLE', message, {}, cause);
}

/** Text for the log: the stack names our code, an AppError's cause the error of the store. */
export function textOfError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return error instanceof AppError ? error.message + cause : (error.stack ?? error.message);
}
