import { AppError } from '../../shared/app-error.ts';

/** FIELD_INVALID that names the field. */
export function invalidField(field: string, problem: string): AppError {
  return new AppError('FIELD_INVALID', `${field}: ${problem}`, { field });
}
