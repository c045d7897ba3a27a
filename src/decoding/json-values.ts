import {
  type DescField,
  type DescMessage,
  fromJson,
  fromJsonString,
  type JsonObject,
  type JsonReadOptions,
  type JsonValue,
  type Message,
  type MessageShape,
  mergeFromJson,
  mergeFromJsonString,
} from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { nanosOf, parseTimestamp } from '../shared/instant.ts';
import { malformed } from './decode-limits.ts';

type JsonOptions = Partial<JsonReadOptions> | undefined;

const TIMESTAMP = 'google.protobuf.Timestamp';
const PROBLEM = 'must be a time of RFC 3339 in the years 0001 to 9999, as 2026-11-27T00:00:00Z';
/** What protobuf's own reader takes; it knows neither the days of months nor small letters. */
const LIBRARY_FORM = /^.{10}T.{8}(?:\.\d{1,9})?(?:Z|[+-].{5})$/;
/** Levels that protobuf reads. */
const LEVELS_MAX = 100;

/**
 * The message of a JSON text. What protobuf's `fromJsonString` alone would take are days that do not exist (30 February as 2 March): times are
 * read by `parseTimestamp`.
 * Errors: protobuf's; BODY_MALFORMED that names a time by its path, as `updates[0].tuple.expires_at`. O(length).
 */
export function messageOfJsonText(desc: DescMessage, text: string, options: JsonOptions): Message {
  const json = rewritten(desc, text, 0);
  return json === undefined ? fromJsonString(desc, text, options) : fromJson(desc, json, options);
}

/** The message of parsed JSON, in which it rewrites times. Errors and cost: those of `messageOfJsonText`. */
export function messageOfJson<Desc extends DescMessage>(
  desc: Desc,
  json: JsonValue,
): MessageShape<Desc> {
  readTimes(desc, json);
  return fromJson(desc, json);
}

/** Merges a JSON text into a message, some of whose lists it goes on with: these have `itemsBefore` items. Errors: those of `messageOfJsonText`. */
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

/** Whether a time lies in such messages: protobuf alone would read it wrongly from JSON. O(1) but for the first look at a message. */
export function holdsTimes(desc: DescMessage): boolean {
  return timesOf(desc) !== null;
}

/** The JSON where a time of it is in another form than protobuf takes; else undefined, also where protobuf will refuse the text. */
function rewritten(desc: DescMessage, text: string, itemsBefore: number): JsonValue | undefined {
  if (timesOf(desc)?.sign.test(text) !== true) return undefined;
  let json: JsonValue;
  try {
    json = JSON.parse(text) as JsonValue;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  return readTimes(desc, json, itemsBefore) && !hasDuplicates(text) ? json : undefined;
}

/** `text` is JSON. Of its duplicate keys the parsed value has the last one alone; protobuf refuses them in the text. */
function hasDuplicates(text: string): boolean {
  try {
    fromJsonString(EmptySchema, text, { ignoreUnknownFields: true });
    return false;
  } catch {
    return true;
  }
}

/** Reads the times of a message in JSON, and rewrites those that protobuf does not take. Whether there was one. */
function readTimes(
  desc: DescMessage,
  json: JsonValue,
  itemsBefore = 0,
  at = '',
  level = 0,
): boolean {
  const times = timesOf(desc);
  if (times === null || !isObject(json) || level === LEVELS_MAX) return false;
  let isRewritten = false;
  for (const [spelling, value] of Object.entries(json)) {
    const field = times.fields.get(spelling);
    if (field?.message === undefined) continue;
    const { message, name, fieldKind } = field;
    const path = at + name;
    const isTime = message.typeName === TIMESTAMP;
    const read = (holder: JsonObject | JsonValue[], key: string | number, where: string): void => {
      const one = (holder as Record<string | number, JsonValue>)[key] as JsonValue;
      if (!isTime) {
        if (readTimes(message, one, 0, `${where}.`, level + 1)) isRewritten = true;
      } else if (one !== null) {
        const text = timeText(one, where);
        if (text === one) return;
        (holder as Record<string | number, JsonValue>)[key] = text;
        isRewritten = true;
      }
    };
    if (fieldKind !== 'list') read(json, spelling, path);
    else if (Array.isArray(value)) {
      value.forEach((_, i) => read(value, i, `${path}[${itemsBefore + i}]`));
    }
  }
  return isRewritten;
}

/** A time as protobuf takes it. */
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

/** The fields of a message that are times, or that hold one at any depth, by both of their spellings. */
type Times = {
  readonly fields: ReadonlyMap<string, DescField>;
  /** Finds a name of a time in a text, or an escape that may hide one. */
  readonly sign: RegExp;
};

const known = new WeakMap<DescMessage, Times | null>();

/** null: no times lie in it. O(1), once for each message O(fields below it). */
function timesOf(desc: DescMessage): Times | null {
  let times = known.get(desc);
  if (times === undefined) {
    const names = namesOfTimes(desc, new Set());
    const holding = desc.fields.filter(({ message, fieldKind }) => {
      if (message === undefined || fieldKind === 'map') return false;
      return message.typeName === TIMESTAMP || namesOfTimes(message, new Set()).size > 0;
    });
    const spelled = holding.flatMap((field) =>
      [field.name, field.jsonName].map((name) => [name, field] as const),
    );
    const sign = new RegExp(`"(?:${[...names].join('|')})"|\\\\u`);
    times = names.size === 0 ? null : { fields: new Map(spelled), sign };
    known.set(desc, times);
  }
  return times;
}

function namesOfTimes(desc: DescMessage, seen: Set<DescMessage>): Set<string> {
  const names = new Set<string>();
  if (seen.has(desc)) return names;
  seen.add(desc);
  for (const { message, name, jsonName } of desc.fields) {
    if (message === undefined) continue;
    const isTime = message.typeName === TIMESTAMP;
    const found = isTime ? [name, jsonName] : namesOfTimes(message, seen);
    for (const one of found) names.add(one);
  }
  return names;
}
