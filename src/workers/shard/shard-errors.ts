import { AppError } from '../../shared/app-error.ts';
import type { ShardReason } from './shard-reason.ts';

/** Of a read that this worker cannot answer by what it holds: it asks where the shard stands, and comes again. */
export function behind(): AppError {
  return new AppError<ShardReason>('SHARD_BEHIND', 'the shard is not held at that position');
}

/** `version`: of the settings under which the shard was written. */
export function settingsOld(version: number): AppError {
  return new AppError<ShardReason>(
    'SETTINGS_OLD',
    'the settings of the project are older than what the shard holds',
    { version: String(version) },
  );
}

/** For the caller; `cause` is for the log. */
export function unavailable(message: string, cause?: unknown): AppError {
  return new AppError<ShardReason>('SHARD_UNAVAILABLE', message, {}, cause);
}
