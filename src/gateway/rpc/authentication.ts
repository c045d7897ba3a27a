import { isOneOfSecrets } from '../../http/service-tokens.ts';
import { AppError } from '../../shared/app-error.ts';
import type { RpcReason } from './rpc-reason.ts';

/** Why a call of AdminService is refused, or null. `secrets` is empty when none is configured. */
export function adminRefusal(given: string, secrets: readonly string[]): AppError | null {
  if (secrets.length === 0) {
    return new AppError<RpcReason>(
      'ADMIN_DISABLED',
      'AdminService is disabled: no operator secret is set',
    );
  }
  if (isOneOfSecrets(given, secrets)) return null;
  return new AppError<RpcReason>('ADMIN_SECRET_INVALID', 'X-Admin-Secret is missing or wrong');
}
