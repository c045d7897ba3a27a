import { AppError } from '../shared/app-error.ts';
import { EngineError, type ErrorReason } from './engine-error.ts';

/** Does something within the library, whose AppErrors leave it as EngineErrors. */
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
  // Only modules that raise these are reached.
  return new EngineError(reason as ErrorReason, message, { field, problems });
}
