import { secretEquals } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';
import type { RpcReason } from './rpc-reason.ts';

/** Why a call of AdminService is refused, or null. `secret` is '' when none is configured. */
export function adminRefusal(given: string, secret: string): AppError | null {
  if (secret === '') {
    return new AppError<RpcReason>(
      'ADMIN_DISABLED',
      'AdminService is disabled: no operator secret is set',
    );
  }
  if (secretEquals(given, secret)) return null;
  return new AppError<RpcReason>('ADMIN_SECRET_INVALID', 'X-Admin-Secret is missing or wrong');
}
