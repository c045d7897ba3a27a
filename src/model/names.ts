import { type AppError, errorWithoutStack } from '../shared/app-error.ts';
import type { JsonValue } from '../shared/json.ts';
import { utf8Length } from '../shared/text/utf8.ts';
import { JSON_DEPTH_MAX } from './canonical-json.ts';
import { type AuthzReason, fieldError } from './reasons.ts';

/** The namespace whose tuples only seat operations may write. */
export const SEAT_NAMESPACE = 'seat';

/** Maximum length of object and user ids in bytes of UTF-8. */
export const ID_BYTES_MAX = 256;
/** Maximum length of display and project names in characters (code points). */
export const NAME_CHARACTERS_MAX = 200;
/** Maximum length of an e-mail address in characters (UTF-16 units), after RFC 5321. */
const EMAIL_CHARACTERS_MAX = 254;

/** One `@`; no white space, control characters or invisible format characters. */
const EMAIL = /^[^@\s\p{C}]+@[^@\s\p{C}]+$/u;
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const PROJECT_ID = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const TENANT_ID = /^[A-Za-z0-9._:-]{0,128}$/;
const DATA_REGION = /^[a-z0-9-]{1,63}$/;
const SKU = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** Control characters (C0, DEL and C1) and `#`, which separates an object from its relation. */
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const ID_FORBIDDEN = /[\u0000-\u001f\u007f-\u009f#]/;

/** The FIELD_REQUIRED error that names the field. */
export function requiredError(field: string): AppError {
  return errorWithoutStack<AuthzReason>('FIELD_REQUIRED', `${field}: is required`, { field });
}

/**
 * Whether `checkNamespace` and `checkRelation` accept a value. Hot: the two names checked last are not checked again.
 */
export function isName(value: string): boolean {
  if (value === lastName || value === formerName) return true;
  if (!NAME.test(value)) return false;
  formerName = lastName;
  lastName = value;
  return true;
}

let lastName = 'a';
let formerName = 'a';

/**
 * True only if `checkObjectId` and `checkUserId` accept a value. False for every long value: these need the full check.
 */
export function isShortId(value: string): boolean {
  return (
    value !== '' &&
    value.length * 3 <= ID_BYTES_MAX &&
    !ID_FORBIDDEN.test(value) &&
    value.isWellFormed()
  );
}

/** Checks the name of a namespace. Errors: FIELD_REQUIRED, FIELD_INVALID naming `field`. Cost: one regex. */
export function checkNamespace(field: string, value: string): void {
  checkPattern(field, value, NAME, 'must match [a-z][a-z0-9_-]{0,63}');
}

/** Checks the name of a relation; same form as a namespace. */
export function checkRelation(field: string, value: string): void {
  checkPattern(field, value, NAME, 'must match [a-z][a-z0-9_-]{0,63}');
}

/** Checks an object id: 1-256 bytes of UTF-8 without control characters or `#`. */
export function checkObjectId(field: string, value: string): void {
  checkId(field, value);
}

/** Checks a user id; same form as an object id. */
export function checkUserId(field: string, value: string): void {
  checkId(field, value);
}

/** Checks a project id, which is never empty: the caller has already replaced '' by the default project. */
export function checkProjectId(field: string, value: string): void {
  checkPattern(field, value, PROJECT_ID, 'must match [a-z0-9][a-z0-9_-]{0,62}');
}

/** Whether `checkTenantId` accepts a value. Hot. */
export function isTenantId(value: string): boolean {
  return TENANT_ID.test(value);
}

/** Checks a tenant id; '' is the default tenant. */
export function checkTenantId(field: string, value: string): void {
  if (!isTenantId(value)) throw fieldError(field, 'must match [A-Za-z0-9._:-]{0,128}');
}

/** Checks a data region, which must not be empty. */
export function checkDataRegion(field: string, value: string): void {
  checkPattern(field, value, DATA_REGION, 'must match [a-z0-9-]{1,63}');
}

/** Checks a stock keeping unit of seats. */
export function checkSku(field: string, value: string): void {
  checkPattern(field, value, SKU, 'must match [A-Za-z0-9][A-Za-z0-9._-]{0,62}');
}

/** Checks a condition name: any text of at most 256 bytes. Unknown names deny at evaluation. */
export function checkConditionName(field: string, value: string): void {
  checkText(field, value);
  if (utf8Length(value) > ID_BYTES_MAX) {
    throw fieldError(field, `must have at most ${ID_BYTES_MAX} bytes of UTF-8`);
  }
}

/** Checks a display name, trimmed: 1-200 characters. Returns the trimmed text. */
export function checkDisplayName(field: string, value: string): string {
  checkText(field, value);
  const name = value.trim();
  if (name === '') throw requiredError(field);
  // A code point is at most two units, so only long texts need counting.
  if (name.length > NAME_CHARACTERS_MAX && Array.from(name).length > NAME_CHARACTERS_MAX) {
    throw fieldError(field, `must have at most ${NAME_CHARACTERS_MAX} characters`);
  }
  return name;
}

/** Checks an e-mail address: one `@` between two non-empty parts, no spaces, at most 254 characters. */
export function checkEmail(field: string, value: string): void {
  if (value === '') throw requiredError(field);
  checkText(field, value);
  if (value.length > EMAIL_CHARACTERS_MAX) {
    throw fieldError(field, `must have at most ${EMAIL_CHARACTERS_MAX} characters`);
  }
  if (!EMAIL.test(value)) throw fieldError(field, 'must be an e-mail address');
}

/** Checks a string: well-formed UTF-16 without U+0000, which the database cannot hold. Cost: O(length). */
export function checkText(field: string, value: string): void {
  const problem = textProblem(value);
  if (problem !== null) throw fieldError(field, problem);
}

/**
 * Checks that all strings and member names of a JSON value are well-formed, and its numbers finite. An error extends
 * `field` by a path: `context.a[2]`. Errors: FIELD_INVALID. Cost: O(size), with limited depth.
 */
export function checkJson(field: string, value: JsonValue): void {
  const problem = jsonProblem(value, 0);
  if (problem !== null) throw fieldError(`${field}${problem.path}`, problem.text);
}

/**
 * Problem of a JSON value, with its path below the field. The path is built while returning, since most values have no
 * problem.
 */
type JsonProblem = { readonly path: string; readonly text: string };

function jsonProblem(value: JsonValue, depth: number): JsonProblem | null {
  if (depth > JSON_DEPTH_MAX) return { path: '', text: `is nested deeper than ${JSON_DEPTH_MAX}` };
  if (typeof value === 'string') return problemAt('', textProblem(value));
  if (typeof value === 'number' && !Number.isFinite(value)) {
    return { path: '', text: 'must be a finite number' };
  }
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) {
    for (const [i, entry] of value.entries()) {
      const problem = jsonProblem(entry as JsonValue, depth + 1);
      if (problem !== null) return { ...problem, path: `[${i}]${problem.path}` };
    }
    return null;
  }
  for (const [key, entry] of Object.entries(value)) {
    const ofName = problemAt(' (a member name)', textProblem(key));
    if (ofName !== null) return ofName;
    const problem = jsonProblem(entry, depth + 1);
    if (problem !== null) return { ...problem, path: `.${key}${problem.path}` };
  }
  return null;
}

function problemAt(path: string, text: string | null): JsonProblem | null {
  return text === null ? null : { path, text };
}

function textProblem(value: string): string | null {
  if (!value.isWellFormed()) return 'is not well-formed Unicode';
  return value.includes('\u0000') ? 'must not contain U+0000' : null;
}

function checkPattern(field: string, value: string, pattern: RegExp, problem: string): void {
  if (value === '') throw requiredError(field);
  if (!pattern.test(value)) throw fieldError(field, problem);
}

function checkId(field: string, value: string): void {
  if (value === '') throw requiredError(field);
  if (ID_FORBIDDEN.test(value)) {
    throw fieldError(field, 'must not contain control characters or #');
  }
  if (!value.isWellFormed()) throw fieldError(field, 'is not well-formed Unicode');
  // A UTF-16 unit is at most three bytes, so short ids need no counting.
  if (value.length * 3 > ID_BYTES_MAX && utf8Length(value) > ID_BYTES_MAX) {
    throw fieldError(field, `must have at most ${ID_BYTES_MAX} bytes of UTF-8`);
  }
}
