import { data } from '@actions/expressions';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { numberFromText, numberText } from './number-text.ts';
import { foldCase, mergedEntries, objectEntries, objectFrom } from './ordered-object.ts';

/** A value of the expression language. */
export type ExpressionData = data.ExpressionData;

/** A text, which is read as a number by the runner's rules. */
class TextData extends data.StringData {
  override number(): number {
    return numberFromText(this.value);
  }
}

/** A number, which becomes a text by the runner's rules. */
class NumericData extends data.NumberData {
  override coerceString(): string {
    return numberText(this.value);
  }
}

const NULL = new data.Null();
const TRUE = new data.BooleanData(true);
const FALSE = new data.BooleanData(false);

/**
 * JSON as the evaluator sees it. Objects and arrays are wrapped, and their parts are converted only
 * when an expression reaches them, so that large contexts cost nothing. Objects must not be changed afterwards: what was read of them is kept.
 */
export function expressionDataFrom(value: JsonValue | undefined): ExpressionData {
  if (value === null || value === undefined) {
    return NULL;
  }
  switch (typeof value) {
    case 'string':
      return new TextData(value);
    case 'number':
      return new NumericData(value);
    case 'boolean':
      return value ? TRUE : FALSE;
    default:
      return wrapped(value);
  }
}

/** A value as expressions write it into a text: '' for null, `Object` and `Array` for these. */
export function textOfValue(value: JsonValue | undefined): string {
  return expressionDataFrom(value).coerceString();
}

/** One wrapper for each object, since objects and arrays equal only themselves. */
const WRAPPERS = new WeakMap<object, ExpressionData>();

function wrapped(value: readonly JsonValue[] | JsonObject, fold = foldCase): ExpressionData {
  const known = WRAPPERS.get(value);
  if (known !== undefined) {
    return known;
  }
  const wrapper = isList(value) ? new JsonList(value) : new JsonDictionary(value, fold);
  WRAPPERS.set(value, wrapper);
  return wrapper;
}

/** A value of the package, as of a literal or a function, with the runner's rules for texts and numbers. */
export function withRunnerRules(value: ExpressionData): ExpressionData {
  if (value instanceof TextData || value instanceof NumericData) return value;
  const isScalar = value instanceof data.StringData || value instanceof data.NumberData;
  return isScalar ? expressionDataFrom(value.value) : value;
}

/** The JSON of a result; NaN and infinities stay numbers. Throws RangeError on a cycle-deep value. */
export function jsonFromExpressionData(value: ExpressionData): JsonValue {
  if (value instanceof JsonDictionary || value instanceof JsonList) {
    return value.source;
  }
  if (value instanceof data.StringData) {
    return value.value;
  }
  if (value instanceof data.NumberData) {
    return value.value;
  }
  if (value instanceof data.BooleanData) {
    return value.value;
  }
  if (value instanceof data.Array) {
    return value.values().map(jsonFromExpressionData);
  }
  if (value instanceof data.Dictionary) {
    return objectFrom(value.pairs().map((pair) => [pair.key, jsonFromExpressionData(pair.value)]));
  }
  return null;
}

/** Keys in the order of the text. What `fold` makes of two alike is one key: first spelling, last value. */
export class JsonDictionary extends data.Dictionary {
  readonly source: JsonObject;
  readonly #fold: (key: string) => string;
  #known: ReadonlyMap<string, readonly [string, JsonValue]> | undefined;

  constructor(source: JsonObject, fold: (key: string) => string = foldCase) {
    super();
    this.source = source;
    this.#fold = fold;
  }

  override get(key: string): ExpressionData | undefined {
    const entry = this.#entries.get(this.#fold(key));
    return entry === undefined ? undefined : expressionDataFrom(entry[1]);
  }

  override values(): ExpressionData[] {
    return Array.from(this.#entries.values(), ([, value]) => expressionDataFrom(value));
  }

  override pairs(): { key: string; value: ExpressionData }[] {
    return Array.from(this.#entries.values(), ([key, value]) => ({
      key,
      value: expressionDataFrom(value),
    }));
  }

  get #entries(): ReadonlyMap<string, readonly [string, JsonValue]> {
    this.#known ??= mergedEntries(objectEntries(this.source), this.#fold);
    return this.#known;
  }
}

/**
 * Contexts by name; a name that is absent is a null and not an error. The names in `env` alone differ by
 * case. Source: actions/runner, StepsRunner.cs, on Linux and macOS.
 */
export class ContextDictionary extends JsonDictionary {
  constructor(contexts: Readonly<Record<string, JsonValue | undefined>>) {
    super(contexts as JsonObject);
  }

  override get(name: string): ExpressionData {
    const { env } = this.source;
    if (name.toLowerCase() === 'env' && typeof env === 'object' && env !== null) {
      return wrapped(env, asWritten);
    }
    return super.get(name) ?? NULL;
  }
}

/** An array whose items are converted once, when one is asked for. */
export class JsonList extends data.Array {
  readonly source: readonly JsonValue[];
  #values: ExpressionData[] | undefined;

  constructor(source: readonly JsonValue[]) {
    super();
    this.source = source;
  }

  override get(index: number): ExpressionData {
    return expressionDataFrom(this.source[index]);
  }

  override values(): ExpressionData[] {
    this.#values ??= this.source.map(expressionDataFrom);
    return this.#values;
  }
}

function asWritten(key: string): string {
  return key;
}

function isList(value: readonly JsonValue[] | JsonObject): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** An evaluation that cannot be finished; the text is for the author of the workflow. */
export class ExpressionEvaluationError extends Error {}
