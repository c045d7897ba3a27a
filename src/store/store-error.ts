import { AppError } from '../shared/app-error.ts';
import { classifyPgError, type PgRefusal, refusalIn } from './pg-errors.ts';
import type { StoreReason } from './store-reason.ts';

const REFUSALS: Readonly<Record<PgRefusal, readonly [reason: StoreReason, text: string]>> = {
  disk_full: ['STORE_FULL', 'the database has no room left on its disk: nothing was written'],
  read_only: ['STORE_READ_ONLY', 'the database only reads for now: nothing was written'],
  rights_missing: ['STORE_RIGHTS_MISSING', 'the database refuses the rights of the service'],
  login_refused: ['STORE_LOGIN_REFUSED', 'the database refuses the login of the service'],
};

/**
 * What a caller is notified of an error of the driver: the reason of its own that a refusal has, STORE_UNAVAILABLE for trouble
 * that may pass by itself; anything else as it is.
 */
export function storeError(error: unknown): unknown {
  const refusal = refusalIn(error);
  if (refusal !== undefined) {
    const [reason, text] = REFUSALS[refusal];
    return new AppError<StoreReason>(reason, text, {}, error);
  }
  const failure = classifyPgError(error);
  if (failure !== 'unavailable' && failure !== 'timeout' && failure !== 'retryable') return error;
  return new AppError<StoreReason>('STORE_UNAVAILABLE', 'the database is not available', {}, error);
}
