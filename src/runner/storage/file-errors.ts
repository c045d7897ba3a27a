import { AppError } from '../../shared/app-error.ts';

/** Node's code of a failed system call (`ENOENT`…), undefined for anything else. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/**
 * What a failed file operation is to a caller: DISK_FULL when the disk or the quota is used up, else
 * STORE_UNAVAILABLE. `what` says what was tried, without paths; the system's error is the cause.
 */
export function storageError(what: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  const code = systemCode(error) ?? 'unknown';
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new AppError('DISK_FULL', `${what}: no space is left on the disk`, {}, error);
  }
  return new AppError('STORE_UNAVAILABLE', `${what} failed (${code})`, { code }, error);
}

/** The value, or undefined when the file or folder is not there. */
export async function ifPresent<T>(action: Promise<T>): Promise<T | undefined> {
  try {
    return await action;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
