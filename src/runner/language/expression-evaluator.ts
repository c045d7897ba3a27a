import { type Expr, Evaluator, data } from '@actions/expressions';
import {
  type Binary,
  ContextAccess,
  type FunctionCall,
  IndexAccess,
  Literal,
} from '@actions/expressions/ast';
import { TokenType } from '@actions/expressions/lexer';
import { assert } from '../../shared/assert.ts';
import { areEqual, isLess } from './expression-comparison.ts';
import {
  type ExpressionData,
  ExpressionEvaluationError,
  withRunnerRules,
} from './expression-data.ts';
import type { FunctionTable } from './expression-functions.ts';
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

/** The package's evaluator with the runner's comparisons; it stops when a small expression asks for much work. */
class MeteredEvaluator extends Evaluator {
  #cost = 0;

  protected override eval(node: Expr): ExpressionData {
    const result = withRunnerRules(super.eval(node));
    this.#cost += sizeOf(result) + 1;
    if (this.#cost > EVALUATION_COST_MAX) {
      throw new ExpressionEvaluationError('The expression asks for too much work');
    }
    return result;
  }

  override visitFunctionCall(call: FunctionCall): ExpressionData {
    if (call.functionName.lexeme.toLowerCase() === 'case') return this.#evaluateCase(call.args);
    try {
      return super.visitFunctionCall(call);
    } catch (error) {
      throw error instanceof ExpressionEvaluationError ? errorOf(call, error) : error;
    }
  }

  /** Source: actions/runner, EvaluationResult.cs. */
  override visitBinary({ left, operator, right }: Binary): ExpressionData {
    const [a, b] = [this.eval(left), this.eval(right)];
    return new data.BooleanData(isTrue(operator.type, a, b));
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

function isTrue(type: TokenType, left: ExpressionData, right: ExpressionData): boolean {
  switch (type) {
    case TokenType.EQUAL_EQUAL:
      return areEqual(left, right);
    case TokenType.BANG_EQUAL:
      return !areEqual(left, right);
    case TokenType.GREATER:
      return isLess(right, left);
    case TokenType.GREATER_EQUAL:
      return areEqual(left, right) || isLess(right, left);
    case TokenType.LESS:
      return isLess(left, right);
    default:
      assert(type === TokenType.LESS_EQUAL, 'the parser knows no other operator of two');
      return areEqual(left, right) || isLess(left, right);
  }
}

/** The innermost function says what it was given. */
function errorOf(call: FunctionCall, error: ExpressionEvaluationError): ExpressionEvaluationError {
  if (error instanceof FunctionError) return error;
  const paths = call.args.flatMap((arg) => pathOf(arg) ?? []);
  const given = paths.length === 0 ? '' : ` (${paths.join(', ')})`;
  return new FunctionError(
    `Error from function '${call.functionName.lexeme}': ${error.message}${given}`,
  );
}

class FunctionError extends ExpressionEvaluationError {}

/** `env.NAME` of a context or what is below it; undefined for all else. */
function pathOf(node: Expr): string | undefined {
  if (node instanceof ContextAccess) return node.name.lexeme;
  if (!(node instanceof IndexAccess) || !(node.index instanceof Literal)) return undefined;
  const outer = pathOf(node.expr);
  return outer === undefined ? undefined : `${outer}.${node.index.literal.coerceString()}`;
}
