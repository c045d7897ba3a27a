import type { JsonObject, JsonValue } from '../../../shared/json.ts';

/** The text at a path of names, undefined when there is none. */
export function textAt(payload: JsonObject, ...path: readonly string[]): string | undefined {
  const value = valueAt(payload, path);
  return typeof value === 'string' ? value : undefined;
}

/** The text or whole number at a path of names as text: ids are numbers on GitHub, texts elsewhere. */
export function idAt(payload: JsonObject, ...path: readonly string[]): string | undefined {
  const value = valueAt(payload, path);
  if (typeof value === 'number' && Number.isSafeInteger(value)) return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The object at a path of names; undefined for null and everything else. */
export function objectAt(payload: JsonObject, ...path: readonly string[]): JsonObject | undefined {
  return objectOf(valueAt(payload, path));
}

export function objectOf(value: JsonValue | undefined): JsonObject | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : undefined;
}

/** The `inputs` of a dispatch as texts; none where there are none. */
export function inputTexts(value: JsonValue | undefined): Readonly<Record<string, string>> {
  const entries = Object.entries(objectOf(value) ?? {}).map(([name, given]): [string, string] => [
    name,
    typeof given === 'object' ? JSON.stringify(given) : String(given),
  ]);
  return Object.fromEntries(entries);
}

function valueAt(payload: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = payload;
  for (const name of path) value = objectOf(value)?.[name];
  return value;
}
