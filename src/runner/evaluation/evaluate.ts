import type { Expr, data } from '@actions/expressions';
import { truthy } from '@actions/expressions/result';
import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import {
  ContextDictionary,
  type ExpressionData,
  jsonFromExpressionData,
  textOfValue,
} from '../language/expression-data.ts';
import { evaluateTree } from '../language/expression-evaluator.ts';
import {
  type FunctionTable,
  HashWanted,
  functionsFor,
  isSuccess,
} from '../language/expression-functions.ts';
import {
  EVERYTHING_AVAILABLE,
  ExpressionSyntaxError,
  parseExpression,
  usesStatusFunction,
} from '../language/expression.ts';
import { HASH_CALLS_MAX } from '../language/limits.ts';
import { objectEntries, objectFrom } from '../language/ordered-object.ts';
import { isInsertKey } from '../language/template-scalar.ts';
import type { ExpressionScope } from '../model/execution.ts';
import type { Condition, Position, Template } from '../model/workflow.ts';
import { hashFilesIn } from './hash-files.ts';

type Parsed = { readonly tree: Expr; readonly isAboutStatus: boolean };

/** Trees of the expressions of a file; they go with it. */
const PARSED = new WeakMap<object, Parsed>();

/**
 * The JSON of a template. An `${{ insert }}` key puts the entries of its value in its place; of two
 * equal keys the later one wins. NaN and infinities stay numbers.
 * Errors: INVALID_WORKFLOW with metadata `line` and `column`.
 */
export async function evaluateTemplate(
  template: Template,
  scope: ExpressionScope,
): Promise<JsonValue> {
  return await withHashes(scope, (run) => jsonOf(template, run));
}

/** As GitHub turns a value into a text: '' for null, `true`, 15 digits. An object or array is an error. */
export async function evaluateText(template: Template, scope: ExpressionScope): Promise<string> {
  return await withHashes(scope, (run) => textOf(template, run));
}

/**
 * A mapping whose values are texts, as of `env` and `with`; null gives an empty one.
 * Errors: INVALID_WORKFLOW.
 */
export async function evaluateTexts(
  template: Template | undefined,
  scope: ExpressionScope,
): Promise<Record<string, string>> {
  if (template === undefined) {
    return {};
  }
  return await withHashes(scope, (run) => {
    const value = jsonOf(template, run);
    if (value === null) {
      return {};
    }
    if (!isObject(value)) {
      throw errorAt(template.at, unexpected(value));
    }
    return Object.fromEntries(
      objectEntries(value).map(([key, item]) => [key, textFromJson(item, template.at)]),
    );
  });
}

/** Only true and false will do, as on GitHub: the text 'true' is an error. */
export async function evaluateBoolean(
  template: Template,
  scope: ExpressionScope,
): Promise<boolean> {
  const value = await evaluateTemplate(template, scope);
  if (typeof value !== 'boolean') {
    throw errorAt(template.at, unexpected(value));
  }
  return value;
}

/** Only a finite number will do, as on GitHub: the text '5' is an error. */
export async function evaluateNumber(template: Template, scope: ExpressionScope): Promise<number> {
  const value = await evaluateTemplate(template, scope);
  if (typeof value !== 'number' || !Number.isFinite(value)) {
    throw errorAt(template.at, unexpected(value));
  }
  return value;
}

/**
 * An `if:`. Without one it is `success()`; `success() &&` is added where no status function is called.
 * Errors: INVALID_WORKFLOW.
 */
export async function evaluateCondition(
  condition: Condition | undefined,
  scope: ExpressionScope,
): Promise<boolean> {
  const { status } = scope;
  if (condition === undefined) {
    return status === undefined || isSuccess(status);
  }
  const parsed = parsedOf(condition);
  if (!parsed.isAboutStatus && status !== undefined && !isSuccess(status)) {
    return false;
  }
  return await withHashes(scope, (run) => truthy(dataOf(condition, run)));
}

/** What one pass of an evaluation needs. */
type Run = { readonly contexts: data.Dictionary; readonly functions: FunctionTable };

/**
 * Evaluation cannot wait, hashing must: each pass stops at the first hash that is missing, and starts
 * again once it is known.
 */
