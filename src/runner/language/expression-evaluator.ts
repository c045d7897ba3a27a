import { type Expr, Evaluator, data } from '@actions/expressions';
import type { FunctionCall } from '@actions/expressions/ast';
import { assert } from '../../shared/assert.ts';
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

  override visitFunctionCall(call: FunctionCall): ExpressionData {
    return call.functionName.lexeme.toLowerCase() === 'case'
      ? this.#evaluateCase(call.args)
      : super.visitFunctionCall(call);
  }

  /**
   * Predicates in their order, then the result that is taken and no other: what is not taken may be
   * what cannot be evaluated. Source: actions/runner, Sdk/DTExpressions2, Functions/Case.cs.
   */
  #evaluateCase(args: readonly Expr[]): ExpressionData {
    let index = 0;
    for (; index + 1 < args.length; index += 2) {
      const predicate = this.eval(at(args, index));
      if (!(predicate instanceof data.BooleanData)) {
        throw new ExpressionEvaluationError('case predicate must evaluate to a boolean value');
      }
      if (predicate.value) return this.eval(at(args, index + 1));
    }
    return this.eval(at(args, args.length - 1));
  }
}

function at(args: readonly Expr[], index: number): Expr {
  const arg = args[index];
  assert(arg !== undefined, 'the parser takes an odd number of arguments, three at least');
  return arg;
}

function sizeOf(value: ExpressionData): number {
  if (value instanceof data.StringData) {
    return value.value.length;
  }
  return value instanceof data.Array ? value.values().length : 0;
}
