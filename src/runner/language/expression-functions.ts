import { data, wellKnownFunctions } from '@actions/expressions';
import type { ExpressionScope, StatusView } from '../model/execution.ts';
import type { Conclusion } from '../model/run.ts';
import { areEqual } from './expression-comparison.ts';
import {
  type ExpressionData,
  expressionDataFrom,
  ExpressionEvaluationError,
} from './expression-data.ts';
import { fromJson, toJson } from './json-functions.ts';
import { EXPRESSION_RESULT_CHARACTERS_MAX } from './limits.ts';
import { foldCase } from './ordered-object.ts';

type FunctionCall = (...args: ExpressionData[]) => ExpressionData;
type FunctionEntry = { name: string; minArgs: number; maxArgs: number; call: FunctionCall };
export type FunctionTable = Map<string, FunctionEntry>;

/** Thrown out of an evaluation that needs a hash that is not there yet. */
export class HashWanted extends Error {
  readonly args: readonly string[];

  constructor(args: readonly string[]) {
    super('hashFiles');
    this.args = args;
  }
}

/** Hashes by the JSON of their arguments. */
export type KnownHashes = ReadonlyMap<string, string>;

/**
 * The functions that an evaluation in `scope` has beside those of the package, and those of the
 * package that need a limit, by lower-case name.
 */
export function functionsFor(scope: ExpressionScope, hashes: KnownHashes): FunctionTable {
  const table: FunctionTable = new Map(OWN_FUNCTIONS);
  const add = (name: string, call: FunctionCall): void => {
    table.set(name.toLowerCase(), { name, minArgs: 0, maxArgs: 255, call });
  };
  const { status } = scope;
  add('always', () => truth(need(status, 'always') !== undefined));
  add('cancelled', () => truth(need(status, 'cancelled').isCancelled));
  add('success', (...args) => truth(isSuccess(need(status, 'success'), namesOf(args))));
  add('failure', (...args) => truth(isFailure(need(status, 'failure'), namesOf(args))));
  add('hashFiles', (...args) => {
    if (scope.hashRoot === undefined) {
      throw new ExpressionEvaluationError('The function hashFiles is not available here');
    }
    const patterns = namesOf(args);
    const hash = hashes.get(JSON.stringify(patterns));
    if (hash === undefined) {
      throw new HashWanted(patterns);
    }
    return new data.StringData(hash);
  });
  return table;
}

function need(status: StatusView | undefined, name: string): StatusView {
  if (status === undefined) {
    throw new ExpressionEvaluationError(`The function ${name} is not available here`);
  }
  return status;
}

/** `success()` and, at job level, `success('a', 'b')`. */
export function isSuccess(status: StatusView, names: readonly string[] = []): boolean {
  if (status.isCancelled) {
    return false;
  }
  return names.length === 0
    ? (status.hasSucceeded ?? !status.hasFailure)
    : names.every((name) => conclusionOf(status, name) === 'success');
}

function isFailure(status: StatusView, names: readonly string[]): boolean {
  if (status.isCancelled) {
    return false;
  }
  return names.length === 0
    ? status.hasFailure
    : names.some((name) => conclusionOf(status, name) === 'failure');
}

function conclusionOf(status: StatusView, name: string): Conclusion | undefined {
  return status.conclusionOf?.(name);
}

function namesOf(args: readonly ExpressionData[]): string[] {
  return args.map((arg) => arg.coerceString());
}

function truth(value: boolean): ExpressionData {
  return expressionDataFrom(value);
}

/** Those that the package brings with other rules for texts and numbers than the runner's, or without a limit. */
const OWN_FUNCTIONS: FunctionTable = new Map(
  [
    limited('format', (...args) => formatSize(args)),
    limited('join', (...args) => joinSize(args)),
    own('toJSON', 1, toJson),
    own('fromJSON', 1, fromJson),
    own('contains', 2, contains),
    own('startsWith', 2, (text, start) => comparedTexts(text, start, 'startsWith')),
    own('endsWith', 2, (text, end) => comparedTexts(text, end, 'endsWith')),
  ].map((entry) => [entry.name.toLowerCase(), entry]),
);

function own(name: string, count: number, call: FunctionCall): FunctionEntry {
  return { name, minArgs: count, maxArgs: count, call };
}

function contains(all: ExpressionData, one: ExpressionData): ExpressionData {
  return all instanceof data.Array
    ? truth(all.values().some((item) => areEqual(one, item)))
    : comparedTexts(all, one, 'includes');
}

function comparedTexts(
  left: ExpressionData,
  right: ExpressionData,
  method: 'startsWith' | 'endsWith' | 'includes',
): ExpressionData {
  if (!left.primitive || !right.primitive) return truth(false);
  return truth(foldCase(left.coerceString())[method](foldCase(right.coerceString())));
}

/** The package's function, refused when its result would be longer than the limit. */
function limited(
  name: string,
  sizeOf: FunctionCall extends (...args: infer Args) => unknown ? (...args: Args) => number : never,
): FunctionEntry {
  const original = wellKnownFunctions[name.toLowerCase()];
  if (original === undefined) {
    throw new Error(`the expression package has no ${name}`);
  }
  return {
    name,
    minArgs: original.minArgs,
    maxArgs: original.maxArgs,
    call: (...args) => {
      if (sizeOf(...args) > EXPRESSION_RESULT_CHARACTERS_MAX) {
        throw new ExpressionEvaluationError(tooLong(name));
      }
      const result = original.call(...args);
      if (result.primitive && result.coerceString().length > EXPRESSION_RESULT_CHARACTERS_MAX) {
        throw new ExpressionEvaluationError(tooLong(name));
      }
      return result;
    },
  };
}

function tooLong(name: string): string {
  return `The result of ${name} is longer than ${EXPRESSION_RESULT_CHARACTERS_MAX} characters`;
}

function formatSize(args: readonly ExpressionData[]): number {
  const pattern = args[0]?.coerceString() ?? '';
  const sizes = args.slice(1).map((arg) => arg.coerceString().length);
  let size = pattern.length;
  for (const [, digits] of pattern.matchAll(/\{(\d+)/g)) {
    size += sizes[Number(digits)] ?? 0;
  }
  return size;
}

function joinSize(args: readonly ExpressionData[]): number {
  const [list, separator] = args;
  if (!(list instanceof data.Array)) {
    return 0;
  }
  const between = separator === undefined ? 1 : separator.coerceString().length;
  return list.values().reduce((size, item) => size + between + item.coerceString().length, 0);
}
