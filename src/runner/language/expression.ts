import { type Expr, ExpressionError, Lexer, Parser } from '@actions/expressions';
import {
  Binary,
  ContextAccess,
  FunctionCall,
  Grouping,
  IndexAccess,
  Logical,
  Unary,
} from '@actions/expressions/ast';
import type { Token } from '@actions/expressions/lexer';
import { EXPRESSION_LEVELS_MAX } from './limits.ts';
import { numberFromText } from './number-text.ts';

/** A function of the runner that the expression package does not bring: name and numbers of arguments. */
export type FunctionSignature = {
  readonly name: string;
  readonly minArgs: number;
  readonly maxArgs: number;
};

/** What an expression may name where it stands. */
export type Availability = {
  readonly contexts: readonly string[];
  readonly functions: readonly FunctionSignature[];
};

const ARGUMENTS_MAX = 255;
const STATUS_FUNCTIONS: ReadonlySet<string> = new Set([
  'success',
  'failure',
  'always',
  'cancelled',
]);

/** Every context and function there is, for evaluating what was checked when its file was read. */
export const EVERYTHING_AVAILABLE: Availability = {
  contexts: [
    'github',
    'env',
    'vars',
    'job',
    'jobs',
    'steps',
    'runner',
    'secrets',
    'strategy',
    'matrix',
    'needs',
    'inputs',
  ],
  functions: [
    { name: 'success', minArgs: 0, maxArgs: ARGUMENTS_MAX },
    { name: 'failure', minArgs: 0, maxArgs: ARGUMENTS_MAX },
    { name: 'always', minArgs: 0, maxArgs: 0 },
    { name: 'cancelled', minArgs: 0, maxArgs: 0 },
    { name: 'hashFiles', minArgs: 1, maxArgs: ARGUMENTS_MAX },
  ],
};

/** Why a text is no expression, in GitHub's words. */
export class ExpressionSyntaxError extends Error {}

/**
 * The tree of an expression without `${{ }}`. Errors: ExpressionSyntaxError. Cost is linear; at most
 * 21,000 characters and 50 levels, as on GitHub.
 */
export function parseExpression(source: string, available: Availability): Expr {
  try {
    const tokens = new Lexer(source).lex().tokens.map((token) => withRunnerValue(token, source));
    const tree: Expr | undefined = new Parser(
      tokens,
      [...available.contexts],
      available.functions.map((signature) => ({ ...signature })),
    ).parse();
    if (tree === undefined) {
      throw new ExpressionSyntaxError('An expression was expected');
    }
    if (isTooDeep(tree)) {
      throw new ExpressionSyntaxError('The expression is too deep');
    }
    return tree;
  } catch (error) {
    throw syntaxErrorFrom(error, source);
  }
}

const NUMBER_WORDS: readonly string[] = ['NaN', 'Infinity'];

/** The package takes only the first doubled quote of a text for one, and reads numbers as JavaScript does. */
function withRunnerValue(token: Token, source: string): Token {
  const { lexeme, value } = token;
  if (typeof value === 'string' && lexeme.startsWith("'")) {
    return { ...token, value: lexeme.slice(1, -1).replaceAll("''", "'") };
  }
  if (typeof value !== 'number' || NUMBER_WORDS.includes(lexeme)) return token;
  const number = numberFromText(lexeme);
  if (!Number.isNaN(number)) return { ...token, value: number };
  const { line, column } = token.range.start;
  const position = offsetOf(source, line, column) + 1;
  throw new ExpressionSyntaxError(
    `Unexpected symbol: '${lexeme}'. Located at position ${position} within expression: ${shortened(source)}`,
  );
}

const UNEXPECTED_END = /^Unexpected symbol: 'EOF'$/;

function syntaxErrorFrom(error: unknown, source: string): Error {
  if (error instanceof ExpressionSyntaxError) {
    return error;
  }
  if (error instanceof ExpressionError) {
    if (UNEXPECTED_END.test(error.message)) {
      return unexpectedEnd(source);
    }
    const position = offsetOf(source, error.pos.line, error.pos.column) + 1;
    return new ExpressionSyntaxError(
      `${error.message}. Located at position ${position} within expression: ${shortened(source)}`,
    );
  }
  if (error instanceof Error && error.message === 'ErrorExceededMaxLength') {
    return new ExpressionSyntaxError('Exceeded max expression length 21000');
  }
  // The package throws plain errors at some spots, and the stack can run out on absurd chains.
  return new ExpressionSyntaxError(
    error instanceof RangeError ? 'The expression is too deep' : messageOf(error),
  );
}

/** The package names the end; GitHub names what stands before it. */
function unexpectedEnd(source: string): ExpressionSyntaxError {
  const { tokens } = new Lexer(source).lex();
  const last = tokens.at(-2);
  const position =
    last === undefined ? 0 : offsetOf(source, last.range.start.line, last.range.start.column);
  return new ExpressionSyntaxError(
    `Unexpected end of expression: '${shortened(source.slice(position).trim())}'. Located at position ${position + 1} within expression: ${shortened(source)}`,
  );
}

const QUOTED_CHARACTERS_MAX = 500;

function shortened(text: string): string {
  return text.length <= QUOTED_CHARACTERS_MAX
    ? text
    : `${text.slice(0, QUOTED_CHARACTERS_MAX)}[...]`;
}

function offsetOf(source: string, line: number, column: number): number {
  let start = 0;
  for (let index = 0; index < line; index += 1) {
    start = source.indexOf('\n', start) + 1;
  }
  return start + column;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'Invalid expression';
}

function isTooDeep(tree: Expr): boolean {
  let level: readonly Expr[] = [tree];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth >= EXPRESSION_LEVELS_MAX) {
      return true;
    }
    level = level.flatMap(partsOf);
  }
  return false;
}

/** Calls `visit` with each node of the tree, parents first. */
export function walkExpression(tree: Expr, visit: (node: Expr) => void): void {
  const pending: Expr[] = [tree];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    visit(node);
    pending.push(...partsOf(node).toReversed());
  }
}

function partsOf(node: Expr): Expr[] {
  if (node instanceof FunctionCall || node instanceof Logical) {
    return [...node.args];
  }
  if (node instanceof Binary) {
    return [node.left, node.right];
  }
  if (node instanceof Unary) {
    return [node.expr];
  }
  if (node instanceof Grouping) {
    return [node.group];
  }
  return node instanceof IndexAccess ? [node.expr, node.index] : [];
}

/** Whether success, failure, always or cancelled is called anywhere: then no `success() &&` is added. */
export function usesStatusFunction(tree: Expr): boolean {
  let isFound = false;
  walkExpression(tree, (node) => {
    isFound ||=
      node instanceof FunctionCall && STATUS_FUNCTIONS.has(node.functionName.lexeme.toLowerCase());
  });
  return isFound;
}

export { ContextAccess, FunctionCall, Grouping, IndexAccess, Logical };
