import { AppError } from '../../shared/app-error.ts';

/** Text for the log: the stack names our code, an AppError's cause what the store said. */
export function textOfError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return error instanceof AppError ? error.message + cause : (error.stack ?? error.message);
}
