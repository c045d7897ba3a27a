import { CONDITION_UNDECIDED, parseContext } from '../../src/model/conditions/conditions.ts';
import { prepareDeclaredCondition } from '../../src/model/conditions/declared-condition.ts';
import {
  type ConditionDeclarations,
  parseConditions,
} from '../../src/model/conditions/model-conditions.ts';
import {
  type UndecidedReason,
  whyUndecided,
} from '../../src/model/conditions/undecided-condition.ts';

/* Conditions over parameters of each type, for the tests of why they are undecided. */
export const PARAMETERS = {
  a: 'int',
  b: 'int',
  f: 'double',
  s: 'string',
  ok: 'bool',
  t: 'timestamp',
  d: 'duration',
  ip: 'ipaddress',
  l: 'list<string>',
  n: 'list<int>',
  m: 'map<int>',
  x: 'any',
  y: 'any',
};
export const INT_MAX = '9223372036854775807';

export function declare(expression: string): ConditionDeclarations {
  return parseConditions({ own: { parameters: PARAMETERS, expression } }, '$');
}

export function why(
  expression: string,
  params: object,
  context: object,
): UndecidedReason | undefined {
  const tuple = { conditionName: 'own', conditionParams: JSON.stringify(params) };
  return whyUndecided(declare(expression), tuple, JSON.stringify(context));
}

/** Whether the evaluation itself decides it. */
export function isDecided(expression: string, params: object, context: object): boolean {
  const declaration = declare(expression).get('own');
  if (declaration === undefined) return false;
  const prepared = prepareDeclaredCondition(declaration, JSON.stringify(params));
  return prepared(parseContext(JSON.stringify(context)) ?? {}) !== CONDITION_UNDECIDED;
}
