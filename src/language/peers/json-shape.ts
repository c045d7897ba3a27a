import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';

export type JsonMembers = { readonly [member: string]: unknown };

/** The error for a peer's file whose form differs from its format. */
export function shapeError(place: string, problem: string): AppError<AuthzReason> {
  return new AppError<AuthzReason>('FIELD_INVALID', `${place}: ${problem}`);
}

/** An object. Errors: FIELD_INVALID naming `place`, as for all of these functions. */
export function membersOf(value: unknown, place: string): JsonMembers {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw shapeError(place, 'must be an object');
  }
  return value as JsonMembers;
}

/** An object; an empty one if the value is absent. */
export function optionalMembers(value: unknown, place: string): JsonMembers {
  return value === undefined || value === null ? {} : membersOf(value, place);
}

/** A list; an empty one if the value is absent. */
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

/** A string; undefined if it is absent or empty. */
export function optionalString(value: unknown, place: string): string | undefined {
  return value === undefined || value === null || value === '' ? undefined : stringOf(value, place);
}
