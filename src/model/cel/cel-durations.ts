import { create } from '@bufbuild/protobuf';
import { type Duration, DurationSchema } from '@bufbuild/protobuf/wkt';

const NANOS_PER_SECOND = 1_000_000_000n;
const NANOS_MAX = 2n ** 63n - 1n;
const NANOS_MIN = -(2n ** 63n);
/** Units in ns. Both the micro sign, U+00B5, and the Greek letter mu, U+03BC, are accepted. */
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
/** Maximum length of a duration's text in characters. Every duration has a shorter text. */
const LENGTH_MAX = 128;
/**
 * Maximum number of fraction digits that count. Further digits are below a nanosecond of an hour, and beyond what Go
 * keeps.
 */
const FRACTION_DIGITS = 18;

/**
 * Parses a duration as Go's `time.ParseDuration` does, which CEL names as its form. The text is a sign, then numbers
 * with units (`1h30m`, `-1.5s`, `2μs`), or `0` alone. Undefined for any other text, also the empty one, and beyond 64
 * bits of nanoseconds. Fractions of a nanosecond are cut off. O(length), up to 128 characters.
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

/** Computes a fraction in doubles, as Go does: the same digits give the same nanosecond. */
function fractionNanos(digits: string, unit: number): bigint {
  return BigInt(Math.trunc(Number(digits) * (unit / 10 ** digits.length)));
}

/** Duration of `nanos` nanoseconds; undefined beyond 64 bits. Seconds and nanoseconds have the same sign. */
export function durationOfNanos(nanos: bigint): Duration | undefined {
  if (nanos < NANOS_MIN || nanos > NANOS_MAX) return undefined;
  return create(DurationSchema, {
    seconds: nanos / NANOS_PER_SECOND,
    nanos: Number(nanos % NANOS_PER_SECOND),
  });
}

/** Nanoseconds of a duration. */
export function nanosOfDuration({ seconds, nanos }: Duration): bigint {
  return seconds * NANOS_PER_SECOND + BigInt(nanos);
}
