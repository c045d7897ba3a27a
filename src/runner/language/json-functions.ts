import { data } from '@actions/expressions';
import type { JsonValue } from '../../shared/json.ts';
import { type JsonNode, parseOrderedJson } from '../text/ordered-json.ts';
import {
  type ExpressionData,
  expressionDataFrom,
  ExpressionEvaluationError,
} from './expression-data.ts';
import { EXPRESSION_RESULT_CHARACTERS_MAX, JSON_DEPTH_MAX } from './limits.ts';
import { objectFrom } from './ordered-object.ts';

/** The value of a JSON text, keys in its order. Errors: ExpressionEvaluationError, which never quotes the text. */
export function fromJson(input: ExpressionData): ExpressionData {
  const text = input.coerceString();
  if (text.trim() === '') throw new ExpressionEvaluationError('empty input');
  try {
    const node = parseOrderedJson(text, { depthMax: JSON_DEPTH_MAX, mayRepeatKeys: true });
    return expressionDataFrom(valueOf(node));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const where = `Error parsing JSON when evaluating fromJson: ${error.message}`;
    throw new ExpressionEvaluationError(where);
  }
}

function valueOf(node: JsonNode): JsonValue {
  switch (node.kind) {
    case 'object':
      return objectFrom(node.entries.map(({ key, value }) => [key, valueOf(value)]));
    case 'array':
      return node.items.map(valueOf);
    case 'number':
      return Number(node.text);
    case 'null':
      return null;
    default:
      return node.value;
  }
}

/**
 * A value as JSON, two blanks a level, numbers as expressions write them: NaN is `NaN`.
 * Errors: ExpressionEvaluationError above the limit of a result, RangeError when the stack runs out.
 * Source: actions/runner, Functions/ToJson.cs.
 */
export function toJson(value: ExpressionData): ExpressionData {
  const writer = new JsonWriter();
  writer.value(value, '\n');
  return new data.StringData(writer.text);
}

/** What Newtonsoft.Json escapes beside what JSON.stringify does. */
const BREAKS = /[\u0085\u2028\u2029]/g;

class JsonWriter {
  text = '';

  /** `line`: the line break and the blanks of the level. */
  value(value: ExpressionData, line: string): void {
    if (value instanceof data.Array) {
      const items = value.values();
      this.#list('[]', line, items, (item, inner) => this.value(item, inner));
    } else if (value instanceof data.Dictionary) {
      this.#list('{}', line, value.pairs(), (pair, inner) => {
        this.#add(`${textOf(pair.key)}: `);
        this.value(pair.value, inner);
      });
    } else if (value instanceof data.StringData) {
      this.#add(textOf(value.value));
    } else {
      this.#add(value instanceof data.Null ? 'null' : value.coerceString());
    }
  }

  #list<T>(
    brackets: '[]' | '{}',
    line: string,
    items: readonly T[],
    write: (item: T, inner: string) => void,
  ): void {
    if (items.length === 0) {
      this.#add(brackets);
      return;
    }
    const inner = `${line}  `;
    for (const [index, item] of items.entries()) {
      this.#add(`${index === 0 ? brackets.charAt(0) : ','}${inner}`);
      write(item, inner);
    }
    this.#add(`${line}${brackets.charAt(1)}`);
  }

  #add(part: string): void {
    this.text += part;
    if (this.text.length > EXPRESSION_RESULT_CHARACTERS_MAX) {
      const limit = `${EXPRESSION_RESULT_CHARACTERS_MAX} characters`;
      throw new ExpressionEvaluationError(`The result is longer than ${limit}`);
    }
  }
}

function textOf(text: string): string {
  return JSON.stringify(text).replace(
    BREAKS,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
