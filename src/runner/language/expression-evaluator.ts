import { type Expr, Evaluator, data } from '@actions/expressions';
import type { ExpressionData } from './expression-data.ts';
import { ExpressionEvaluationError, type FunctionTable } from './expression-functions.ts';
import { EVALUATION_COST_MAX } from './limits.ts';

/**
 * The value of a tree. Errors: ExpressionEvaluationError, those of functions, RangeError when the stack
 * runs out; within an index they are the cause of another error. Cost is limited.
 */
export function evaluateTree(
  tree: Expr,
  contexts: data.Dictionary,
  functions: FunctionTable,
): ExpressionData {
  return new MeteredEvaluator(tree, contexts, functions).evaluate();
}

/** The package's evaluator, which stops when a small expression asks for much work. */
class MeteredEvaluator extends Evaluator {
  #cost = 0;

  protected override eval(node: Expr): ExpressionData {
    const result = super.eval(node);
    this.#cost += sizeOf(result) + 1;
    if (this.#cost > EVALUATION_COST_MAX) {
      throw new ExpressionEvaluationError('The expression asks for too much work');
    }
    return result;
  }
}

function sizeOf(value: ExpressionData): number {
  if (value instanceof data.StringData) {
    return value.value.length;
  }
  return value instanceof data.Array ? value.values().length : 0;
}
