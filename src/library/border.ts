import { AppError } from '../shared/app-error.ts';
import { EngineError, type ErrorReason } from './engine-error.ts';

/** Runs `work` inside the library. Rethrows its AppErrors as EngineErrors. */
export function atBorder<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw engineError(error);
  }
}

function engineError({ reason, message, metadata }: AppError): EngineError {
  const { field, line, column, path } = metadata;
  const isPlaced = line !== undefined && column !== undefined;
  const place = isPlaced ? { line: Number(line), column: Number(column) } : {};
  const problems = isPlaced || path !== undefined ? [{ message, path, ...place }] : [];
  // The engine's own message is about a project's settings.
  const text =
    reason === 'BUDGET_EXHAUSTED'
      ? 'the evaluation needs more reads than options.readsMax'
      : message;
  // Only modules that throw these reasons can be reached.
  return new EngineError(reason as ErrorReason, text, { field, problems });
}
