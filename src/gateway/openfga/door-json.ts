import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { assertJsonBounds } from '../../decoding/json-count.ts';
import { DoorError, invalid } from './door-error.ts';

/** An object of a body; a member that is null is absent. */
export type DoorMembers = JsonObject;

/** Values of one body: more would hold the thread up while they are built. */
const VALUES_MAX = 32_768;

/** The object that a body is; an empty body is an empty one. Errors: `validation_error`. O(bytes). */
export function membersOfBody(bytes: Uint8Array): DoorMembers {
  if (bytes.length === 0) return {};
  assertJsonBounds(bytes, { valuesMax: VALUES_MAX, bytesMax: bytes.length });
  let value: JsonValue;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new DoorError(400, 'validation_error', 'malformed JSON', error);
  }
  if (!isMembers(value)) throw invalid('syntax error: the body is no object');
  return value;
}

function isMembers(value: JsonValue | undefined): value is DoorMembers {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function own(members: DoorMembers, name: string): JsonValue | undefined {
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  return value === null ? undefined : value;
}

/** A member that is an object, or undefined. */
export function objectOf(members: DoorMembers, name: string): DoorMembers | undefined {
  const value = own(members, name);
  if (value === undefined) return undefined;
  if (!isMembers(value)) throw invalid(`invalid value for field ${name}: it must be an object`);
  return value;
}

/** A member that is a list of objects; absent is empty. */
export function objectsOf(members: DoorMembers, name: string): readonly DoorMembers[] {
  const value = own(members, name);
  if (value === undefined) return [];
  if (!Array.isArray(value) || !value.every(isMembers)) {
    throw invalid(`invalid value for field ${name}: it must be a list of objects`);
  }
  return value;
}

/** A member that is text of well-formed Unicode; absent is ''. */
export function textOf(members: DoorMembers, name: string): string {
  const value = own(members, name) ?? '';
  if (typeof value !== 'string' || !value.isWellFormed()) {
    throw invalid(`invalid value for string field ${name}`);
  }
  return value;
}

/** A page size from 1 to 100 of a member or parameter; absent is 50. */
export function pageSizeOf(value: JsonValue | undefined): number {
  const isText = typeof value === 'string' && value !== '';
  const size = isText ? Number(value) : (value ?? '') === '' ? 50 : value;
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 1 || size > 100) {
    const range = 'value must be inside range [1, 100]';
    throw new DoorError(400, 'page_size_invalid', `invalid PageSize: ${range}`);
  }
  return size;
}

/** The error of a page token that this service did not issue for this list. */
export function invalidPageToken(): DoorError {
  return new DoorError(400, 'invalid_continuation_token', 'Invalid continuation token');
}

/** A member as it is; undefined where it is absent or null. */
export const valueOf = own;
