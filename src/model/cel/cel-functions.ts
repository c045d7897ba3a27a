import {
  type CelFunc,
  celFunc,
  celList,
  celMethod,
  CelScalar,
  celUint,
  type CelInput,
  type CelList,
  type CelMap,
  type CelValue,
  isCelList,
  isCelMap,
  isCelUint,
  listType,
  mapType,
  objectType,
} from '@bufbuild/cel';
import { create } from '@bufbuild/protobuf';
import {
  type Duration,
  DurationSchema,
  type Timestamp,
  TimestampSchema,
} from '@bufbuild/protobuf/wkt';
import { isTimestamp, parseTimestamp } from '../../shared/time/instant.ts';
import { durationOfText, nanosOfDuration } from './cel-durations.ts';
import {
  goTextOfDouble,
  goTextOfDuration,
  goTextOfTimestamp,
  offsetOf,
  withOffset,
  withOffsetOfText,
} from './cel-go-text.ts';
import { matchesPattern } from './cel-pattern.ts';
import { type Address, isInNetwork, type Network, parseAddress, parseCidr } from './ip-address.ts';

const { BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT } = CelScalar;
const LIST = listType(DYN);
const MAP = mapType(DYN, DYN);
const TIMESTAMP = objectType(TimestampSchema);
const DURATION = objectType(DurationSchema);

const INT_MAX = 2n ** 63n - 1n;
const INT_MIN = -(2n ** 63n);
const UINT_MAX = 2n ** 64n - 1n;
const NANOS_PER_SECOND = 1_000_000_000n;
const NANOS_PER_MS = 1_000_000n;
const INT_TEXT = /^[+-]?[0-9]{1,20}$/;
const UINT_TEXT = /^[0-9]{1,20}$/;
const DOUBLE_TEXT = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?$/;
/** Texts that Go's `strconv.ParseBool`, and so cel-go, accepts as a bool. */
const BOOL_TEXTS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((text) => [text, false] as const),
]);
/** Keeps a byte order mark, as a character like others. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Maximum number of parsed addresses that one thread caches, and of parsed networks. */
const READ_MAX = 1_024;

/** Function names that no expression can contain. The rewriting of an expression inserts them. */
export const INDEX = '@index';
export const HAS = '@has';
export const RANGE = '@range';
export const TICK = '@tick';
export const NEW_LIST = '@list';
export const APPEND = '@append';

const addresses = new Map<string, Address | undefined>();
const networks = new Map<string, Network | undefined>();
/** Array behind each list that `NEW_LIST` made. It grows in place: only its comprehension can name it. */
const growing = new WeakMap<CelList, CelInput[]>();

/**
 * Functions that differ from those of the library. Conversions reject texts that are no number or no date. Time is in
 * UTC or at a fixed offset, where the library uses the time zone of the machine. Text is ordered by code points. A map
 * has a key even if its value is null. Joining lists does not nest them. `in_cidr` and `ipaddress` are additions.
 * Functions for which cel-go differs from CEL's suite have separate names, which the importers write: `goString`,
 * `goInt` and `goMilliseconds`. Errors are thrown, and become values of the evaluation.
 */
export function gatehouseFunctions(): CelFunc[] {
  return [
    celFunc('int', [STRING], INT, intOfText),
    celFunc('uint', [STRING], UINT, (text) => celUint(uintOfText(text))),
    celFunc('double', [STRING], DOUBLE, doubleOfText),
    celFunc('bool', [STRING], BOOL, boolOfText),
    celFunc('string', [BYTES], STRING, (bytes) => utf8.decode(bytes)),
    celFunc('duration', [STRING], DURATION, (text) => durationOfText(text) ?? noDuration()),
    celFunc('timestamp', [INT], TIMESTAMP, timestampOfSeconds),
    celFunc('timestamp', [STRING], TIMESTAMP, (text) => timestampOfText(text) ?? noTimestamp()),
    celFunc('ipaddress', [STRING], STRING, addressOfText),
    celMethod('in_cidr', STRING, [STRING], BOOL, function (cidr) {
      return isInCidr(this, cidr);
    }),
    celMethod('matches', STRING, [STRING], BOOL, function (pattern) {
      return matchesPattern(this, pattern);
    }),
    celFunc('matches', [STRING, STRING], BOOL, matchesPattern),
    celFunc('_<_', [STRING, STRING], BOOL, (a, b) => compareText(a, b) < 0),
    celFunc('_<=_', [STRING, STRING], BOOL, (a, b) => compareText(a, b) <= 0),
    celFunc('_>_', [STRING, STRING], BOOL, (a, b) => compareText(a, b) > 0),
    celFunc('_>=_', [STRING, STRING], BOOL, (a, b) => compareText(a, b) >= 0),
    celFunc('_+_', [TIMESTAMP, DURATION], TIMESTAMP, (at, by) => later(at.message, by.message)),
    celFunc('_+_', [DURATION, TIMESTAMP], TIMESTAMP, (by, at) => later(at.message, by.message)),
    celFunc('_-_', [TIMESTAMP, DURATION], TIMESTAMP, (at, by) =>
      later(at.message, by.message, -1n),
    ),
    celFunc('_+_', [LIST, LIST], LIST, (a, b) => celList([...a, ...b] as CelInput[])),
    celFunc('@in', [STRING, MAP], BOOL, (key, map) => map.get(key) !== undefined),
    celFunc('@in', [BOOL, MAP], BOOL, (key, map) => map.get(key) !== undefined),
    celFunc('@in', [INT, MAP], BOOL, (key, map) => map.get(key) !== undefined),
    celFunc('@in', [UINT, MAP], BOOL, (key, map) => map.get(key) !== undefined),
    celFunc('@in', [DOUBLE, MAP], BOOL, (key, map) => map.get(key) !== undefined),
    ...goFunctions(),
    ...TIME_PARTS.flatMap(([name, partOf]) => timeMethods(name, partOf)),
    celFunc(INDEX, [DYN, DYN], DYN, (container, key) => elementAt(container, key) as CelInput),
    celFunc(HAS, [DYN, STRING], BOOL, (container, field) => {
      if (!isCelMap(container)) throw new Error('has() asks a map');
      return container.get(field) !== undefined;
    }),
    celFunc(RANGE, [DYN], DYN, (range) => range as CelInput),
    celFunc(TICK, [INT], BOOL, () => true),
    celFunc(NEW_LIST, [], LIST, newList),
    celFunc(APPEND, [LIST, DYN], LIST, append),
  ];
}

