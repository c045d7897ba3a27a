import {
  type Expr,
  type Expr_Comprehension,
  Expr_IdentSchema,
  ExprSchema,
} from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import { create } from '@bufbuild/protobuf';
import { APPEND, HAS, INDEX, NEW_LIST, RANGE, TICK } from './cel-functions.ts';

/** Text of a string literal; undefined for any other expression. */
export function constantText(expr: Expr | undefined): string | undefined {
  if (expr?.exprKind.case !== 'constExpr') return undefined;
  const { constantKind } = expr.exprKind.value;
  return constantKind.case === 'stringValue' ? constantKind.value : undefined;
}

/** Whether an expression is `[]`, the start value of `map` and `filter`. */
export function isEmptyList(expr: Expr | undefined): boolean {
  return expr?.exprKind.case === 'listExpr' && expr.exprKind.value.elements.length === 0;
}

/** Element that a step of `map` or `filter` appends, also under a condition; undefined for other steps. */
export function appendedElement(step: Expr | undefined): Expr | undefined {
  if (step?.exprKind.case !== 'callExpr') return undefined;
  const { function: name, args } = step.exprKind.value;
  if (name === '_?_:_') return appendedElement(args[1]);
  const list = args[1]?.exprKind;
  if (name !== '_+_' || list?.case !== 'listExpr') return undefined;
  return list.value.elements.length === 1 ? list.value.elements[0] : undefined;
}

/**
 * Copies an expression with each part replaced by the result of `change`, from left to right. Returns an expression
 * without parts unchanged. Not for comprehensions, whose parts see other names.
 */
export function withParts(expr: Expr, change: (part: Expr) => Expr): Expr {
  const { exprKind: kind } = expr;
  switch (kind.case) {
    case 'selectExpr': {
      const operand = change(kind.value.operand as Expr);
      return made(expr.id, { case: 'selectExpr', value: { ...kind.value, operand } });
    }
    case 'callExpr': {
      const { target } = kind.value;
      const on = target === undefined ? {} : { target: change(target) };
      const args = kind.value.args.map(change);
      return made(expr.id, { case: 'callExpr', value: { ...kind.value, ...on, args } });
    }
    case 'listExpr': {
      const elements = kind.value.elements.map(change);
      return made(expr.id, { case: 'listExpr', value: { ...kind.value, elements } });
    }
    case 'structExpr': {
      const entries = kind.value.entries.map((entry) => ({
        ...entry,
        keyKind:
          entry.keyKind.case === 'mapKey'
            ? { case: 'mapKey' as const, value: change(entry.keyKind.value) }
            : entry.keyKind,
        value: entry.value === undefined ? undefined : change(entry.value),
      }));
      return made(expr.id, { case: 'structExpr', value: { ...kind.value, entries } });
    }
    default:
      return expr;
  }
}

/** Parts of an expression, in the order of their evaluation. A comprehension has five. */
export function partsOf(expr: Expr): readonly Expr[] {
  if (expr.exprKind.case === 'comprehensionExpr') {
    const { accuInit, iterRange, loopCondition, loopStep, result } = expr.exprKind.value;
    return [accuInit, iterRange, loopCondition, loopStep, result] as Expr[];
  }
  const parts: Expr[] = [];
  withParts(expr, (part) => {
    parts.push(part);
    return part;
  });
  return parts;
}

/**
 * Rewrites an expression into the form that is evaluated. Each iteration of a comprehension is paid for before it runs.
 * Lists that macros make grow in place, and `[]` and `has` are our own functions. O(nodes).
 */
export function withCosts(expr: Expr): Expr {
  const { exprKind: kind } = expr;
  if (kind.case === 'comprehensionExpr') return withTurnsPaid(expr.id, kind.value);
  if (kind.case === 'selectExpr' && kind.value.testOnly) {
    const operand = withCosts(kind.value.operand as Expr);
    return call(expr.id, HAS, operand, text(expr.id, kind.value.field));
  }
  if (kind.case === 'callExpr' && kind.value.function === '_[_]') {
    return call(expr.id, INDEX, ...kind.value.args.map(withCosts));
  }
  return withParts(expr, withCosts);
}

function withTurnsPaid(id: bigint, fold: Expr_Comprehension): Expr {
  const { iterRange, accuInit, loopCondition, loopStep, result } = fold;
  const isGrowing = isEmptyList(accuInit) && appendedElement(loopStep) !== undefined;
  const step = withCosts(loopStep as Expr);
  const units = countNodes(loopStep) + countNodes(loopCondition);
  const value = {
    ...fold,
    iterRange: call(id, RANGE, withCosts(iterRange as Expr)),
    accuInit: isGrowing ? call(id, NEW_LIST) : withCosts(accuInit as Expr),
    loopCondition: call(
      id,
      '_&&_',
      call(id, TICK, number(id, units)),
      withCosts(loopCondition as Expr),
    ),
    loopStep: isGrowing ? withAppend(step) : step,
    result: withCosts(result as Expr),
  };
  return made(id, { case: 'comprehensionExpr', value });
}

/** Rewrites `accu + [x]`, also under a condition, to a call that appends. */
function withAppend(step: Expr): Expr {
  const { id, exprKind } = step;
  if (exprKind.case !== 'callExpr') return step;
  const { function: name, args } = exprKind.value;
  if (name === '_?_:_') {
    const [condition, then, otherwise] = args as [Expr, Expr, Expr];
    return call(id, name, condition, withAppend(then), otherwise);
  }
  const list = args[1]?.exprKind;
  const element = list?.case === 'listExpr' ? list.value.elements[0] : undefined;
  return element === undefined ? step : call(id, APPEND, args[0] as Expr, element);
}

/** Number of nodes in an expression, itself included. Nodes of an inner comprehension count again there. */
function countNodes(expr: Expr | undefined): number {
  if (expr === undefined) return 0;
  return partsOf(expr).reduce((total, part) => total + countNodes(part), 1);
}

/** Expression that names a variable. Any text is allowed, since nothing parses it. */
export function nameExpr(id: bigint, name: string): Expr {
  return made(id, { case: 'identExpr', value: create(Expr_IdentSchema, { name }) });
}

function made(id: bigint, exprKind: Expr['exprKind']): Expr {
  return { ...create(ExprSchema), id, exprKind };
}

function call(id: bigint, name: string, ...args: Expr[]): Expr {
  return create(ExprSchema, {
    id,
    exprKind: { case: 'callExpr', value: { function: name, args } },
  });
}

function text(id: bigint, value: string): Expr {
  const constantKind = { case: 'stringValue', value } as const;
  return create(ExprSchema, { id, exprKind: { case: 'constExpr', value: { constantKind } } });
}

function number(id: bigint, value: number): Expr {
  const constantKind = { case: 'int64Value', value: BigInt(value) } as const;
  return create(ExprSchema, { id, exprKind: { case: 'constExpr', value: { constantKind } } });
}
