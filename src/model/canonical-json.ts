import type { JsonObject, JsonValue } from '../shared/json.ts';

/** Maximum nesting that `canonicalJson` follows, so that no input can exhaust the stack. */
export const JSON_DEPTH_MAX = 100;

/**
 * Formats a JSON value as canonical text (RFC 8785): members sorted by UTF-16 code units, no whitespace, numbers and
 * strings as in ECMAScript. Equal values have equal texts. Errors: throws RangeError for a number that is not finite
 * and beyond JSON_DEPTH_MAX levels. Cost: O(n log n) in the number of members of one object.
 */
export function canonicalJson(value: JsonValue, depth = 0): string {
  if (depth > JSON_DEPTH_MAX) throw new RangeError(`nested deeper than ${JSON_DEPTH_MAX} levels`);
  if (value === null) return 'null';
  switch (typeof value) {
    case 'boolean':
      return value ? 'true' : 'false';
    case 'number':
      if (!Number.isFinite(value)) throw new RangeError('a number is not finite');
      return JSON.stringify(value);
    case 'string':
      return JSON.stringify(value);
    default:
      return isArray(value) ? canonicalArray(value, depth) : canonicalObject(value, depth);
  }
}

function canonicalArray(values: readonly JsonValue[], depth: number): string {
  return `[${values.map((value) => canonicalJson(value, depth + 1)).join(',')}]`;
}

function canonicalObject(object: JsonObject, depth: number): string {
  const members: string[] = [];
  // The default sort compares UTF-16 code units, as the RFC requires.
  for (const key of Object.keys(object).toSorted()) {
    const value = object[key];
    if (value === undefined) continue;
    members.push(`${JSON.stringify(key)}:${canonicalJson(value, depth + 1)}`);
  }
  return `{${members.join(',')}}`;
}

/** `Array.isArray` that also narrows readonly arrays. */
function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
