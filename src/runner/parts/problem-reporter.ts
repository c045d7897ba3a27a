import type { Logger } from '../../observability/logger.ts';
import type { ProblemReporter } from '../model/ports.ts';

/** Problems that nobody can be told of, as lines of the log. */
export function reporterOf(logger: Logger): ProblemReporter {
  return (event, error) => {
    logger.warn({ error: error.message, cause: causeText(error) }, event);
  };
}

function causeText(error: Error): string | undefined {
  return error.cause instanceof Error ? error.cause.message : undefined;
}
