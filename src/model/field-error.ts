import { type AppError, errorWithoutStack } from '../shared/app-error.ts';
import type { ModelReason } from './model-reason.ts';

/** FIELD_INVALID that names the field first, as every message about input does. */
export function fieldError(field: string, problem: string): AppError<ModelReason> {
  return errorWithoutStack<ModelReason>('FIELD_INVALID', `${field}: ${problem}`, { field });
}
