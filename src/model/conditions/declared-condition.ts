import { celError } from '@bufbuild/cel';
import type { JsonObject } from '../../shared/json.ts';
import { CostMeter, EVALUATION_COST_MAX } from '../cel/cel-meter.ts';
import {
  type CelBindings,
  type CelProblem,
  type CelProgram,
  compileExpression,
  isProblem,
} from '../cel/cel-program.ts';
import { celValueOf } from '../cel/cel-values.ts';
import { type ConditionType, typeText } from '../condition-type.ts';
import {
  CONDITION_FALSE,
  CONDITION_TRUE,
  CONDITION_UNDECIDED,
  type ConditionContext,
  type ConditionOutcome,
  parseContext,
  type PreparedCondition,
} from './conditions.ts';
import type { ConditionDeclaration, ConditionDeclarations } from './model-conditions.ts';

/** Number of characters of a tuple's parameters that one unit of cost pays for, parsed or cached. */
const PARAMETERS_PER_UNIT = 64;

/** Value of a parameter that neither the tuple nor the context gives. */
export const MISSING = celError('the input is missing');
const ILL_TYPED = celError('the input is of another type');
const undecided: PreparedCondition = () => CONDITION_UNDECIDED;

type ConditionValues = { [parameter: string]: CelBindings[string] };

const programs = new WeakMap<ConditionDeclaration, CelProgram | CelProblem>();

/**
 * Compiles a condition to its program, or to a problem. Compiles each declaration once, so once per model version and
 * thread. Cost of the first call: O(expression), a millisecond and more.
 */
export function compileCondition(declaration: ConditionDeclaration): CelProgram | CelProblem {
  let program = programs.get(declaration);
  if (program === undefined) {
    program = withBoolResult(compileExpression(declaration.expression, declaration.parameters));
    programs.set(declaration, program);
  }
  return program;
}

function withBoolResult(program: CelProgram | CelProblem): CelProgram | CelProblem {
  if (isProblem(program) || program.type.kind === 'bool' || program.type.kind === 'any') {
    return program;
  }
  return { line: 1, column: 1, message: `is a ${typeText(program.type)}, not a bool` };
}

/**
 * Reports each condition whose expression is not valid or not a bool, with line and column. Warns of parameters that an
 * expression does not name.
 */
export function findConditionProblems(
  conditions: ConditionDeclarations,
  onError: (path: string, message: string) => void,
  onWarning: (path: string, message: string) => void,
): void {
  for (const condition of conditions.values()) {
    const path = `$.conditions.${condition.name}`;
    const compiled = compileCondition(condition);
    if (isProblem(compiled)) {
      const { line, column, message } = compiled;
      onError(`${path}.expression`, `${line}:${column}: ${message}`);
      continue;
    }
    for (const parameter of condition.parameters.keys()) {
      if (compiled.parameters.has(parameter)) continue;
      onWarning(`${path}.parameters.${parameter}`, 'is not named by the expression');
    }
  }
}

/**
 * Binds a declared condition to a tuple's parameters, `paramsJson` (JSON text of an object, or ''). They take
 * precedence over those of the request. Undeclared or ill-typed parameters, and expressions that do not compile, result
 * in a condition that is always undecided.
 */
export function prepareDeclaredCondition(
  declaration: ConditionDeclaration,
  paramsJson: string,
): PreparedCondition {
  const bound = bindCondition(declaration, paramsJson);
  if (bound === undefined) return undecided;
  const { program, fixed, open } = bound;
  const units = Math.ceil(paramsJson.length / PARAMETERS_PER_UNIT);
  return (context, meter = new CostMeter(EVALUATION_COST_MAX)) => {
    if (!meter.spend(units)) return CONDITION_UNDECIDED;
    const values = { __proto__: null, ...fixed } as unknown as ConditionValues;
    for (const [name, type] of open) values[name] = inputOf(context, name, type, meter);
    const result = program.evaluate(values, meter);
    // An exhausted evaluation has decided nothing, whatever its result is.
    return meter.isExhausted ? CONDITION_UNDECIDED : outcomeOf(result);
  };
}

/**
 * Problem of a tuple's parameters, with the parameter that has it; undefined if there is none. The request may give the
 * parameters that the tuple does not name.
 */
export function parametersFault(
  declaration: ConditionDeclaration,
  params: JsonObject,
): { readonly parameter: string; readonly problem: string } | undefined {
  const meter = new CostMeter(Number.MAX_SAFE_INTEGER);
  for (const [parameter, json] of Object.entries(params)) {
    const type = declaration.parameters.get(parameter);
    if (type === undefined) return { parameter, problem: 'is not a parameter of the condition' };
    if (celValueOf(type, json, meter) === undefined) {
      return { parameter, problem: `must be a ${typeText(type)}` };
    }
  }
  return undefined;
}

/** A declared condition with the parameters of a tuple. */
export type BoundCondition = {
  readonly program: CelProgram;
  /** Values given by the tuple. */
  readonly fixed: CelBindings;
  /** Parameters that the expression names and the tuple does not give. */
  readonly open: readonly (readonly [name: string, type: ConditionType])[];
};

/** Binds a condition to a tuple's parameters; undefined if no request can decide it. Cost: O(parameters). */
export function bindCondition(
  declaration: ConditionDeclaration,
  paramsJson: string,
): BoundCondition | undefined {
  const program = compileCondition(declaration);
  if (isProblem(program)) return undefined;
  const params = parseContext(paramsJson);
  if (params === undefined) return undefined;
  const meter = new CostMeter(Number.MAX_SAFE_INTEGER);
  const fixed: ConditionValues = {};
  for (const [name, json] of Object.entries(params)) {
    const type = declaration.parameters.get(name);
    const value = type === undefined ? undefined : celValueOf(type, json, meter);
    if (value === undefined) return undefined;
    fixed[name] = value;
  }
  const open = [...declaration.parameters].filter(
    ([name]) => program.parameters.has(name) && !Object.hasOwn(fixed, name),
  );
  return { program, fixed, open };
}

/**
 * Value of a parameter from the context: a value or an error, and never absent. An expression must not mistake a
 * missing input for one that is not set.
 */
export function inputOf(
  context: ConditionContext,
  name: string,
  type: ConditionType,
  meter: CostMeter,
): CelBindings[string] {
  if (!Object.hasOwn(context, name)) return MISSING;
  const value = celValueOf(type, context[name], meter);
  // `null` is a value of type `any`.
  return value === undefined ? ILL_TYPED : value;
}

function outcomeOf(result: CelBindings[string]): ConditionOutcome {
  if (result === true) return CONDITION_TRUE;
  return result === false ? CONDITION_FALSE : CONDITION_UNDECIDED;
}