/** Conversions as in cel-go. Those that agree with CEL's suite are included for values of type `any`. */
function goFunctions(): CelFunc[] {
  return [
    celFunc('goString', [DOUBLE], STRING, goTextOfDouble),
    celFunc('goString', [TIMESTAMP], STRING, (at) => goTextOfTimestamp(at.message)),
    celFunc('goString', [DURATION], STRING, (duration) => goTextOfDuration(duration.message)),
    celFunc('goString', [STRING], STRING, (text) => text),
    celFunc('goString', [BOOL], STRING, String),
    celFunc('goString', [INT], STRING, String),
    celFunc('goString', [UINT], STRING, ({ value }) => String(value)),
    celFunc('goString', [BYTES], STRING, (bytes) => utf8.decode(bytes)),
    celFunc('goInt', [DURATION], INT, (duration) => nanosOfDuration(duration.message)),
    celMethod('goMilliseconds', DURATION, [], INT, function () {
      return nanosOfDuration(this.message) / NANOS_PER_MS;
    }),
  ];
}

function newList(): CelList {
  const values: CelInput[] = [];
  const list = celList(values);
  growing.set(list, values);
  return list;
}

function append(list: CelList, value: CelValue): CelList {
  const values = growing.get(list);
  if (values === undefined) throw new Error('assertion failed: a list of a comprehension grows');
  values.push(value);
  return list;
}

function elementAt(container: CelValue, key: CelValue): CelValue {
  const value = isCelList(container)
    ? container.get(positionOf(key))
    : isCelMap(container)
      ? container.get(mapKeyOf(key))
      : undefined;
  if (value === undefined) throw new Error('no such key');
  return value;
}

function positionOf(key: CelValue): number {
  const position = isCelUint(key) ? Number(key.value) : Number(key);
  const isNumber = isCelUint(key) || typeof key === 'bigint' || typeof key === 'number';
  if (!isNumber || !Number.isSafeInteger(position)) throw new Error('no position of a list');
  return position;
}

type MapKey = Parameters<CelMap['get']>[0];

function mapKeyOf(key: CelValue): MapKey {
  const isKey = ['string', 'bigint', 'boolean', 'number'].includes(typeof key) || isCelUint(key);
  if (!isKey) throw new Error('no key of a map');
  return key as MapKey;
}

function intOfText(text: string): bigint {
  const value = INT_TEXT.test(text) ? BigInt(text.replace(/^\+/, '')) : undefined;
  if (value === undefined || value < INT_MIN || value > INT_MAX) throw new Error('no int');
  return value;
}

function uintOfText(text: string): bigint {
  const value = UINT_TEXT.test(text) ? BigInt(text) : undefined;
  if (value === undefined || value > UINT_MAX) throw new Error('no uint');
  return value;
}

function boolOfText(text: string): boolean {
  const value = BOOL_TEXTS.get(text);
  if (value === undefined) throw new Error('no bool');
  return value;
}

function doubleOfText(text: string): number {
  if (/^nan$/i.test(text)) return Number.NaN;
  const infinite = /^([+-]?)(?:inf|infinity)$/i.exec(text);
  if (infinite !== null)
    return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  const value = DOUBLE_TEXT.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) throw new Error('no double');
  return value;
}

function timestampOfSeconds(seconds: bigint): Timestamp {
  return isTimestamp(seconds, 0) ? create(TimestampSchema, { seconds, nanos: 0 }) : noTimestamp();
}

