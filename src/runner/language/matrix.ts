import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { textOfValue } from './expression-data.ts';
import { MATRIX_JOBS_MAX } from './limits.ts';
import { foldCase, objectEntries, objectFrom, objectKeys, objectValues } from './ordered-object.ts';

/** One combination while `include` may still add to it. */
type MatrixJob = {
  readonly original: JsonObject;
  readonly added: (readonly [string, JsonValue])[];
};

/**
 * The matrix jobs of an evaluated matrix, keys without regard to case and in the order of the text, in GitHub's order: the product of the vectors (the last varies
 * fastest) without those that match an `exclude`, then each `include` entry is added to every matrix job whose
 * original values it does not change, or else is a matrix job of its own.
 * Errors: INVALID_WORKFLOW for another shape, an empty vector, an `exclude` of a key that no vector has, no matrix
 * job or more than 256.
 * Source: GitHub's documentation, "Running variations of jobs in a workflow".
 */
export function expandMatrix(value: JsonValue): readonly JsonObject[] {
  if (!isObject(value)) {
    throw matrixError('The matrix must be a mapping');
  }
  const vectors = objectFrom(objectEntries(value).filter(([key]) => !isFilter(key)));
  const includes = filtersOf(value, 'include');
  const excludes = filtersOf(value, 'exclude');
  const names = objectKeys(vectors);
  for (const key of excludes.flatMap(objectKeys)) {
    if (keyIn(vectors, key) === undefined) throw unknownExclude(key, names);
  }
  const matrixJobs: MatrixJob[] = productOf(vectors, excludes).map((original) => ({
    original,
    added: [],
  }));
  const alone: JsonObject[] = [];
  for (const entry of includes) {
    const targets = matrixJobs.filter((matrixJob) => keepsOriginal(matrixJob.original, entry));
    if (targets.length === 0) {
      alone.push(entry);
    }
    for (const { original, added } of targets) {
      added.push(...objectEntries(entry).filter(([key]) => keyIn(original, key) === undefined));
    }
  }
  const all = [
    ...matrixJobs.map(({ original, added }) => objectFrom([...objectEntries(original), ...added])),
    ...alone,
  ];
  if (all.length === 0) {
    throw matrixError('The matrix has no combination');
  }
  if (all.length > MATRIX_JOBS_MAX) {
    throw tooMany();
  }
  return all;
}

/** Values, as texts, by the keys of a matrix. */
export type MatrixChoice = Readonly<Record<string, readonly string[]>>;

/** The matrix jobs whose values are among those chosen, keys without regard to case; a key that a matrix job has not chooses nothing. */
export function chosenMatrixJobs(
  matrixJobs: readonly JsonObject[],
  choice: MatrixChoice | undefined,
): readonly JsonObject[] {
  const chosen = Object.entries(choice ?? {});
  return matrixJobs.filter((matrixJob) =>
    chosen.every(([key, values]) => {
      const own = keyIn(matrixJob, key);
      if (own === undefined) return true;
      return values.includes(textOfValue(matrixJob[own]));
    }),
  );
}

/**
 * Name of the job of one matrix job where the workflow gives none: `key (a, b)`. Values of objects are listed,
 * too; booleans and numbers are written as expressions write them.
 */
export function matrixJobName(jobName: string, matrixJob: JsonObject): string {
  const texts = objectValues(matrixJob).flatMap(textsOf);
  return texts.length === 0 ? jobName : `${jobName} (${texts.join(', ')})`;
}

function textsOf(value: JsonValue): string[] {
  if (value === null || value === '') {
    return [];
  }
  if (isList(value)) return value.flatMap(textsOf);
  return isObject(value) ? objectValues(value).flatMap(textsOf) : [textOfValue(value)];
}

function productOf(vectors: JsonObject, excludes: readonly JsonObject[]): JsonObject[] {
  const names = objectKeys(vectors);
  if (names.length === 0) {
    return [];
  }
  let matrixJobs: JsonObject[] = [{}];
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
    matrixJobs = matrixJobs.flatMap((matrixJob) =>
      items.map((item) => objectFrom([...objectEntries(matrixJob), [name, item]])),
    );
  }
  return matrixJobs.filter((matrixJob) => !excludes.some((entry) => isExcluded(matrixJob, entry)));
}

/** Combinations before `exclude`, so that a large matrix of which little is left still works. */
const PRODUCT_MAX = MATRIX_JOBS_MAX * 64;

function isExcluded(matrixJob: JsonObject, entry: JsonObject): boolean {
  const keys = Object.keys(entry);
  return (
    keys.length > 0 &&
    keys.every((key) => matches(matrixJob[keyIn(matrixJob, key) ?? ''] ?? null, entry[key] ?? null))
  );
}

/** An `include` entry goes to a matrix job when each key that both have has the same value. */
function keepsOriginal(original: JsonObject, entry: JsonObject): boolean {
  return Object.keys(entry).every((key) => {
    const own = keyIn(original, key);
    return own === undefined || matches(original[own] ?? null, entry[key] ?? null);
  });
}

/** A mapping in a filter matches a mapping that has at least its entries; all else must be equal. */
function matches(value: JsonValue, filter: JsonValue): boolean {
  if (isObject(filter)) {
    return (
      isObject(value) &&
      Object.entries(filter).every(([key, item]) => {
        const own = keyIn(value, key);
        return own !== undefined && matches(value[own] ?? null, item);
      })
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

/** Whether a key of a matrix names no vector. */
export function isFilter(key: string): boolean {
  const folded = foldCase(key);
  return folded === 'INCLUDE' || folded === 'EXCLUDE';
}

function filtersOf(matrix: JsonObject, name: 'include' | 'exclude'): readonly JsonObject[] {
  const value = matrix[keyIn(matrix, name) ?? name];
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

/** The key of `object` that `key` means, as GitHub compares keys: `OS` is `os`. */
function keyIn(object: JsonObject, key: string): string | undefined {
  if (Object.hasOwn(object, key)) return key;
  const folded = foldCase(key);
  return Object.keys(object).find((own) => foldCase(own) === folded);
}

function unknownExclude(key: string, names: readonly string[]): AppError {
  const has = names.length === 0 ? 'it has none' : `it has ${names.join(', ')}`;
  return matrixError(`'exclude' names '${key}', which is no vector of the matrix: ${has}`);
}

function isObject(value: JsonValue): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function tooMany(): AppError {
  return matrixError(`The matrix has more than ${MATRIX_JOBS_MAX} combinations`);
}

function matrixError(message: string): AppError {
  return new AppError('INVALID_WORKFLOW', message, { field: 'strategy.matrix' });
}
