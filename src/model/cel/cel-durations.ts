import { create } from '@bufbuild/protobuf';
import { type Duration, DurationSchema } from '@bufbuild/protobuf/wkt';

const NANOS_PER_SECOND = 1_000_000_000n;
const NANOS_MAX = 2n ** 63n - 1n;
const NANOS_MIN = -(2n ** 63n);
/** The sign of micro, U+00B5, and the Greek letter mu, U+03BC, are both taken. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['ns', 1],
  ['us', 1e3],
  ['\u00b5s', 1e3],
  ['\u03bcs', 1e3],
  ['ms', 1e6],
  ['s', 1e9],
  ['m', 60e9],
  ['h', 3600e9],
]);
const PART = /(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))([a-z\u00b5\u03bc]+)/y;
/** Characters of a text that is a duration, at most; no shorter one needs more. */
const LENGTH_MAX = 128;
/** Digits of a fraction that count: more are beyond a nanosecond of an hour, and beyond what is kept of it in Go. */
const FRACTION_DIGITS = 18;

/**
 * The duration of a text in the form of Go's `time.ParseDuration`, which CEL names as its own: a sign, then
 * numbers with units (`1h30m`, `-1.5s`, `2μs`), or `0` alone. Undefined for any other text, the empty one
 * included, and beyond 64 bits of nanoseconds. Fractions of a nanosecond are cut off. O(length), up to 128
 * characters.
 */
export function durationOfText(text: string): Duration | undefined {
  if (text.length > LENGTH_MAX) return undefined;
  const isNegative = text.startsWith('-');
  const rest = isNegative || text.startsWith('+') ? text.slice(1) : text;
  if (rest === '0') return durationOfNanos(0n);
  if (rest === '') return undefined;
  let nanos = 0n;
  PART.lastIndex = 0;
  while (PART.lastIndex < rest.length) {
    const found = PART.exec(rest);
    const unit = UNITS.get(found?.[4] ?? '');
    if (found === null || unit === undefined) return undefined;
    const fraction = (found[2] ?? found[3] ?? '').slice(0, FRACTION_DIGITS);
    nanos += BigInt(found[1] ?? 0) * BigInt(unit) + fractionNanos(fraction, unit);
  }
  return durationOfNanos(isNegative ? -nanos : nanos);
}

/** Go computes a fraction in doubles, and so does this: the same digits give the same nanosecond. */
function fractionNanos(digits: string, unit: number): bigint {
  return BigInt(Math.trunc(Number(digits) * (unit / 10 ** digits.length)));
}

/** The duration of so many nanoseconds; undefined beyond 64 bits. Seconds and nanoseconds have the same sign. */
export function durationOfNanos(nanos: bigint): Duration | undefined {
  if (nanos < NANOS_MIN || nanos > NANOS_MAX) return undefined;
  return create(DurationSchema, {
    seconds: nanos / NANOS_PER_SECOND,
    nanos: Number(nanos % NANOS_PER_SECOND),
  });
}

/** The nanoseconds of a duration. */
export function nanosOfDuration({ seconds, nanos }: Duration): bigint {
  return seconds * NANOS_PER_SECOND + BigInt(nanos);
}
