import { AppError } from '../shared/app-error.ts';
import { classifyPgError } from './pg-errors.ts';
import type { StoreReason } from './store-reason.ts';

/** STORE_UNAVAILABLE for trouble that may pass; anything else as it is. */
export function storeError(error: unknown): unknown {
  const failure = classifyPgError(error);
  if (failure !== 'unavailable' && failure !== 'timeout' && failure !== 'retryable') return error;
  return new AppError<StoreReason>('STORE_UNAVAILABLE', 'the database is not available', {}, error);
}
