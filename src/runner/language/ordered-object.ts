import type { JsonObject, JsonValue } from '../../shared/json.ts';

const ASCII = /^[\0-\x7F]*$/;
/** Letters whose capital is that of another letter: .NET leaves them as they are. */
const ALONE = /[\u0131\u017F]/;

/**
 * A text with which others are compared without regard to case: each letter by itself, so `ß` is not `SS`. It is as
 * long as the text. Cost: O(characters).
 * Source: .NET's StringComparison.OrdinalIgnoreCase (OrdinalCasing.Icu.cs), which actions/runner uses.
 */
export function foldCase(text: string): string {
  const capitals = text.toUpperCase();
  if (ASCII.test(text)) return capitals;
  // A letter whose capital takes several makes the text longer.
  if (capitals.length === text.length && !ALONE.test(text)) return capitals;
  return text
    .replaceAll(/[a-z]+/g, (letters) => letters.toUpperCase())
    .replaceAll(/[^\0-\x7F]/gu, foldedLetter);
}

/** Letters whose capital takes several have a small form in common with their title form. */
function foldedLetter(letter: string): string {
  if (ALONE.test(letter)) return letter;
  const capital = letter.toUpperCase();
  if (capital.length === letter.length) return capital;
  const small = letter.toLowerCase();
  return small.length === letter.length ? small : letter;
}

type KeyedValue = readonly [string, JsonValue];

/** Keys in the order of the text, of objects that would otherwise list whole numbers first. */
const ORDERS = new WeakMap<JsonObject, readonly string[]>();

/**
 * The object of some entries. Keys that differ by case alone are one: the first spelling, the last value. Their
 * order is what `objectKeys` and its like give, also of keys such as `10`. Cost: O(entries).
 * Source: actions/runner, DictionaryContextData.
 */
export function objectFrom(entries: Iterable<KeyedValue>): JsonObject {
  const merged = mergedEntries(entries, foldCase);
  const object: JsonObject = Object.fromEntries(merged.values());
  const keys = Array.from(merged.values(), ([key]) => key);
  if (Object.keys(object).some((key, index) => key !== keys[index])) ORDERS.set(object, keys);
  return object;
}

/** Entries by what `fold` makes of their key: the first spelling, the last value. */
export function mergedEntries(
  entries: Iterable<KeyedValue>,
  fold: (key: string) => string,
): ReadonlyMap<string, KeyedValue> {
  const merged = new Map<string, KeyedValue>();
  for (const [key, value] of entries) {
    const folded = fold(key);
    merged.set(folded, [merged.get(folded)?.[0] ?? key, value]);
  }
  return merged;
}

/** The keys of an object in the order of its text. */
export function objectKeys(object: JsonObject): readonly string[] {
  return ORDERS.get(object) ?? Object.keys(object);
}

/** The entries of an object in the order of its text. */
export function objectEntries(object: JsonObject): readonly KeyedValue[] {
  return objectKeys(object).map((key) => [key, object[key] ?? null]);
}

/** The values of an object in the order of its text. */
export function objectValues(object: JsonObject): readonly JsonValue[] {
  return objectKeys(object).map((key) => object[key] ?? null);
}
