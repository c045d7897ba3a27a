import { AppError } from '../../shared/app-error.ts';
import { findConditionProblems } from '../conditions/declared-condition.ts';
import { type ModelProblem, modelError } from '../model-json.ts';
import { BUILT_IN_NAMESPACES } from './built-in-model.ts';
import { findDuplicateKey } from './duplicate-key.ts';
import { MODEL_NESTING_MAX, readModelDocument } from './model-document.ts';
import { findMootParts } from './model-exclusions.ts';
import { findReferenceProblems } from './model-references.ts';
import type { NamespaceModel } from './model-shape.ts';

export type { NamespaceModel } from './model-shape.ts';

/**
 * Maximum depth of a document. Four objects are around a rewrite, and each of its levels is an object with a list or
 * object in it.
 */
const MODEL_DEPTH_MAX = 4 + 2 * MODEL_NESTING_MAX;
/** Maximum number of reported problems of each kind. */
export const MODEL_PROBLEMS_MAX = 50;

/** A valid document, which may be stored. */
export type CheckedModel = {
  readonly model: NamespaceModel;
  /** Parts of the document that are probably mistakes. */
  readonly warnings: readonly ModelProblem[];
};

/** All problems of a document, which may be stored if there are no errors. */
export type ModelInspection = {
  /** Undefined if the form of the document is wrong. */
  readonly model: NamespaceModel | undefined;
  readonly errors: readonly ModelProblem[];
  readonly warnings: readonly ModelProblem[];
};

/**
 * Parses the stored `model_json` of a project; '' is the built-in model. Accepts what earlier releases accepted:
 * references are not checked, and an undeclared relation is this(). Errors: MODEL_INVALID, whose message and
 * metadata.path name the JSON path. Cost: O(document).
 */
export function parseModel(json: string): NamespaceModel {
  return json === '' ? builtInModel() : readModelDocument(json);
}

/**
 * Finds errors and probable mistakes of a document, at most MODEL_PROBLEMS_MAX of each; '' is the built-in model. If
 * its form is wrong, one error is reported. A document with errors may have been stored before a rule existed: it still
 * loads. Cost: O(document), and a search for near names for each error.
 */
export function inspectModel(json: string): ModelInspection {
  const errors: ModelProblem[] = [];
  const warnings: ModelProblem[] = [];
  const collect =
    (list: ModelProblem[]) =>
    (path: string, message: string, hint = noHint): void => {
      if (list.length >= MODEL_PROBLEMS_MAX) return;
      const isReported = list.some((one) => one.path === path && one.message.startsWith(message));
      if (!isReported) list.push({ path, message: message + hint() });
    };
  try {
    const model = parseModel(json);
    const duplicate = json === '' ? undefined : findDuplicateKey(json, MODEL_DEPTH_MAX);
    if (duplicate !== undefined)
      collect(errors)(duplicate.path, `duplicate key "${duplicate.key}"`);
    findReferenceProblems(model, collect(errors));
    findConditionProblems(model.conditions, collect(errors), collect(warnings));
    if (errors.length === 0) findMootParts(model, collect(errors), collect(warnings));
    return { model, errors, warnings };
  } catch (error) {
    if (!(error instanceof AppError) || error.reason !== 'MODEL_INVALID') throw error;
    const path = error.metadata['path'] ?? '$';
    // The message begins with field and path.
    const message = error.message.slice(`model_json: ${path}: `.length);
    return { model: undefined, errors: [{ path, message }], warnings };
  }
}

/**
 * Checks a document that is to be stored and returns its model. Its form must be valid, without duplicate keys in an
 * object. Names must refer to something, expressions must be valid, and exclusions must be able to exclude someone.
 * Errors: MODEL_INVALID for the first error that `inspectModel` finds, with the number of others. Cost: that of
 * `inspectModel`.
 */
export function checkModelDocument(json: string): CheckedModel {
  const { model, errors, warnings } = inspectModel(json);
  const [first] = errors;
  if (first !== undefined) {
    const more = errors.length === 1 ? '' : ` (and ${errors.length - 1} more)`;
    throw modelError(first.path, first.message + more);
  }
  return { model: model as NamespaceModel, warnings };
}

function noHint(): string {
  return '';
}

/** Model of a project without `model_json`. */
export function builtInModel(): NamespaceModel {
  return {
    namespaces: BUILT_IN_NAMESPACES,
    open: new Set(),
    subjects: new Map(),
    conditions: new Map(),
  };
}
