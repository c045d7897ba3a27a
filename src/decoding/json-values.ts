import {
  type DescField,
  type DescMessage,
  fromJson,
  fromJsonString,
  type JsonObject,
  type JsonReadOptions,
  type JsonValue,
  mergeFromJson,
  mergeFromJsonString,
  type Message,
  type MessageShape,
  ScalarType,
} from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { decimalInteger } from '../shared/text/decimal-integer.ts';
import { nanosOf, parseTimestamp } from '../shared/time/instant.ts';
import { malformed } from './decode-limits.ts';

const { INT32, SINT32, SFIXED32, UINT32, FIXED32 } = ScalarType;
const { INT64, SINT64, SFIXED64, UINT64, FIXED64 } = ScalarType;
const RANGES: ReadonlyMap<ScalarType | undefined, readonly [min: bigint, max: bigint]> = new Map([
  ...[INT32, SINT32, SFIXED32].map((type) => [type, [-(2n ** 31n), 2n ** 31n - 1n]] as const),
  ...[UINT32, FIXED32].map((type) => [type, [0n, 2n ** 32n - 1n]] as const),
  ...[INT64, SINT64, SFIXED64].map((type) => [type, [-(2n ** 63n), 2n ** 63n - 1n]] as const),
  ...[UINT64, FIXED64].map((type) => [type, [0n, 2n ** 64n - 1n]] as const),
]);
/** A number of JSON (RFC 8259 section 6): sign, digits, fraction, exponent. */
const NUMBER = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]{1,4}))?$/;
const SMALL = /^(?:0|[1-9][0-9]{0,8})$/;

/** True for an integer field, or a list of integers; false for a map. */
export function isInteger(field: DescField): boolean {
  return field.fieldKind !== 'map' && RANGES.has(field.scalar);
}

/**
 * The digits of an integer in a text: any whole number of JSON (`"1e3"`, `"1000.0"`). The JSON
 * mapping of protobuf accepts these for 32 and 64 bits alike. O(length).
 * Errors: BODY_MALFORMED naming `where`, for any other text (`"0x10"`) and beyond the field's
 * range.
 */
export function integerText(field: DescField, text: string, where: string): string {
  if (SMALL.test(text)) return text;
  const range = RANGES.get(field.scalar);
  const value = wholeNumber(text);
  if (range === undefined || value === undefined || value < range[0] || value > range[1]) {
    const [min, max] = range ?? [];
    throw malformed(`${where}: must be a whole number from ${min} to ${max}`, where);
  }
  return String(value);
}

function wholeNumber(text: string): bigint | undefined {
  const found = NUMBER.exec(text);
  if (found === null) return undefined;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = found;
  return decimalInteger({ sign, whole, fraction, exponent });
}

/** Options of protobuf's JSON reader: `undefined` is its default. */
export type JsonOptions = Partial<JsonReadOptions> | undefined;

const TIMESTAMP = 'google.protobuf.Timestamp';
const PROBLEM = 'must be a time of RFC 3339 in the years 0001 to 9999, as 2026-11-27T00:00:00Z';
/**
 * Times that protobuf's own reader accepts. It does not know the days of months, and refuses
 * lower-case letters.
 */
const LIBRARY_FORM = /^.{10}T.{8}(?:\.\d{1,9})?(?:Z|[+-].{5})$/;
/** Levels that protobuf reads. */
const LEVELS_MAX = 100;

/**
 * The message of a JSON text. Times are read by `parseTimestamp`, integers in texts by
 * `integerText`.
 *
 * protobuf's `fromJsonString` alone would accept days that do not exist (30 February as 2 March)
 * and integers like `"0x10"`. It would refuse `"1e3"` for a field of 64 bits.
 * Errors: protobuf's; BODY_MALFORMED that names the value by its path, such as
 * `updates[0].tuple.expires_at`. O(length).
 */
export function messageOfJsonText(desc: DescMessage, text: string, options: JsonOptions): Message {
  const json = rewritten(desc, text, 0);
  return json === undefined ? fromJsonString(desc, text, options) : fromJson(desc, json, options);
}

/**
 * The message of parsed JSON, in which it rewrites values. Errors and cost: those of
 * `messageOfJsonText`.
 */
export function messageOfJson<Desc extends DescMessage>(
  desc: Desc,
  json: JsonValue,
): MessageShape<Desc> {
  readValues(desc, json);
  return fromJson(desc, json);
}

/**
 * Merges a JSON text into a message. Lists that it extends already have `itemsBefore` items.
 * Errors: those of `messageOfJsonText`.
 */
export function mergeJsonText(
  desc: DescMessage,
  message: Message,
  text: string,
  options: JsonOptions,
  itemsBefore: number,
): void {
  const json = rewritten(desc, text, itemsBefore);
  if (json === undefined) mergeFromJsonString(desc, message, text, options);
  else mergeFromJson(desc, message, json, options);
}

/**
 * True if such messages hold a time or an integer, which protobuf alone would misread from JSON.
 * O(1) after the first call for a message.
 */
export function holdsReadValues(desc: DescMessage): boolean {
  return valuesOf(desc) !== null;
}

/**
 * The JSON with values rewritten to the form that protobuf accepts. undefined if none needs it, or
 * if protobuf will refuse the text.
 */
