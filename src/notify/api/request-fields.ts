import { AppError } from '../../shared/app-error.ts';
import type { UserKey } from '../model/notification.ts';
import { invalidField } from './notify-error.ts';

/** Checks of single fields. Errors of all: FIELD_REQUIRED or FIELD_INVALID with metadata.field. */

const ID = /^[\x21-\x7e]{1,128}$/;
const SLUG = /^[a-z0-9_-]{1,64}$/;

export function requiredId(field: string, value: string): string {
  if (value === '') throw new AppError('FIELD_REQUIRED', `${field} is required`, { field });
  if (!ID.test(value)) {
    throw invalidField(field, 'must be at most 128 printable ASCII characters without spaces');
  }
  return value;
}

export function requiredSlug(field: string, value: string): string {
  if (value === '') throw new AppError('FIELD_REQUIRED', `${field} is required`, { field });
  if (!SLUG.test(value)) throw invalidField(field, 'must be at most 64 of a-z, 0-9, - and _');
  return value;
}

export function userKey(request: { readonly tenantId: string; readonly userId: string }): UserKey {
  return {
    tenantId: requiredId('tenant_id', request.tenantId),
    userId: requiredId('user_id', request.userId),
  };
}

/** Text of at most `max` characters. NUL and lone surrogates cannot be stored. */
export function boundedText(field: string, value: string, max: number): string {
  if (value.length > max) throw invalidField(field, `must be at most ${max} characters`);
  if (value.includes('\0') || !value.isWellFormed()) {
    throw invalidField(field, 'must be well-formed text without NUL');
  }
  return value;
}

export function wholeNumber(field: string, value: number, min: number, max: number): number {
  if (value < min || value > max) throw invalidField(field, `must lie between ${min} and ${max}`);
  return value;
}
