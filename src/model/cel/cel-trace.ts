import {
  celList,
  type CelResult,
  type CelValue,
  isCelError,
  isCelList,
  isCelMap,
} from '@bufbuild/cel';
import type { Expr, Expr_Call, Expr_Comprehension } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import type { CostMeter } from './cel-meter.ts';
import { type CelBindings, type CelProgram, planExpression } from './cel-program.ts';
import { appendedElement, isEmptyList, nameExpr, withParts } from './cel-tree.ts';

/** A part of an expression that has no value although all of its own parts have one. */
export type CelFailure = {
  readonly expr: Expr;
  /** Values of its parts, in order. For a part that is not of the `wanted` type, its own value. */
  readonly values: readonly CelValue[];
  /** Error of the evaluation; for a parameter, the error bound to it. Undefined if the type is wrong. */
  readonly error: (CelResult & Error) | undefined;
  readonly wanted?: 'bool' | 'list' | undefined;
};

/** Parts for which an expression has no value, each once. */
export class CelFailures {
  readonly list: readonly CelFailure[];

  constructor(list: readonly CelFailure[]) {
    this.list = list;
  }
}

type PartOutcome = CelValue | CelFailures;
type TraceScope = {
  readonly name: string;
  outcome: PartOutcome;
  readonly above: TraceScope;
} | null;

/** Thrown when a part costs more than is left. `expr` is the outermost comprehension around it, or the part itself. */
class TooCostly extends Error {
  readonly expr: Expr;

  constructor(expr: Expr) {
    super('the evaluation costs too much');
    this.expr = expr;
  }
}

/** Result of a trace: a value, or failures, or the part at which `meter` ran out. */
export type CelTrace =
  | { readonly kind: 'value'; readonly value: CelValue }
  | { readonly kind: 'failed'; readonly failures: readonly CelFailure[] }
  | { readonly kind: 'costly'; readonly expr: Expr };

/**
 * Evaluates a checked expression again, part by part, to find why it has no value. The library evaluates each part, as
 * it does the whole. Only the choice of parts is made here: `&&`, `||`, `?:` and comprehensions. A failure that another
 * operand makes up for does not count. A result that is not a bool is a failure, too. Cost: some ten times that of the
 * evaluation, bounded by `meter`.
 */
export function traceExpression(expr: Expr, bindings: CelBindings, meter: CostMeter): CelTrace {
  try {
    const outcome = boolOutcome(expr, new Tracer(bindings, meter).outcomeOf(expr, null));
    return outcome instanceof CelFailures
      ? { kind: 'failed', failures: outcome.list }
      : { kind: 'value', value: outcome };
  } catch (error) {
    if (error instanceof TooCostly) return { kind: 'costly', expr: error.expr };
    throw error;
  }
}

function failure(
  expr: Expr,
  values: readonly CelValue[],
  error: CelFailure['error'],
  wanted?: CelFailure['wanted'],
): CelFailures {
  return new CelFailures([{ expr, values, error, wanted }]);
}

function boolOutcome(expr: Expr, outcome: PartOutcome): boolean | CelFailures {
  if (outcome instanceof CelFailures || typeof outcome === 'boolean') return outcome;
  return failure(expr, [outcome], undefined, 'bool');
}

/** All failures of both; if a part is in both, only the first. */
function merged(a: CelFailures | undefined, b: CelFailures): CelFailures {
  if (a === undefined) return b;
  const known = new Set(a.list.map(({ expr }) => expr));
  const more = b.list.filter(({ expr }) => !known.has(expr));
  return more.length === 0 ? a : new CelFailures([...a.list, ...more]);
}

class Tracer {
  readonly #bindings: CelBindings;
  readonly #meter: CostMeter;
  readonly #plans = new Map<
    Expr,
    { readonly parts: Expr[]; readonly run: CelProgram['evaluate'] }
  >();
  readonly #loops: Expr[] = [];

  constructor(bindings: CelBindings, meter: CostMeter) {
    this.#bindings = bindings;
    this.#meter = meter;
  }

  outcomeOf(expr: Expr, scope: TraceScope): PartOutcome {
    this.#spend(expr);
    const { exprKind: kind } = expr;
    if (kind.case === 'identExpr') {
      const { name } = kind.value;
      for (let one = scope; one !== null; one = one.above)
        if (one.name === name) return one.outcome;
      const bound = Object.hasOwn(this.#bindings, name) ? this.#bindings[name] : undefined;
      if (bound !== undefined) return isCelError(bound) ? failure(expr, [], bound) : bound;
    }
    if (kind.case === 'comprehensionExpr') return this.#fold(expr, kind.value, scope);
    const chosen = kind.case === 'callExpr' ? this.#choice(kind.value, scope) : undefined;
    return chosen === undefined ? this.#strict(expr, scope) : chosen;
  }

  /** Outcome of an operator that may skip operands; undefined for all others. */
  #choice({ function: name, args }: Expr_Call, scope: TraceScope): PartOutcome | undefined {
    switch (name) {
      case '_&&_':
        return this.#junction(args, false, scope);
      case '_||_':
        return this.#junction(args, true, scope);
      case '@not_strictly_false':
        return this.outcomeOf(args[0] as Expr, scope) !== false;
      case '_?_:_': {
        const [condition, then, otherwise] = args as [Expr, Expr, Expr];
        const chosen = boolOutcome(condition, this.outcomeOf(condition, scope));
        if (chosen instanceof CelFailures) return chosen;
        return this.outcomeOf(chosen ? then : otherwise, scope);
      }
      default:
        return undefined;
    }
  }

