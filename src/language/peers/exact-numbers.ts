import { JSON_DEPTH_MAX } from '../../model/canonical-json.ts';
import { shapeError } from './json-shape.ts';

/**
 * Matches texts with this many digits in a row: only these can have an integer that a number cannot
 * hold.
 */
const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+(?:\.0+)?$/;

/**
 * Parses JSON as `JSON.parse` does, but keeps an integer beyond 2^53 as a bigint, so that
 * `assertExact` can name it.
 * Errors: SyntaxError; RangeError for a text with many digits that is nested too deeply. O(length).
 */
export function parseExactJson(text: string): unknown {
  if (!MANY_DIGITS.test(text)) return JSON.parse(text) as unknown;
  // The types do not have the third argument yet.
  const keepExact = (_key: string, value: unknown, context?: { readonly source?: string }) =>
    exactOf(value, context?.source ?? '');
  return JSON.parse(text, keepExact) as unknown;
}

function exactOf(value: unknown, source: string): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || !INTEGER.test(source)) {
    return value;
  }
  return BigInt(source.split('.')[0] ?? source);
}

/**
 * Refuses a context with an integer beyond 2^53, which would lose its last digits. Descends as deep
 * as a context may be. O(size).
 * Errors: FIELD_INVALID naming `place` and the member within it.
 */
export function assertExact(value: unknown, place: string, depth = 0): void {
  if (typeof value === 'bigint') {
    throw shapeError(place, `${value} is beyond 2^53 and would lose digits: write it as a text`);
  }
  if (typeof value !== 'object' || value === null || depth > JSON_DEPTH_MAX) return;
  for (const [name, member] of Object.entries(value)) {
    assertExact(member, Array.isArray(value) ? `${place}[${name}]` : `${place}.${name}`, depth + 1);
  }
}