function rewritten(desc: DescMessage, text: string, itemsBefore: number): JsonValue | undefined {
  if (valuesOf(desc)?.sign.test(text) !== true) return undefined;
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  return readValues(desc, json, itemsBefore) && !hasDuplicates(text) ? json : undefined;
}

/**
 * True if `text`, which is JSON, has duplicate keys. Protobuf refuses them in the text; the parsed
 * value keeps only the last one.
 */
function hasDuplicates(text: string): boolean {
  try {
    fromJsonString(EmptySchema, text, { ignoreUnknownFields: true });
    return false;
  } catch {
    return true;
  }
}

/**
 * Reads the times and integers of a message in JSON, and rewrites those that protobuf does not
 * accept. True if it rewrote any.
 */
function readValues(
  desc: DescMessage,
  json: JsonValue,
  itemsBefore = 0,
  at = '',
  level = 0,
): boolean {
  const values = valuesOf(desc);
  if (values === null || !isObject(json) || level === LEVELS_MAX) return false;
  let isRewritten = false;
  for (const [spelling, value] of Object.entries(json)) {
    const field = values.fields.get(spelling);
    if (field === undefined) continue;
    const path = at + field.name;
    const read = (holder: JsonObject | JsonValue[], key: string | number, where: string): void => {
      const one = (holder as Record<string | number, JsonValue>)[key] as JsonValue;
      const plain = plainValue(field, one, where);
      if (plain === undefined) {
        const { message } = field;
        if (message && readValues(message, one, 0, `${where}.`, level + 1)) isRewritten = true;
      } else if (plain !== one) {
        (holder as Record<string | number, JsonValue>)[key] = plain;
        isRewritten = true;
      }
    };
    if (field.fieldKind !== 'list') read(json, spelling, path);
    else if (Array.isArray(value)) {
      value.forEach((_, i) => read(value, i, `${path}[${itemsBefore + i}]`));
    }
  }
  return isRewritten;
}

/** A time or an integer as protobuf accepts it; undefined: the field is of another type. */
function plainValue(field: DescField, value: JsonValue, where: string): JsonValue | undefined {
  if (isTime(field)) return value === null ? value : timeText(value, where);
  if (!isInteger(field)) return undefined;
  return typeof value === 'string' ? integerText(field, value, where) : value;
}

function isTime({ message }: DescField): boolean {
  return message?.typeName === TIMESTAMP;
}

/** A time in the form that protobuf accepts. Errors: BODY_MALFORMED. */
function timeText(value: JsonValue, field: string): string {
  const instant = typeof value === 'string' ? parseTimestamp(value) : undefined;
  if (instant === undefined || nanosOf(instant) === undefined) {
    throw malformed(`${field}: ${PROBLEM}`, field);
  }
  if (LIBRARY_FORM.test(value as string)) return value as string;
  const { seconds, fraction } = instant;
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  return fraction === '' ? `${whole}Z` : `${whole}.${fraction}Z`;
}

function isObject(json: JsonValue): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/**
 * The fields of a message that are times or integers, or that hold one at any depth, by both of
 * their spellings.
 */
type ReadValues = {
  readonly fields: ReadonlyMap<string, DescField>;
  /**
   * Matches a time or an integer in a text, or an escape that may hide one. Integers written as
   * numbers are left to protobuf.
   */
  readonly sign: RegExp;
};

const known = new WeakMap<DescMessage, ReadValues | null>();

/**
 * The times and integers of a message; null if it holds none. O(1) after the first call for a
 * message, which is O(fields below it).
 */
function valuesOf(desc: DescMessage): ReadValues | null {
  let values = known.get(desc);
  if (values === undefined) {
    const found = fieldsBelow(desc, new Set());
    const holding = desc.fields.filter((field) => {
      const { message, fieldKind } = field;
      if (found.has(field)) return true;
      return message && fieldKind !== 'map' && fieldsBelow(message, new Set()).size > 0;
    });
    const spelled = holding.flatMap((field) =>
      spellingsOf(field).map((name) => [name, field] as const),
    );
    const names = (isOne: (field: DescField) => boolean): string =>
      [...new Set([...found].filter(isOne).flatMap(spellingsOf))].join('|') || '(?!)';
    // Texts of integers as protobuf itself writes them need no rewriting.
    const integer = `"(?:${names(isInteger)})"\\s*:\\s*(?:\\[|"(?!(?:0|[1-9]\\d{0,8})"))`;
    const sign = new RegExp(`"(?:${names(isTime)})"|${integer}|\\\\u`);
    values = found.size === 0 ? null : { fields: new Map(spelled), sign };
    known.set(desc, values);
  }
  return values;
}

function spellingsOf({ name, jsonName }: DescField): string[] {
  return [name, jsonName];
}

/** The times and integers of a message at any depth, without those in maps. */
function fieldsBelow(desc: DescMessage, seen: Set<DescMessage>): Set<DescField> {
  const found = new Set<DescField>();
  if (seen.has(desc)) return found;
  seen.add(desc);
  for (const field of desc.fields) {
    if (field.fieldKind === 'map') continue;
    if (isTime(field) || isInteger(field)) found.add(field);
    else if (field.message) for (const one of fieldsBelow(field.message, seen)) found.add(one);
  }
  return found;
}