  /** Outcome of `&&` and `||`: one operand with the value `decisive` decides, whatever made the others fail. */
  #junction(args: readonly Expr[], decisive: boolean, scope: TraceScope): boolean | CelFailures {
    let failed: CelFailures | undefined;
    for (const arg of args) {
      const outcome = boolOutcome(arg, this.outcomeOf(arg, scope));
      if (outcome === decisive) return decisive;
      if (outcome instanceof CelFailures) failed = merged(failed, outcome);
    }
    return failed ?? !decisive;
  }

  /** Outcome of an expression that needs all of its parts: its result, or the first failure of a part. */
  #strict(expr: Expr, scope: TraceScope): PartOutcome {
    let plan = this.#plans.get(expr);
    if (plan === undefined) {
      const parts: Expr[] = [];
      const single = withParts(expr, (part) => nameExpr(part.id, `@${parts.push(part) - 1}`));
      plan = { parts, run: planExpression(single, 1) };
      this.#plans.set(expr, plan);
    }
    const values: CelValue[] = [];
    const bindings = { __proto__: null } as unknown as { [name: string]: CelValue };
    for (const part of plan.parts) {
      const outcome = this.outcomeOf(part, scope);
      if (outcome instanceof CelFailures) return outcome;
      bindings[`@${values.push(outcome) - 1}`] = outcome;
    }
    const result = plan.run(bindings, this.#meter);
    if (this.#meter.isExhausted) throw new TooCostly(this.#loops[0] ?? expr);
    return isCelError(result) ? failure(expr, values, result) : result;
  }

  #fold(expr: Expr, fold: Expr_Comprehension, scope: TraceScope): PartOutcome {
    const init = this.outcomeOf(fold.accuInit as Expr, scope);
    if (init instanceof CelFailures) return init;
    const range = this.outcomeOf(fold.iterRange as Expr, scope);
    if (range instanceof CelFailures) return range;
    if (!isCelList(range) && !isCelMap(range)) {
      return failure(fold.iterRange as Expr, [range], undefined, 'list');
    }
    this.#loops.push(expr);
    const accu = { name: fold.accuVar, outcome: init as PartOutcome, above: scope };
    const grown: CelValue[] | undefined =
      isEmptyList(fold.accuInit) && appendedElement(fold.loopStep) !== undefined ? [] : undefined;
    for (const item of isCelMap(range) ? range.keys() : range) {
      const within = { name: fold.iterVar, outcome: item as PartOutcome, above: accu };
      if (grown !== undefined) {
        const failed = this.#append(grown, fold.loopStep as Expr, within);
        if (failed === undefined) continue;
        accu.outcome = failed;
        break;
      }
      const goesOn = this.outcomeOf(fold.loopCondition as Expr, within);
      if (goesOn instanceof CelFailures) return goesOn;
      if (goesOn !== true) break;
      accu.outcome = this.outcomeOf(fold.loopStep as Expr, within);
    }
    if (grown !== undefined && !(accu.outcome instanceof CelFailures)) {
      accu.outcome = celList(grown);
    }
    this.#loops.pop();
    return this.outcomeOf(fold.result as Expr, accu);
  }

  /** Appends the element of a step of `map` or `filter`. A failure is final: no later iteration makes up for it. */
  #append(grown: CelValue[], step: Expr, scope: TraceScope): CelFailures | undefined {
    const args = step.exprKind.case === 'callExpr' ? step.exprKind.value.args : [];
    const [condition, then] = args as [Expr, Expr];
    const isChoice = args.length === 3;
    const chosen = isChoice ? boolOutcome(condition, this.outcomeOf(condition, scope)) : true;
    if (chosen instanceof CelFailures) return chosen;
    if (!chosen) return undefined;
    if (isChoice) return this.#append(grown, then, scope);
    const element = this.outcomeOf(appendedElement(step) as Expr, scope);
    if (element instanceof CelFailures) return element;
    grown.push(element);
    return undefined;
  }

  #spend(expr: Expr): void {
    if (!this.#meter.spend(1)) throw new TooCostly(this.#loops[0] ?? expr);
  }
}
