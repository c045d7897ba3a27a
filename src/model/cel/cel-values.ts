import { type CelInput, celList, celMap, type CelValue } from '@bufbuild/cel';
import { reflect } from '@bufbuild/protobuf/reflect';
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { decimalInteger } from '../../shared/text/decimal-integer.ts';
import { JSON_DEPTH_MAX } from '../canonical-json.ts';
import type { ConditionType, ScalarKind } from '../condition-type.ts';
import { durationOfText } from './cel-durations.ts';
import { timestampOfText } from './cel-functions.ts';
import type { CostMeter } from './cel-meter.ts';
import { parseAddress } from './ip-address.ts';

const INT_MAX = 2n ** 63n - 1n;
const INT_MIN = -(2n ** 63n);
/** Groups: sign, whole digits, digits of the fraction, exponent. */
const NUMBER_TEXT = /^([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,4}))?$/;

/** Number of characters of text that one unit of cost pays for. */
const CHARACTERS_PER_UNIT = 16;
/** Cost in units of parsing a text as another type. */
const UNITS: { readonly [kind in ScalarKind]?: number } = {
  int: 2,
  timestamp: 16,
  duration: 24,
  ipaddress: 48,
};
const UNITS_OF_IPV4 = 8;

/**
 * Converts a JSON value to the type of a parameter. Undefined if it is no such value, or `meter` does not pay for it.
 * An int is a whole number or its decimal text (JSON has none beyond 2^53). `1000`, `1e3` and `1000.0` are the same, as
 * in OpenFGA 1.22.1 and SpiceDB 1.56.2. A double may be a text, too. A timestamp is RFC 3339, and a duration a text
 * like `1h30m` or `90s`. An address is IPv4 or IPv6, and becomes its shortest text. Cost: one unit per value (more for
 * text of another type) and per 16 characters.
 */
export function celValueOf(
  type: ConditionType,
  json: unknown,
  meter: CostMeter,
  depth = 0,
): CelValue | undefined {
  const isText = typeof json === 'string';
  const units = isText ? unitsOfText(type, json) : 1;
  if (depth > JSON_DEPTH_MAX || !meter.spend(units)) return undefined;
  switch (type.kind) {
    case 'bool':
      return typeof json === 'boolean' ? json : undefined;
    case 'int':
      return intOf(json);
    case 'double':
      return doubleOf(json);
    case 'string':
      return typeof json === 'string' ? json : undefined;
    case 'timestamp':
      return typeof json === 'string' ? timestampOf(json) : undefined;
    case 'duration':
      return typeof json === 'string' ? durationOf(json) : undefined;
    case 'ipaddress':
      return typeof json === 'string' ? parseAddress(json)?.toString() : undefined;
    case 'list':
      return Array.isArray(json) ? listValue(type.element, json, meter, depth) : undefined;
    case 'map':
      return isObject(json) ? mapValue(type.value, json, meter, depth) : undefined;
    case 'any':
      return anyValue(type, json, meter, depth);
    default:
      return undefined;
  }
}

function unitsOfText({ kind }: ConditionType, text: string): number {
  const units = kind === 'list' || kind === 'map' ? undefined : UNITS[kind];
  const isShort = kind === 'ipaddress' && !text.includes(':');
  return (isShort ? UNITS_OF_IPV4 : (units ?? 1)) + Math.floor(text.length / CHARACTERS_PER_UNIT);
}

function intOf(json: unknown): bigint | undefined {
  if (typeof json === 'number') return Number.isSafeInteger(json) ? BigInt(json) : undefined;
  const found = typeof json === 'string' ? NUMBER_TEXT.exec(json) : null;
  if (found === null) return undefined;
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = found;
  const value = decimalInteger({ sign, whole, fraction, exponent });
  return value !== undefined && value >= INT_MIN && value <= INT_MAX ? value : undefined;
}

function doubleOf(json: unknown): number | undefined {
  if (typeof json === 'number') return json;
  const value = typeof json === 'string' && NUMBER_TEXT.test(json) ? Number(json) : undefined;
  return Number.isFinite(value) ? value : undefined;
}

function timestampOf(text: string): CelValue | undefined {
  const timestamp = timestampOfText(text);
  return timestamp && reflect(TimestampSchema, timestamp);
}

function durationOf(text: string): CelValue | undefined {
  const duration = durationOfText(text);
  return duration && reflect(DurationSchema, duration);
}

function listValue(
  element: ConditionType,
  values: readonly unknown[],
  meter: CostMeter,
  depth: number,
): CelValue | undefined {
  const list: CelValue[] = [];
  for (const json of values) {
    const value = celValueOf(element, json, meter, depth + 1);
    if (value === undefined) return undefined;
    list.push(value);
  }
  return celList(list);
}

function mapValue(
  type: ConditionType,
  object: object,
  meter: CostMeter,
  depth: number,
): CelValue | undefined {
  const map = new Map<string, CelInput>();
  for (const [key, json] of Object.entries(object)) {
    const value = celValueOf(type, json, meter, depth + 1);
    if (value === undefined) return undefined;
    map.set(key, value);
  }
  return celMap(map);
}

function anyValue(
  type: ConditionType,
  json: unknown,
  meter: CostMeter,
  depth: number,
): CelValue | undefined {
  if (Array.isArray(json)) return listValue(type, json, meter, depth);
  if (isObject(json)) return mapValue(type, json, meter, depth);
  const isScalar = json === null || ['boolean', 'number', 'string'].includes(typeof json);
  return isScalar ? (json as CelValue) : undefined;
}

function isObject(json: unknown): json is object {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}
