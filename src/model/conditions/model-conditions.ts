import { type ConditionType, PARAMETER_SCALARS, parseParameterType } from '../condition-type.ts';
import { checkName, modelError, objectOf, refuseUnknown, suggestion } from '../model-json.ts';
import { BUILT_IN_CONDITIONS } from './conditions.ts';

/** Maximum number of conditions in one model. */
export const MODEL_CONDITIONS_MAX = 256;
/** Maximum number of parameters of one condition. */
export const CONDITION_PARAMETERS_MAX = 32;
/** Maximum length of one expression in characters (UTF-16 units). */
export const CONDITION_EXPRESSION_MAX = 2_048;
/** Maximum length of all expressions of a model in characters: each is parsed when the model is written. */
export const MODEL_EXPRESSIONS_MAX = 32_768;

/** A condition that a model declares. */
export type ConditionDeclaration = {
  readonly name: string;
  /** Types of parameters by name. Each value may come from the tuple or from the request. */
  readonly parameters: ReadonlyMap<string, ConditionType>;
  /** CEL expression. */
  readonly expression: string;
};

export type ConditionDeclarations = ReadonlyMap<string, ConditionDeclaration>;

const PARAMETER = /^(?!__)[a-z_][a-zA-Z0-9_]{0,63}$/;
/** Words that CEL reserves: its own, those of other languages, and the names of its types. */
const RESERVED: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package ' +
    'namespace return var void while bool int uint double string bytes list map type null_type ' +
    'dyn timestamp duration google has'
  ).split(' '),
);

/**
 * Parses the `conditions` of a model's document. Checks names, types of parameters and sizes; `compileCondition` checks
 * the expressions. Errors: MODEL_INVALID. Cost: O(document).
 */
export function parseConditions(value: unknown, path: string): ConditionDeclarations {
  const documents = objectOf(value, path);
  const names = Object.keys(documents);
  if (names.length > MODEL_CONDITIONS_MAX) {
    throw modelError(path, `holds more than ${MODEL_CONDITIONS_MAX} conditions`);
  }
  const conditions = names.map((name) => parseCondition(name, documents[name], path));
  const characters = conditions.reduce((sum, { expression }) => sum + expression.length, 0);
  if (characters > MODEL_EXPRESSIONS_MAX) {
    throw modelError(path, `expressions have more than ${MODEL_EXPRESSIONS_MAX} characters in all`);
  }
  return new Map(conditions.map((condition) => [condition.name, condition]));
}

function parseCondition(name: string, value: unknown, root: string): ConditionDeclaration {
  const path = `${root}.${name}`;
  checkName(name, path);
  if (BUILT_IN_CONDITIONS.has(name)) throw modelError(path, 'is the name of a built-in condition');
  const document = objectOf(value, path);
  refuseUnknown(document, ['parameters', 'expression'], path);
  const { expression } = document;
  if (expression === undefined) throw modelError(`${path}.expression`, 'is required');
  if (typeof expression !== 'string') throw modelError(`${path}.expression`, 'must be a string');
  if (expression.length > CONDITION_EXPRESSION_MAX) {
    throw modelError(
      `${path}.expression`,
      `must have at most ${CONDITION_EXPRESSION_MAX} characters`,
    );
  }
  const parameters = Object.hasOwn(document, 'parameters')
    ? parseParameters(document['parameters'], `${path}.parameters`)
    : new Map<string, ConditionType>();
  return { name, parameters, expression };
}

function parseParameters(value: unknown, path: string): ReadonlyMap<string, ConditionType> {
  const documents = objectOf(value, path);
  const names = Object.keys(documents);
  if (names.length > CONDITION_PARAMETERS_MAX) {
    throw modelError(path, `holds more than ${CONDITION_PARAMETERS_MAX} parameters`);
  }
  const parameters = new Map<string, ConditionType>();
  for (const name of names) {
    const at = `${path}.${name}`;
    if (!PARAMETER.test(name)) {
      throw modelError(at, 'the name must match [a-z_][a-zA-Z0-9_]{0,63}, without __ at the start');
    }
    if (RESERVED.has(name)) throw modelError(at, 'is a word that CEL keeps for itself');
    const text = documents[name];
    if (typeof text !== 'string') throw modelError(at, 'must be the name of a type');
    const type = parseParameterType(text);
    if (type === undefined) {
      const known = `${PARAMETER_SCALARS.join(', ')}, list<T> or map<T>`;
      throw modelError(at, `is not a type: ${known}${suggestion(text, PARAMETER_SCALARS)}`);
    }
    parameters.set(name, type);
  }
  return parameters;
}
