import { data } from '@actions/expressions';
import type { JsonObject, JsonValue } from '../model/run.ts';

/** A value of the expression language. */
export type ExpressionData = data.ExpressionData;

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
      return new data.StringData(value);
    case 'number':
      return new data.NumberData(value);
    case 'boolean':
      return value ? TRUE : FALSE;
    default:
      return wrapped(value);
  }
}

/** One wrapper for each object, since objects and arrays equal only themselves. */
const WRAPPERS = new WeakMap<object, ExpressionData>();

function wrapped(value: readonly JsonValue[] | JsonObject): ExpressionData {
  const known = WRAPPERS.get(value);
  if (known !== undefined) {
    return known;
  }
  const wrapper = isList(value) ? new JsonList(value) : new JsonDictionary(value);
  WRAPPERS.set(value, wrapper);
  return wrapper;
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
    return Object.fromEntries(
      value.pairs().map((pair) => [pair.key, jsonFromExpressionData(pair.value)]),
    );
  }
  return null;
}

/** Keys compare without case, as GitHub's dictionaries do; an exact match wins. */
export class JsonDictionary extends data.Dictionary {
  readonly source: JsonObject;
  #nameOfLower: Map<string, string> | undefined;

  constructor(source: JsonObject) {
    super();
    this.source = source;
  }

  override get(key: string): ExpressionData | undefined {
    if (Object.hasOwn(this.source, key)) {
      return expressionDataFrom(this.source[key]);
    }
    // Reversed, so that the first of several wins.
    this.#nameOfLower ??= new Map(
      Object.keys(this.source)
        .toReversed()
        .map((name) => [name.toLowerCase(), name]),
    );
    const name = this.#nameOfLower.get(key.toLowerCase());
    return name === undefined ? undefined : expressionDataFrom(this.source[name]);
  }

  override values(): ExpressionData[] {
    return Object.values(this.source).map(expressionDataFrom);
  }

  override pairs(): { key: string; value: ExpressionData }[] {
    return Object.entries(this.source).map(([key, value]) => ({
      key,
      value: expressionDataFrom(value),
    }));
  }
}

/** Contexts by name; a name that is absent is a null and not an error. */
export class ContextDictionary extends JsonDictionary {
  constructor(contexts: Readonly<Record<string, JsonValue | undefined>>) {
    super(contexts as JsonObject);
  }

  override get(name: string): ExpressionData {
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

function isList(value: readonly JsonValue[] | JsonObject): value is readonly JsonValue[] {
  return Array.isArray(value);
}
