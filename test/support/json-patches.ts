import * as fc from 'fast-check';
import { anyCharacter } from './any-text.ts';

/** Which object, which of its keys, else a field's name, and what is put there. */
type JsonPatch = readonly [object: number, key: number, field: string, value: unknown];

/** Values that upset readers of JSON: of every type, of awkward texts and sizes, and some of `own`. */
export function awkwardValues(own: readonly unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof(
    fc.constantFrom<unknown>(null, '', 0, -1, 1, 2 ** 31, 1e300, true, [], {}, [[]]),
    fc.constantFrom('\u0000', '\ud800', 'é'.repeat(200), '#', 'a#b', '*', '__proto__', '🙂'),
    fc.constantFrom('9'.repeat(400), 'A'.repeat(64)),
    fc.constantFrom('2999-01-01T00:00:00Z', '0001-01-01T00:00:00Z', '9999-12-31T23:59:60Z'),
    fc.constantFrom(...own),
    fc.string({ maxLength: 12, unit: 'grapheme' }),
    fc.string({ maxLength: 400, unit: anyCharacter }),
    fc.json({ maxDepth: 4 }).map((text): unknown => JSON.parse(text)),
  );
}

/** Up to four changes of a body: a field of `fields`, or one that is there, gets one of `values`. */
export function jsonPatches(
  fields: readonly string[],
  values: fc.Arbitrary<unknown>,
): fc.Arbitrary<JsonPatch[]> {
  const field = fc.constantFrom(...fields);
  return fc.array(fc.tuple(fc.nat(), fc.nat(), field, values), { maxLength: 4 });
}

/** A copy of `body` with `patches`, one after the other, anywhere in it. */
export function patched(
  body: Record<string, unknown>,
  patches: readonly JsonPatch[],
): Record<string, unknown> {
  const copy = structuredClone(body);
  for (const [object, key, field, value] of patches) {
    const objects = objectsOf(copy);
    const target = objects[object % objects.length] ?? copy;
    const keys = Object.keys(target);
    const name = key % 2 === 0 ? field : (keys[key % Math.max(1, keys.length)] ?? field);
    const own = { value: structuredClone(value), writable: true, enumerable: true };
    // Assigning to __proto__ would make no key of it.
    Object.defineProperty(target, name, { ...own, configurable: true });
  }
  return copy;
}

/** Each object in `value`, itself included. */
function objectsOf(value: unknown): Record<string, unknown>[] {
  if (Array.isArray(value)) return value.flatMap(objectsOf);
  if (typeof value !== 'object' || value === null) return [];
  return [value as Record<string, unknown>, ...Object.values(value).flatMap(objectsOf)];
}
