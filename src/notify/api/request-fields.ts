import { AppError } from '../../shared/app-error.ts';
import type { UserKey } from '../model/notification.ts';
import { invalidField } from '../model/reasons.ts';

/** Checks of single fields. Errors of all: FIELD_REQUIRED or FIELD_INVALID with metadata.field. */

const ID = /^[\x21-\x7e]{1,128}$/;
const SLUG = /^[a-z0-9_-]{1,64}$/;
const SECRET = /^[\x20-\x7e]{16,256}$/;
/** Begins a secret as libraries for Standard Webhooks write it: base64 of 24 to 64 bytes follows. */
const STANDARD_PREFIX = 'whsec_';
const STANDARD_BYTES_MIN = 24;
const STANDARD_BYTES_MAX = 64;
/** What is sealed begins like that (store/secret-box.ts). */
const SEALED = /^enc\d+:/;

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

/** Errors: FIELD_INVALID for text of more than `max` characters. */
export function assertLength(field: string, value: string, max: number): void {
  if (value.length > max) throw invalidField(field, `at most ${max} characters`);
}

export function wholeNumber(field: string, value: number, min: number, max: number): number {
  if (value < min || value > max) throw invalidField(field, `must lie between ${min} and ${max}`);
  return value;
}

/** A signing secret; '' is none. */
export function assertSecret(secret: string): void {
  const field = 'signing_secret';
  if (secret.startsWith(STANDARD_PREFIX) && !isStandard(secret.slice(STANDARD_PREFIX.length))) {
    throw invalidField(field, 'must be base64 of 24 to 64 bytes after whsec_');
  }
  if (secret !== '' && !SECRET.test(secret)) {
    throw invalidField(field, 'must be 16 to 256 characters of printable ASCII');
  }
  if (SEALED.test(secret)) throw invalidField(field, 'must not begin as a sealed one does');
}

/**
 * Whether every library for Standard Webhooks decodes the text, and to the same key: with its padding, in the standard
 * alphabet, no bit left over. Several refuse anything else, and the receiver could then verify nothing.
 */
function isStandard(text: string): boolean {
  const key = Buffer.from(text, 'base64');
  const isSize = key.length >= STANDARD_BYTES_MIN && key.length <= STANDARD_BYTES_MAX;
  return isSize && key.toString('base64') === text;
}
