import { AppError } from '../../shared/app-error.ts';
import type { ShardReason } from './shard-reason.ts';

/** A read that may not wait asks for more than is held. */
export function behind(): AppError {
  return new AppError<ShardReason>('SHARD_BEHIND', 'the shard is not held at that position');
}

/** The index shows a change that was committed under newer settings than those of the read. */
export function settingsOld(version: number): AppError {
  return new AppError<ShardReason>(
    'SETTINGS_OLD',
    'the settings of the project are older than what the shard holds',
    { version: String(version) },
  );
}

/** The shard is being loaded, for longer than the caller can wait: it may come back in `leftMs`. */
export function loadsLong(leftMs: number): AppError {
  const seconds = String(Math.ceil(leftMs / 1_000));
  return new AppError<ShardReason>(
    'SHARD_UNAVAILABLE',
    `the tenant's tuples are being loaded, which takes about ${seconds} s more`,
    { retry_after_seconds: seconds },
  );
}

/** The shard cannot answer now. */
export function unavailable(message: string, cause?: unknown): AppError {
  return new AppError<ShardReason>('SHARD_UNAVAILABLE', message, {}, cause);
}
