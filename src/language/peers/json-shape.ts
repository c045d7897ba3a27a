import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

export type JsonMembers = { readonly [member: string]: unknown };

/** The error that a peer's file has another form than its format says. */
export function shapeError(place: string, problem: string): AppError<AuthzReason> {
  return new AppError<AuthzReason>('FIELD_INVALID', `${place}: ${problem}`);
}

/** An object. Errors: FIELD_INVALID naming `place`, as all of these. */
export function membersOf(value: unknown, place: string): JsonMembers {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw shapeError(place, 'must be an object');
  }
  return value as JsonMembers;
}

/** An object, or the empty one where there is none. */
export function optionalMembers(value: unknown, place: string): JsonMembers {
  return value === undefined || value === null ? {} : membersOf(value, place);
}

/** A list, or the empty one where there is none. */
export function optionalList(value: unknown, place: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw shapeError(place, 'must be a list');
  return value;
}

/** A string that is not empty. */
export function stringOf(value: unknown, place: string): string {
  if (typeof value !== 'string' || value === '') throw shapeError(place, 'must be a string');
  return value;
}

/** A string, or undefined where there is none or an empty one. */
export function optionalString(value: unknown, place: string): string | undefined {
  return value === undefined || value === null || value === '' ? undefined : stringOf(value, place);
}
