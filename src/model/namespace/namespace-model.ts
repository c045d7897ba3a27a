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

/** Four objects hold a rewrite, and each level of one is an object with a list or object in it. */
const MODEL_DEPTH_MAX = 4 + 2 * MODEL_NESTING_MAX;
/** Problems of each kind that are reported, at most. */
export const MODEL_PROBLEMS_MAX = 50;

/** A document that may be stored. */
export type CheckedModel = {
  readonly model: NamespaceModel;
  /** Warnings about parts that are probably not meant. */
  readonly warnings: readonly ModelProblem[];
};

/** All that there is to say about a document; it may be stored where there are no errors. */
export type ModelInspection = {
  /** Undefined where its form is wrong. */
  readonly model: NamespaceModel | undefined;
  readonly errors: readonly ModelProblem[];
  readonly warnings: readonly ModelProblem[];
};

/**
 * The model of a project's stored `model_json`; '' is the built-in model. Takes what releases before took:
 * what a name refers to is not looked at, and a relation that is not there is this().
 * Errors: MODEL_INVALID, whose message and metadata.path name the JSON path. Cost: O(document).
 */
export function parseModel(json: string): NamespaceModel {
  return json === '' ? builtInModel() : readModelDocument(json);
}

/**
 * Errors and warnings of a document, at most MODEL_PROBLEMS_MAX of each; '' is the built-in model. A
 * document of the wrong form has one error. A document with errors may be stored from before a rule
 * existed: it still loads. Cost: O(document), and a search for near names for each error.
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
    // The message begins with the field and the path.
    const message = error.message.slice(`model_json: ${path}: `.length);
    return { model: undefined, errors: [{ path, message }], warnings };
  }
}

/**
 * The model of a document to be stored: its form is right, no object repeats a key, its names are defined,
 * and each part can have an effect. Errors: MODEL_INVALID for the first problem that `inspectModel` finds,
 * with the number of others. Cost: that of `inspectModel`.
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

/** The model of a project without `model_json`. */
export function builtInModel(): NamespaceModel {
  return {
    namespaces: BUILT_IN_NAMESPACES,
    open: new Set(),
    subjects: new Map(),
    conditions: new Map(),
  };
}
