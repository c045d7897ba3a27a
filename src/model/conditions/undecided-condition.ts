import { unparse } from '@bufbuild/cel';
import type { Expr } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import { causeOf, shortened, withArticle } from '../cel/cel-failure-text.ts';
import { CostMeter, EVALUATION_COST_MAX } from '../cel/cel-meter.ts';
import { type CelBindings, isProblem, parseExpression, placeOf } from '../cel/cel-program.ts';
import { readsOf } from '../cel/cel-reads.ts';
import { type CelFailure, traceExpression } from '../cel/cel-trace.ts';
import { typeText } from '../condition-type.ts';
import type { RelationTuple } from '../relation-tuple.ts';
import { problemOfCondition } from './condition-admission.ts';
import { type ConditionContext, lackOfBuiltIn, parseContext } from './conditions.ts';
import {
  bindCondition,
  type BoundCondition,
  compileCondition,
  inputOf,
  MISSING,
} from './declared-condition.ts';
import type { ConditionDeclaration, ConditionDeclarations } from './model-conditions.ts';

/** Maximum length of one condition's reason in characters, and of a part of its expression within it. */
const REASON_MAX = 500;
const PART_SHOWN_MAX = 120;
/** Maximum number of names shown in one list. */
const NAMES_SHOWN_MAX = 6;
const NO_REQUEST = 'no request decides it';

/** Reason for which a tuple's condition is undecided. */
export type UndecidedReason = {
  /** Inputs that are missing from the request or ill-typed, sorted. */
  readonly missingInputs: readonly string[];
  /** Description of at most 500 characters. It has no values of inputs, for they may be secrets. */
  readonly reason: string;
  /** Cost of finding the reason, in units of a `CostMeter`. */
  readonly cost: number;
};

/**
 * Finds the reason for which a tuple's condition is undecided with a context, and what would decide it. Undefined if it
 * is decided. Without any context ('') no condition is decided. Cost: an evaluation of the condition, and one with a
 * trace, each of `EVALUATION_COST_MAX` at most; and the parsing of its expression.
 */
export function whyUndecided(
  conditions: ConditionDeclarations,
  tuple: Pick<RelationTuple, 'conditionName' | 'conditionParams'>,
  contextJson: string,
): UndecidedReason | undefined {
  const { conditionName = '', conditionParams = '' } = tuple;
  const problem = problemOfCondition(conditions, tuple);
  if (problem !== undefined) return reasonOf(`${problem.message}; ${NO_REQUEST}`);
  const context = parseContext(contextJson) ?? {};
  const declaration = conditions.get(conditionName);
  const why =
    declaration === undefined
      ? whyBuiltIn(conditionName, conditionParams, context)
      : whyDeclared(declaration, conditionParams, context);
  if (why !== undefined || contextJson !== '') return why;
  return reasonOf('the request has no context; an empty one decides it');
}

function reasonOf(text: string, missingInputs: readonly string[] = [], cost = 0): UndecidedReason {
  return { missingInputs, reason: shortened(text, REASON_MAX), cost };
}

function whyBuiltIn(
  name: string,
  params: string,
  context: ConditionContext,
): UndecidedReason | undefined {
  const lack = lackOfBuiltIn(name, params, context);
  return lack && reasonOf(lack.reason, lack.inputs);
}

function whyDeclared(
  declaration: ConditionDeclaration,
  paramsJson: string,
  context: ConditionContext,
): UndecidedReason | undefined {
  const compiled = compileCondition(declaration);
  if (isProblem(compiled)) {
    const { line, column, message } = compiled;
    return reasonOf(`its expression is not valid, ${line}:${column}: ${message}; ${NO_REQUEST}`);
  }
  const bound = bindCondition(declaration, paramsJson);
  if (bound === undefined) return reasonOf(`its parameters are no object; ${NO_REQUEST}`);
  const meter = new CostMeter(EVALUATION_COST_MAX);
  const values: { [name: string]: CelBindings[string] } = { ...bound.fixed };
  for (const [name, type] of bound.open) {
    values[name] = inputOf(context, name, type, meter);
    if (!meter.isExhausted) continue;
    const text = `the input ${name} is larger than one evaluation may read`;
    return reasonOf(text, [], meter.spent);
  }
  const result = bound.program.evaluate(values, meter);
  const isCostly = meter.isExhausted;
  if (!isCostly && typeof result === 'boolean') return undefined;
  return new Search(declaration, bound, values).reason(isCostly, meter.spent);
}

/** Search for the reason why one evaluation had no result. */
class Search {
  readonly #declaration: ConditionDeclaration;
  readonly #bound: BoundCondition;
  readonly #values: CelBindings;
  readonly #parsed: ReturnType<typeof parseExpression>;
  readonly #root: Expr;

