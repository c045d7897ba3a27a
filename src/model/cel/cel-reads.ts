import type { Expr, Expr_Comprehension } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js';
import { partsOf } from './cel-tree.ts';

type Names = ReadonlySet<string>;
/** Variables of comprehensions, each with the names that its values come from. */
type Variables = ReadonlyMap<string, Names>;

const NONE: Names = new Set();
const LAZY: ReadonlySet<string> = new Set(['_&&_', '_||_', '_?_:_']);

/** Names that a part of an expression reads, and names that decide whether the part counts. */
export type CelReads = {
  /** Names that the part reads itself. For the variable of a macro, the names that its list comes from. */
  readonly own: Names;
  /** Names read by sibling operands of `&&`, `||`, `?:` and by lists of macros, which can make up for the part. */
  readonly beside: Names;
};

/** Names that `part` of the expression `root` reads. Cost: O(nodes · depth). */
export function readsOf(root: Expr, part: Expr): CelReads {
  const beside = new Set<string>();
  const own = seek(root, part, new Map(), beside) ?? NONE;
  return { own, beside };
}

/** Names that `part` reads, if it is inside `expr`. Adds the names that can make up for it to `beside`. */
function seek(
  expr: Expr,
  part: Expr,
  variables: Variables,
  beside: Set<string>,
): Names | undefined {
  if (expr === part) return namesOf(expr, variables);
  const { exprKind: kind } = expr;
  if (kind.case === 'comprehensionExpr') {
    const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
    const inRange = seek(iterRange as Expr, part, variables, beside);
    if (inRange !== undefined) return inRange;
    const range = namesOf(iterRange as Expr, variables);
    const inner = variablesWithin(kind.value, range, variables);
    for (const one of [accuInit, loopCondition, loopStep, result]) {
      const found = seek(one as Expr, part, inner, beside);
      if (found === undefined) continue;
      addAll(beside, range);
      return found;
    }
    return undefined;
  }
  const parts = partsOf(expr);
  for (const [index, one] of parts.entries()) {
    const found = seek(one, part, variables, beside);
    if (found === undefined) continue;
    const name = kind.case === 'callExpr' ? kind.value.function : '';
    for (const other of LAZY.has(name) ? operandsBeside(name, parts, index) : []) {
      addAll(beside, namesOf(other, variables));
    }
    return found;
  }
  return undefined;
}

/**
 * Finds the operands that can make up for one. For a branch of `?:` that is the condition; for the condition there is
 * none.
 */
function operandsBeside(name: string, parts: readonly Expr[], index: number): readonly Expr[] {
  if (name === '_?_:_') return index === 0 ? [] : parts.slice(0, 1);
  return parts.filter((_, other) => other !== index);
}

function namesOf(expr: Expr, variables: Variables): Names {
  const { exprKind: kind } = expr;
  if (kind.case === 'identExpr') {
    return variables.get(kind.value.name) ?? new Set([kind.value.name]);
  }
  const names = new Set<string>();
  if (kind.case !== 'comprehensionExpr') {
    for (const part of partsOf(expr)) addAll(names, namesOf(part, variables));
    return names;
  }
  const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value;
  const range = namesOf(iterRange as Expr, variables);
  const inner = variablesWithin(kind.value, range, variables);
  addAll(names, range);
  for (const part of [accuInit, loopCondition, loopStep, result]) {
    addAll(names, namesOf(part as Expr, inner));
  }
  return names;
}

function variablesWithin(
  { accuVar, iterVar }: Expr_Comprehension,
  range: Names,
  variables: Variables,
): Variables {
  return new Map([...variables, [accuVar, NONE], [iterVar, range]]);
}

function addAll(names: Set<string>, more: Names): void {
  for (const name of more) names.add(name);
}
