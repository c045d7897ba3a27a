import type { JsonObject } from '../../shared/json.ts';
import { suggestion } from '../model-json.ts';
import type { RelationTuple } from '../relation-tuple.ts';
import { BUILT_IN_CONDITIONS, builtInParametersFault } from './conditions.ts';
import { parametersFault } from './declared-condition.ts';
import type { ConditionDeclarations } from './model-conditions.ts';

/** Reason for which no request can ever decide a tuple's condition. */
export type ConditionProblem = {
  readonly field: 'condition_name' | 'condition_params';
  readonly message: string;
};

/**
 * Reason for which the condition of a tuple can never be decided: it is unknown to the model and the service, or its
 * parameters are wrong. A built-in condition needs its required parameters. For a declared one, the request may give
 * what the tuple does not. Undefined if it can be decided, or the tuple has no condition. Cost: O(parameters).
 */
export function problemOfCondition(
  conditions: ConditionDeclarations,
  { conditionName, conditionParams = '' }: Pick<RelationTuple, 'conditionName' | 'conditionParams'>,
): ConditionProblem | undefined {
  if (conditionName === undefined) return undefined;
  const declaration = conditions.get(conditionName);
  if (declaration === undefined && !BUILT_IN_CONDITIONS.has(conditionName)) {
    const near = suggestion(conditionName, [...conditions.keys(), ...BUILT_IN_CONDITIONS]);
    return { field: 'condition_name', message: `there is no condition "${conditionName}"${near}` };
  }
  const fault =
    declaration === undefined
      ? builtInParametersFault(conditionName, conditionParams)
      : parametersFault(declaration, paramsOf(conditionParams));
  if (fault === undefined) return undefined;
  const { parameter, problem } = fault;
  const near = suggestion(parameter, declaration?.parameters.keys() ?? []);
  const isStranger = declaration?.parameters.has(parameter) === false;
  return {
    field: 'condition_params',
    message: `"${parameter}" of ${conditionName} ${problem}${isStranger ? near : ''}`,
  };
}

function paramsOf(json: string): JsonObject {
  return json === '' ? {} : (JSON.parse(json) as JsonObject);
}