function noTimestamp(): never {
  throw new Error('no timestamp');
}

function noDuration(): never {
  throw new Error('no duration');
}

/**
 * Adds a duration to a timestamp, or subtracts it if `sign` is -1. Keeps the offset. Errors: throws Error outside of
 * the years 1 to 9999.
 */
function later(at: Timestamp, by: Duration, sign = 1n): Timestamp {
  const nanos = at.seconds * NANOS_PER_SECOND + BigInt(at.nanos) + sign * nanosOfDuration(by);
  const rest = ((nanos % NANOS_PER_SECOND) + NANOS_PER_SECOND) % NANOS_PER_SECOND;
  const seconds = (nanos - rest) / NANOS_PER_SECOND;
  if (!isTimestamp(seconds, 0)) return noTimestamp();
  return withOffset(create(TimestampSchema, { seconds, nanos: Number(rest) }), offsetOf(at));
}

/**
 * Parses a timestamp (RFC 3339); undefined for any other text. Digits beyond nanoseconds are cut off. The offset in the
 * text is recorded for the timestamp.
 */
export function timestampOfText(text: string): Timestamp | undefined {
  const instant = parseTimestamp(text);
  if (instant === undefined) return undefined;
  const { seconds, fraction } = instant;
  const nanos = Number(fraction.slice(0, 9).padEnd(9, '0'));
  return withOffsetOfText(create(TimestampSchema, { seconds: BigInt(seconds), nanos }), text);
}

/** Normalizes an address to its shortest text, so that equal addresses have the same text. */
function addressOfText(text: string): string {
  const address = parseAddress(text);
  if (address === undefined) throw new Error('no address');
  return address.toString();
}

function isInCidr(text: string, cidr: string): boolean {
  const address = remembered(addresses, text, parseAddress);
  const network = remembered(networks, cidr, parseCidr);
  if (address === undefined || network === undefined) throw new Error('no address or network');
  return isInNetwork(address, network);
}

function remembered<T>(known: Map<string, T>, text: string, read: (text: string) => T): T {
  const found = known.get(text);
  if (found !== undefined) return found;
  const value = read(text);
  if (known.size >= READ_MAX) known.clear();
  known.set(text, value);
  return value;
}

/** Compares texts by code points. The order of UTF-16 units differs from it. */
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

/** Rank of a UTF-16 unit. Surrogates rank above all other units, since they encode higher code points. */
function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

const MS_PER_DAY = 86_400_000;
const TIME_PARTS: readonly (readonly [name: string, partOf: (date: Date) => number])[] = [
  ['getFullYear', (date) => date.getUTCFullYear()],
  ['getMonth', (date) => date.getUTCMonth()],
  ['getDate', (date) => date.getUTCDate()],
  ['getDayOfMonth', (date) => date.getUTCDate() - 1],
  ['getDayOfWeek', (date) => date.getUTCDay()],
  ['getDayOfYear', dayOfYear],
  ['getHours', (date) => date.getUTCHours()],
  ['getMinutes', (date) => date.getUTCMinutes()],
  ['getSeconds', (date) => date.getUTCSeconds()],
  ['getMilliseconds', (date) => date.getUTCMilliseconds()],
];

function timeMethods(name: string, partOf: (date: Date) => number): CelFunc[] {
  return [
    celMethod(name, TIMESTAMP, [], INT, function () {
      return BigInt(partOf(dateOf(this.message, 0)));
    }),
    celMethod(name, TIMESTAMP, [STRING], INT, function (zone) {
      const minutes = offsetMinutes(zone);
      if (minutes === undefined) throw new Error('a time zone is UTC or an offset like +02:00');
      return BigInt(partOf(dateOf(this.message, minutes)));
    }),
  ];
}

/** Returns a Date whose UTC fields are those of the instant at the offset. */
function dateOf(at: { readonly seconds: bigint; readonly nanos: number }, minutes: number): Date {
  const ms = Number(at.seconds) * 1000 + Math.floor(at.nanos / 1_000_000);
  return new Date(ms + minutes * 60_000);
}

function dayOfYear(date: Date): number {
  const start = new Date(0);
  start.setUTCFullYear(date.getUTCFullYear(), 0, 1);
  return Math.floor((date.getTime() - start.getTime()) / MS_PER_DAY);
}

/**
 * Minutes east of Greenwich of `UTC`, '' or `[+-]hh:mm`. Undefined for anything else, such as names of places, whose
 * offsets change.
 */
export function offsetMinutes(zone: string): number | undefined {
  if (zone === 'UTC' || zone === '') return 0;
  const match = /^([+-]?)([0-9]{1,2}):([0-5][0-9])$/.exec(zone);
  if (match === null) return undefined;
  const minutes = Number(match[2]) * 60 + Number(match[3]);
  if (minutes >= 24 * 60) return undefined;
  return match[1] === '-' ? -minutes : minutes;
}
