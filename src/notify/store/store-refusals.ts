import { AppError } from '../../shared/app-error.ts';
import { ENDPOINTS_PER_TENANT_MAX } from '../model/notification-store.ts';

/** Both drivers' error for an id that the user does not have. */
export function unknownNotification(id: string): AppError {
  return new AppError('NOTIFICATION_UNKNOWN', 'no such notification of this user', { id });
}

/** Both drivers' error for a tenant that has as many endpoints as it may. */
export function tooManyEndpoints(): AppError {
  const problem = `a tenant may have ${ENDPOINTS_PER_TENANT_MAX} endpoints`;
  return new AppError('RESULT_TOO_LARGE', problem);
}