async function withHashes<T>(scope: ExpressionScope, evaluate: (run: Run) => T): Promise<T> {
  const hashes = new Map<string, string>();
  const run = {
    contexts: new ContextDictionary(scope.contexts),
    functions: functionsFor(scope, hashes),
  };
  for (;;) {
    try {
      return evaluate(run);
    } catch (error) {
      if (!(error instanceof WantedAt)) {
        throw error;
      }
      if (hashes.size >= HASH_CALLS_MAX) {
        throw errorAt(error.at, `More than ${HASH_CALLS_MAX} different calls of hashFiles`);
      }
      hashes.set(
        JSON.stringify(error.args),
        await hashed(scope, error.args).catch((cause: unknown) => {
          throw evaluationError(cause, error.at);
        }),
      );
    }
  }
}

function hashed(scope: ExpressionScope, args: readonly string[]): Promise<string> {
  const { hashFiles, hashRoot = '', signal } = scope;
  return hashFiles === undefined ? hashFilesIn(hashRoot, args, signal) : hashFiles(args, signal);
}

class WantedAt extends Error {
  readonly args: readonly string[];
  readonly at: Position;

  constructor(args: readonly string[], at: Position) {
    super('hashFiles');
    this.args = args;
    this.at = at;
  }
}

function jsonOf(template: Template, run: Run): JsonValue {
  switch (template.kind) {
    case 'literal':
      return template.value;
    case 'expression':
      return jsonFromExpressionData(dataOf(template, run));
    case 'sequence':
      return template.items.flatMap((item) => itemsOf(item, run));
    case 'mapping':
      return objectOf(template, run);
  }
}

/** The items of an expression that is a sequence take its place (actions/runner, TemplateUnraveler). */
function itemsOf(item: Template, run: Run): readonly JsonValue[] {
  const value = jsonOf(item, run);
  return item.kind === 'expression' && Array.isArray(value)
    ? (value as readonly JsonValue[])
    : [value];
}

function objectOf(template: Template & { kind: 'mapping' }, run: Run): JsonObject {
  const entries: (readonly [string, JsonValue])[] = [];
  for (const { key, value } of template.entries) {
    if (!isInsertKey(key)) {
      entries.push([textOf(key, run), jsonOf(value, run)]);
      continue;
    }
    const inserted = jsonOf(value, run);
    if (!isObject(inserted)) {
      throw errorAt(value.at, unexpected(inserted));
    }
    entries.push(...objectEntries(inserted));
  }
  return objectFrom(entries);
}

function textOf(template: Template, run: Run): string {
  return textFromJson(jsonOf(template, run), template.at);
}

function textFromJson(value: JsonValue, at: Position): string {
  if (typeof value === 'string') {
    return value;
  }
  if (value !== null && typeof value === 'object') {
    throw errorAt(at, unexpected(value));
  }
  return textOfValue(value);
}

function unexpected(value: JsonValue): string {
  if (Array.isArray(value)) {
    return 'A sequence was not expected';
  }
  return isObject(value)
    ? 'A mapping was not expected'
    : `Unexpected value '${textOfValue(value)}'`;
}

function isObject(value: JsonValue): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

type Sourced = { readonly source: string; readonly at: Position };

function dataOf(sourced: Sourced, run: Run): ExpressionData {
  const { tree } = parsedOf(sourced);
  try {
    return evaluateTree(tree, run.contexts, run.functions);
  } catch (error) {
    throw evaluationError(error, sourced.at);
  }
}

function parsedOf(sourced: Sourced): Parsed {
  let parsed = PARSED.get(sourced);
  if (parsed === undefined) {
    try {
      const tree = parseExpression(sourced.source, EVERYTHING_AVAILABLE);
      parsed = { tree, isAboutStatus: usesStatusFunction(tree) };
    } catch (error) {
      throw evaluationError(error, sourced.at);
    }
    PARSED.set(sourced, parsed);
  }
  return parsed;
}

function evaluationError(error: unknown, at: Position): Error {
  const origin = rootOf(error);
  if (origin instanceof HashWanted) {
    return new WantedAt(origin.args, at);
  }
  if (origin instanceof AppError || origin instanceof WantedAt) {
    return origin;
  }
  if (origin instanceof RangeError) {
    return errorAt(at, 'The expression is too deep or its result too large', error);
  }
  const text =
    origin instanceof ExpressionSyntaxError || origin instanceof Error
      ? origin.message
      : 'The expression could not be evaluated';
  return errorAt(at, text, error);
}

/** Inside an index the package wraps what was thrown. */
function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof Error && root.cause instanceof Error) {
    root = root.cause;
  }
  return root;
}

function errorAt(at: Position, message: string, cause?: unknown): AppError {
  return new AppError(
    'INVALID_WORKFLOW',
    `Line ${at.line}, column ${at.column}: ${message}`,
    { line: String(at.line), column: String(at.column) },
    cause,
  );
}
