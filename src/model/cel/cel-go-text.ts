import type { Duration, Timestamp } from '@bufbuild/protobuf/wkt';
import { withoutTrailing } from '../../shared/text/without-trailing.ts';

/** Offsets in minutes east of Greenwich with which timestamps were written. Those of UTC are omitted. */
const offsets = new WeakMap<Timestamp, number>();
const OFFSET = /([+-])([0-9]{2}):([0-9]{2})$/;

/** Records the offset in the text of a timestamp. Returns the timestamp. */
export function withOffsetOfText(at: Timestamp, text: string): Timestamp {
  const [, sign, hours, minutes] = OFFSET.exec(text) ?? [];
  const total = Number(hours ?? 0) * 60 + Number(minutes ?? 0);
  return withOffset(at, sign === '-' ? -total : total);
}

/** Records the offset of a timestamp, in minutes. Returns the timestamp. */
export function withOffset(at: Timestamp, minutes: number): Timestamp {
  if (minutes !== 0) offsets.set(at, minutes);
  return at;
}

/** Offset with which a timestamp was written, in minutes; 0 for UTC and for a timestamp computed from a number. */
export function offsetOf(at: Timestamp): number {
  return offsets.get(at) ?? 0;
}

/**
 * Formats in which cel-go 0.31 differs from CEL's own suite. OpenFGA 1.22.1 and SpiceDB 1.56.2 evaluate with cel-go. An
 * expression requests these texts by `goString`.
 */

/** Decimal exponents from which on, and below which, Go's `%g` writes a double with an exponent. */
const EXPONENT_MAX = 6;
const EXPONENT_MIN = -4;

/** Formats a double as Go's `%g` does: `1e+06`, `1e-05`, `-0`, `+Inf`, `NaN`. */
export function goTextOfDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const { sign, digits, exponent } = partsOf(value);
  if (exponent < EXPONENT_MIN || exponent >= EXPONENT_MAX) {
    const rest = digits.length === 1 ? '' : `.${digits.slice(1)}`;
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${digits.charAt(0)}${rest}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  return sign + plain(digits, exponent);
}

/** Formats a duration in seconds, without an exponent: `1.5s`, `-0.000001s`. */
export function goTextOfDuration({ seconds, nanos }: Duration): string {
  const { sign, digits, exponent } = partsOf(Number(seconds) + nanos / 1e9);
  return `${sign}${plain(digits, exponent)}s`;
}

/** Formats a timestamp at the offset with which it was written: `2026-01-01T00:00:00.1+02:00`. */
export function goTextOfTimestamp(at: Timestamp): string {
  const minutes = offsetOf(at);
  const date = new Date((Number(at.seconds) + minutes * 60) * 1000);
  const year = String(date.getUTCFullYear()).padStart(4, '0');
  const whole = `${year}${date.toISOString().slice(-20, -5)}`;
  const fraction = withoutTrailing(String(at.nanos).padStart(9, '0'), '0');
  return `${whole}${fraction === '' ? '' : `.${fraction}`}${goTextOfOffset(minutes)}`;
}

function goTextOfOffset(minutes: number): string {
  if (minutes === 0) return 'Z';
  const [hour, minute] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  const two = (part: number): string => String(part).padStart(2, '0');
  return `${minutes < 0 ? '-' : '+'}${two(hour)}:${two(minute)}`;
}

/** Shortest digits that identify a double, its sign (also of -0), and the power of ten of the first digit. */
function partsOf(value: number): {
  readonly sign: string;
  readonly digits: string;
  readonly exponent: number;
} {
  const [mantissa = '', power = '0'] = Math.abs(value).toExponential().split('e');
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  return { sign, digits: mantissa.replace('.', ''), exponent: Number(power) };
}

function plain(digits: string, exponent: number): string {
  if (exponent < 0) return `0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  const rest = digits.slice(exponent + 1);
  return rest === '' ? whole : `${whole}.${rest}`;
}
