import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';

/** Reasons of the notification service alone; api/notify-error.ts holds the only mapping to codes. */
export type NotifyReason =
  | 'NOTIFICATION_UNKNOWN'
  | 'ENDPOINT_UNKNOWN'
  | 'ENDPOINT_DISABLED'
  | 'DELIVERY_UNKNOWN'
  | 'DELIVERY_SENT'
  | 'DELIVERY_RUNNING'
  | 'CHANNEL_UNAVAILABLE'
  | 'STREAM_TOKEN_INVALID'
  | 'STREAM_LIMIT'
  | 'STREAMS_DISABLED'
  | 'ORIGIN_NOT_ALLOWED';

export type NotifyErrorReason = NotifyReason | SharedReason;

/** FIELD_INVALID that names the field. */
export function invalidField(field: string, problem: string): AppError {
  return new AppError('FIELD_INVALID', `${field}: ${problem}`, { field });
}
