import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../model/run.ts';
import { expressionDataFrom } from './expression-data.ts';
import { MATRIX_LEGS_MAX } from './limits.ts';

/** One combination while `include` may still add to it. */
type Leg = { readonly original: JsonObject; readonly added: Map<string, JsonValue> };

/**
 * The legs of an evaluated matrix, in GitHub's order: the product of the vectors (the last varies
 * fastest) without those that match an `exclude`, then each `include` entry is added to every leg whose
 * original values it does not change, or else is a leg of its own.
 * Errors: INVALID_WORKFLOW for another shape, an empty vector, no leg or more than 256.
 * Source: GitHub's documentation, "Running variations of jobs in a workflow".
 */
export function expandMatrix(value: JsonValue): readonly JsonObject[] {
  if (!isObject(value)) {
    throw matrixError('The matrix must be a mapping');
  }
  const { include, exclude, ...vectors } = value;
  const includes = filtersOf(include, 'include');
  const excludes = filtersOf(exclude, 'exclude');
  const legs: Leg[] = productOf(vectors, excludes).map((original) => ({
    original,
    added: new Map<string, JsonValue>(),
  }));
  const alone: JsonObject[] = [];
  for (const entry of includes) {
    const targets = legs.filter((leg) => keepsOriginal(leg.original, entry));
    if (targets.length === 0) {
      alone.push(entry);
    }
    for (const { original, added } of targets) {
      for (const [key, item] of Object.entries(entry)) {
        if (!Object.hasOwn(original, key)) {
          added.set(key, item);
        }
      }
    }
  }
  const all = [
    ...legs.map(({ original, added }) => ({ ...original, ...Object.fromEntries(added) })),
    ...alone,
  ];
  if (all.length === 0) {
    throw matrixError('The matrix has no combination');
  }
  if (all.length > MATRIX_LEGS_MAX) {
    throw tooMany();
  }
  return all;
}

/**
 * Name of the job of one leg where the workflow gives none: `key (a, b)`. Values of objects are listed,
 * too; booleans and numbers are written as expressions write them.
 */
export function legName(jobName: string, leg: JsonObject): string {
  const texts = Object.values(leg).flatMap(textsOf);
  return texts.length === 0 ? jobName : `${jobName} (${texts.join(', ')})`;
}

function textsOf(value: JsonValue): string[] {
  if (value === null || value === '') {
    return [];
  }
  return typeof value === 'object'
    ? Object.values(value).flatMap(textsOf)
    : [expressionDataFrom(value).coerceString()];
}

function productOf(vectors: JsonObject, excludes: readonly JsonObject[]): JsonObject[] {
  const names = Object.keys(vectors);
  if (names.length === 0) {
    return [];
  }
  let legs: JsonObject[] = [{}];
  let size = 1;
  for (const name of names) {
    const vector = vectors[name];
    if (!Array.isArray(vector)) {
      throw matrixError(`Matrix vector '${name}' must be a sequence`);
    }
    if (vector.length === 0) {
      throw matrixError(`Matrix vector '${name}' does not contain any values`);
    }
    size *= vector.length;
    if (size > PRODUCT_MAX) {
      throw tooMany();
    }
    const items: readonly JsonValue[] = vector;
    legs = legs.flatMap((leg) => items.map((item) => ({ ...leg, [name]: item })));
  }
  return legs.filter((leg) => !excludes.some((entry) => isExcluded(leg, entry)));
}

/** Combinations before `exclude`, so that a large matrix of which little is left still works. */
const PRODUCT_MAX = MATRIX_LEGS_MAX * 64;

function isExcluded(leg: JsonObject, entry: JsonObject): boolean {
  const keys = Object.keys(entry);
  return (
    keys.length > 0 &&
    keys.every((key) => Object.hasOwn(leg, key) && matches(leg[key] ?? null, entry[key] ?? null))
  );
}

/** An `include` entry goes to a leg when each key that both have has the same value. */
function keepsOriginal(original: JsonObject, entry: JsonObject): boolean {
  return Object.keys(entry).every(
    (key) => !Object.hasOwn(original, key) || matches(original[key] ?? null, entry[key] ?? null),
  );
}

/** A mapping in a filter matches a mapping that has at least its entries; all else must be equal. */
function matches(value: JsonValue, filter: JsonValue): boolean {
  if (isObject(filter)) {
    return (
      isObject(value) &&
      Object.entries(filter).every(
        ([key, item]) => Object.hasOwn(value, key) && matches(value[key] ?? null, item),
      )
    );
  }
  if (isList(filter)) {
    return (
      isList(value) &&
      value.length === filter.length &&
      filter.every((item, index) => matches(value[index] ?? null, item))
    );
  }
  return value === filter;
}

function filtersOf(value: JsonValue | undefined, name: string): readonly JsonObject[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (!isList(value) || !value.every(isObject)) {
    throw matrixError(`'${name}' of the matrix must be a sequence of mappings`);
  }
  if (value.length > PRODUCT_MAX) {
    throw tooMany();
  }
  return value;
}

function isObject(value: JsonValue): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function tooMany(): AppError {
  return matrixError(`The matrix has more than ${MATRIX_LEGS_MAX} combinations`);
}

function matrixError(message: string): AppError {
  return new AppError('INVALID_WORKFLOW', message, { field: 'strategy.matrix' });
}
