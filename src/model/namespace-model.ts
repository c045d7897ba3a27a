import { BUILT_IN_NAMESPACES } from './built-in-model.ts';
import { isProblem } from './cel-program.ts';
import { compileCondition } from './declared-condition.ts';
import { findDuplicateKey } from './duplicate-key.ts';
import type { ConditionDeclaration } from './model-conditions.ts';
import { MODEL_NESTING_MAX, readModelDocument } from './model-document.ts';
import { modelError } from './model-json.ts';
import type { NamespaceModel } from './model-shape.ts';

export type { NamespaceModel } from './model-shape.ts';

/** Four objects hold a rewrite, and each level of one is an object with a list or object in it. */
const MODEL_DEPTH_MAX = 4 + 2 * MODEL_NESTING_MAX;

/**
 * The model of a project's stored `model_json`; '' is the built-in model. Takes what releases before took:
 * what a name refers to is not looked at, and a relation that is not there is this().
 * Errors: MODEL_INVALID, whose message and metadata.path name the JSON path. Cost: O(document).
 */
export function parseModel(json: string): NamespaceModel {
  return json === '' ? builtInModel() : readModelDocument(json);
}

/**
 * Refuses a document that must not be stored: one that `parseModel` refuses, or that names a key of an
 * object twice, of which all but the last would be lost without a word. One that was stored before
 * still loads, so that `parseModel` itself takes it.
 * Errors: MODEL_INVALID, as `parseModel`. Cost: O(document).
 */
export function checkModelDocument(json: string): void {
  const { conditions } = parseModel(json);
  for (const condition of conditions.values()) refuseFault(condition);
  const duplicate = findDuplicateKey(json, MODEL_DEPTH_MAX);
  if (duplicate === undefined) return;
  throw modelError(duplicate.path, `duplicate key "${duplicate.key}"`);
}

/** Errors: MODEL_INVALID with line and column, where the expression is not valid or no bool. */
function refuseFault(condition: ConditionDeclaration): void {
  const compiled = compileCondition(condition);
  if (!isProblem(compiled)) return;
  const { line, column, message } = compiled;
  throw modelError(`$.conditions.${condition.name}.expression`, `${line}:${column}: ${message}`);
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