  constructor(declaration: ConditionDeclaration, bound: BoundCondition, values: CelBindings) {
    this.#declaration = declaration;
    this.#bound = bound;
    this.#values = values;
    this.#parsed = parseExpression(declaration.expression);
    this.#root = this.#parsed.expr;
  }

  reason(isCostly: boolean, spent: number): UndecidedReason {
    const meter = new CostMeter(EVALUATION_COST_MAX);
    const trace = traceExpression(this.#root, this.#values, meter);
    const cost = spent + meter.spent;
    if (isCostly || trace.kind !== 'failed') {
      // A trace counts cost differently from the evaluation: it may run out earlier, or finish.
      const expr = trace.kind === 'costly' ? trace.expr : this.#root;
      const cause = isCostly
        ? `it costs more than the ${EVALUATION_COST_MAX} units of one evaluation`
        : 'it has no value';
      return reasonOf(this.#failureText(expr, cause, expr), [], cost);
    }
    const isInput = ({ error }: CelFailure): boolean =>
      error !== undefined && Object.values(this.#values).includes(error);
    const inputs = trace.failures.filter(isInput);
    const [first, ...others] = trace.failures.filter((failure) => !isInput(failure));
    const texts = this.#inputTexts(inputs);
    if (first !== undefined) {
      const { text, blamed } = causeOf(first, (expr) => this.#textOf(expr));
      const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
      texts.push(this.#failureText(first.expr, `${text}${more}`, blamed));
    }
    const names = [...new Set(inputs.map(nameOf))].sort();
    return reasonOf(texts.join('; '), names, cost);
  }

  /** Sentences on the inputs that the context lacks, and on those of the wrong type. */
  #inputTexts(inputs: readonly CelFailure[]): string[] {
    const lacking = inputs.filter(({ error }) => error === MISSING).map(nameOf);
    const texts = lacking.length === 0 ? [] : [`the context lacks ${namesText(lacking)}`];
    const ofOtherType = new Set(inputs.filter(({ error }) => error !== MISSING).map(nameOf));
    for (const name of [...ofOtherType].sort().slice(0, NAMES_SHOWN_MAX)) {
      const type = this.#declaration.parameters.get(name);
      const wanted = type === undefined ? 'of another type' : withArticle(typeText(type));
      texts.push(`${name} in the context must be ${wanted}`);
    }
    return texts;
  }

  #failureText(expr: Expr, cause: string, blamed: Expr): string {
    const { line, column } = this.#placeOf(expr);
    const failed = `${this.#textOf(expr)} at ${line}:${column} failed`;
    return `${failed}: ${cause}; ${this.#deciders(blamed)}`;
  }

  /**
   * Names the inputs that can decide it: those read by the failed part or, if there are none, those that make up for
   * it.
   */
  #deciders(expr: Expr): string {
    const { parameters } = this.#declaration;
    const { own, beside } = readsOf(this.#root, expr);
    const open = new Set(this.#bound.open.map(([name]) => name));
    const read = [...own].filter((name) => parameters.has(name));
    const asked = read.filter((name) => open.has(name));
    const given = read.filter((name) => !open.has(name));
    const isGiven = given.length === 0 ? '' : `the tuple gives ${namesText(given)}`;
    if (asked.length > 0) {
      const decide = `the ${asked.length === 1 ? 'input' : 'inputs'} ${namesText(asked)} ${asked.length === 1 ? 'decides' : 'decide'} it`;
      return isGiven === '' ? decide : `${decide}, ${isGiven}`;
    }
    const others = [...beside].filter((name) => open.has(name));
    const reads = isGiven === '' ? 'it reads no input' : isGiven;
    if (others.length === 0) return `${reads}, so ${NO_REQUEST}`;
    return `${reads}, so only ${namesText(others)} of the request can decide without it`;
  }

  #placeOf({ id }: Expr): { readonly line: number; readonly column: number } {
    return placeOf(this.#declaration.expression, this.#parsed.sourceInfo, id);
  }

  #textOf(expr: Expr): string {
    return shortened(unparse({ ...this.#parsed, expr }), PART_SHOWN_MAX);
  }
}

function nameOf({ expr }: CelFailure): string {
  return expr.exprKind.case === 'identExpr' ? expr.exprKind.value.name : '';
}

/** Joins names as `a, b and c`, sorted. */
function namesText(names: readonly string[]): string {
  const sorted = [...new Set(names)].sort();
  const shown = sorted.slice(0, NAMES_SHOWN_MAX);
  const more = sorted.length - shown.length;
  const last = more > 0 ? `${more} more` : shown.pop();
  return shown.length === 0 ? String(last) : `${shown.join(', ')} and ${last}`;
}
