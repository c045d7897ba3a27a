import { AppError } from '../shared/app-error.ts';
import { nearestName } from '../shared/text/nearest-name.ts';
import type { AuthzReason } from './reasons.ts';

/** Error or warning for the author of a model. */
export type ModelProblem = {
  /** JSON path into the document: `$.namespaces.doc.relations.viewer`. */
  readonly path: string;
  readonly message: string;
};

export type UnreadObject = { readonly [key: string]: unknown };

const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
/** Maximum number of names searched for a suggestion: a message must not cost more than the check. */
const CANDIDATES_MAX = 1_024;

/** The MODEL_INVALID error at a JSON path, which the message and metadata.path name. */
export function modelError(path: string, problem: string, cause?: unknown): AppError<AuthzReason> {
  return new AppError<AuthzReason>(
    'MODEL_INVALID',
    `model_json: ${path}: ${problem}`,
    { field: 'model_json', path },
    cause,
  );
}

/** Parses a JSON text. Errors: MODEL_INVALID at `$`. */
export function parseJson(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw modelError('$', 'is not valid JSON', error);
  }
}

/** Returns `value` as an object. Errors: MODEL_INVALID. */
export function objectOf(value: unknown, path: string): UnreadObject {
  if (value === undefined) throw modelError(path, 'is required');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw modelError(path, 'must be an object');
  }
  return value as UnreadObject;
}

/** Returns `value` as the name of a namespace or relation. Errors: MODEL_INVALID. */
export function nameOf(value: unknown, path: string): string {
  if (value === undefined) throw modelError(path, 'is required');
  if (typeof value !== 'string') throw modelError(path, 'must be a string');
  checkName(value, path);
  return value;
}

/** Rejects anything but the name of a namespace or relation. Errors: MODEL_INVALID. */
export function checkName(name: string, path: string): void {
  if (!NAME.test(name)) throw modelError(path, 'the name must match [a-z][a-z0-9_-]{0,63}');
}

/** Rejects members that are not `known`, and suggests the nearest known one. Errors: MODEL_INVALID. */
export function refuseUnknown(
  document: UnreadObject,
  known: readonly string[],
  path: string,
): void {
  for (const member of Object.keys(document)) {
    if (known.includes(member)) continue;
    throw modelError(`${path}.${member}`, `is not a known member${suggestion(member, known)}`);
  }
}

/** Text `; did you mean "banned"?` for the candidate that is near enough to be a typo, or ''. */
export function suggestion(name: string, candidates: Iterable<string>): string {
  // A longer name is not compared: a valid one has at most 64 characters.
  if (name.length > 64) return '';
  const few: string[] = [];
  for (const candidate of candidates) if (few.push(candidate) === CANDIDATES_MAX) break;
  const nearest = nearestName(name, few);
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`;
}
