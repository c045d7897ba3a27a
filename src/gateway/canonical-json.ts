import { fieldError } from "../shared/app-error.ts";

/** A value of google.protobuf.Struct as protobuf-es holds it. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** Nesting above this is refused, before recursion could exhaust the stack. */
export const JSON_DEPTH_MAX = 64;

/**
 * JSON text of `value` in the canonical form of RFC 8785: keys in UTF-16 order, numbers and strings
 * as ECMAScript writes them. Two equal values give the same text.
 * Errors: FIELD_INVALID naming `field` for U+0000 or ill-formed UTF-16 in any key or string, a
 * number that JSON cannot hold, or nesting above JSON_DEPTH_MAX. O(text), plus sorting the keys.
 */
export function canonicalJson(value: JsonValue, field: string): string {
  return write(value, field, 0);
}

function write(value: JsonValue, field: string, depth: number): string {
  if (depth > JSON_DEPTH_MAX) throw fieldError(field, `nested deeper than ${JSON_DEPTH_MAX}`);
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw fieldError(field, "holds a number that is not finite");
    return JSON.stringify(value);
  }
  if (typeof value === "string") return writeString(value, field);
  if (isArray(value)) {
    return `[${value.map((item) => write(item, field, depth + 1)).join(",")}]`;
  }
  const parts: string[] = [];
  // Without a comparator sort() compares UTF-16 code units, as the RFC asks.
  for (const key of Object.keys(value).sort()) {
    const member = value[key];
    if (member === undefined) continue;
    parts.push(`${writeString(key, field)}:${write(member, field, depth + 1)}`);
  }
  return `{${parts.join(",")}}`;
}

function writeString(text: string, field: string): string {
  if (text.includes("\u0000")) throw fieldError(field, "holds the character U+0000");
  if (!text.isWellFormed()) throw fieldError(field, "holds ill-formed UTF-16");
  return JSON.stringify(text);
}

function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
