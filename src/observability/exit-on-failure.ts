import { AppError } from '../shared/app-error.ts';
import type { Logger } from './logger.ts';

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
  // Of the operating system, such as a port that is taken.
  if (cause instanceof Error && 'syscall' in cause) return { error: cause.message };
  return { error: cause };
}
