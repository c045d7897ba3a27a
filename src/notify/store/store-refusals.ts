import { AppError } from '../../shared/app-error.ts';
import { ENDPOINTS_PER_TENANT_MAX } from '../model/notification-store.ts';

/** The error for an id that the user does not have. */
export function unknownNotification(id: string): AppError {
  return new AppError('NOTIFICATION_UNKNOWN', 'no such notification of this user', { id });
}

/** The error for a tenant that has as many endpoints as it may. */
export function tooManyEndpoints(): AppError {
  const problem = `a tenant may have ${ENDPOINTS_PER_TENANT_MAX} endpoints`;
  return new AppError('RESULT_TOO_LARGE', problem);
}

/** The error for a delivery that the tenant does not have. */
export function unknownDelivery(): AppError {
  return new AppError('DELIVERY_UNKNOWN', 'no such delivery of this tenant');
}

/** The error for what cannot be tried again. `what` of it stands in the way. */
export function notRetriable(what: 'sent' | 'running' | 'disabled' | 'removed'): AppError {
  switch (what) {
    case 'sent':
      return new AppError('DELIVERY_SENT', 'the delivery has been sent');
    case 'running':
      return new AppError('DELIVERY_RUNNING', 'an attempt to deliver is in progress');
    case 'disabled':
      return new AppError('ENDPOINT_DISABLED', 'the endpoint is disabled; EnableEndpoint first');
    case 'removed':
      return new AppError('ENDPOINT_UNKNOWN', 'the endpoint was removed');
  }
}

/** The last error of what is given up with its endpoint. */
export const ENDPOINT_REMOVED = 'the endpoint was removed';
export const ENDPOINT_DISABLED = 'the endpoint is disabled';
