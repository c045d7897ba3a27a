import { data, wellKnownFunctions } from '@actions/expressions';
import type { Scope, StatusView } from '../model/execution.ts';
import type { Conclusion, JsonValue } from '../model/run.ts';
import { type ExpressionData, expressionDataFrom } from './expression-data.ts';
import { EXPRESSION_RESULT_CHARACTERS_MAX, JSON_DEPTH_MAX } from './limits.ts';

type FunctionCall = (...args: ExpressionData[]) => ExpressionData;
export type FunctionTable = Map<
  string,
  { name: string; minArgs: number; maxArgs: number; call: FunctionCall }
>;

/** An evaluation that cannot be finished; the text is for the author of the workflow. */
export class ExpressionEvaluationError extends Error {}

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
export function functionsFor(scope: Scope, hashes: KnownHashes): FunctionTable {
  const table: FunctionTable = new Map(LIMITED_FUNCTIONS);
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

const LIMITED_FUNCTIONS: FunctionTable = new Map(
  [
    limited('format', (...args) => formatSize(args)),
    limited('join', (...args) => joinSize(args)),
    limited('toJSON', () => 0),
    {
      name: 'fromJSON',
      minArgs: 1,
      maxArgs: 1,
      call: (...args: ExpressionData[]) => fromJson(args[0]),
    },
  ].map((entry) => [entry.name.toLowerCase(), entry]),
);

/** The package's function, refused when its result would be longer than the limit. */
function limited(
  name: string,
  sizeOf: FunctionCall extends (...args: infer Args) => unknown ? (...args: Args) => number : never,
): { name: string; minArgs: number; maxArgs: number; call: FunctionCall } {
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

function fromJson(input: ExpressionData | undefined): ExpressionData {
  const text = input?.coerceString() ?? '';
  if (text.trim() === '') {
    throw new ExpressionEvaluationError('empty input');
  }
  if (depthOfJson(text) > JSON_DEPTH_MAX) {
    throw new ExpressionEvaluationError(`fromJson takes at most ${JSON_DEPTH_MAX} levels`);
  }
  try {
    return expressionDataFrom(JSON.parse(text) as JsonValue);
  } catch {
    // The parser's own message quotes the text, which may hold a secret.
    throw new ExpressionEvaluationError('Error parsing JSON when evaluating fromJson');
  }
}

/** Levels of arrays and objects in a JSON text. */
function depthOfJson(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isInString = false;
  for (let index = 0; index < text.length; index += 1) {
    const char = text.charCodeAt(index);
    if (isInString) {
      if (char === BACKSLASH) {
        index += 1;
      } else if (char === QUOTE) {
        isInString = false;
      }
    } else if (char === QUOTE) {
      isInString = true;
    } else if (char === BRACKET || char === BRACE) {
      depth += 1;
      deepest = Math.max(deepest, depth);
    } else if (char === BRACKET + 2 || char === BRACE + 2) {
      depth -= 1;
    }
  }
  return deepest;
}

const QUOTE = 0x22;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
