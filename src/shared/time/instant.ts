import { withoutTrailing } from '../text/without-trailing.ts';

/**
 * An instant of any precision: whole seconds since the epoch, and fraction digits without trailing
 * zeros.
 */
export type Instant = { readonly seconds: number; readonly fraction: string };

const RFC3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:([Zz])|([+-])(\d{2}):(\d{2}))$/;

/**
 * Parses an RFC 3339 date-time strictly: all fields in range, the day exists in its month, the zone
 * is present. Leap seconds (`:60`) are refused, because they name no instant of the system clock.
 * Returns undefined for anything else. O(length): a fraction may have as many digits as a body
 * holds.
 */
export function parseInstant(text: string): Instant | undefined {
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const [hour, minute, second] = [Number(match[4]), Number(match[5]), Number(match[6])];
  const [zoneHour, zoneMinute] = [Number(match[10] ?? 0), Number(match[11] ?? 0)];
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 59 || zoneHour > 23 || zoneMinute > 59) return undefined;
  // setUTCFullYear: Date.UTC reads the years 0-99 as 1900-1999.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, 0);
  const zoneSeconds = (zoneHour * 60 + zoneMinute) * 60 * (match[9] === '-' ? -1 : 1);
  return {
    seconds: date.getTime() / 1000 - zoneSeconds,
    fraction: withoutTrailing(match[7] ?? '', '0'),
  };
}

/** 0001-01-01 and 9999-12-31, the range of google.protobuf.Timestamp, in seconds. */
const TIMESTAMP_SECONDS_MIN = -62_135_596_800;
const TIMESTAMP_SECONDS_MAX = 253_402_300_799;

/**
 * Parses like `parseInstant`. Also undefined beyond the years 0001 to 9999 (UTC), the range of
 * google.protobuf.Timestamp.
 */
export function parseTimestamp(text: string): Instant | undefined {
  const instant = parseInstant(text);
  return instant !== undefined && isTimestamp(BigInt(instant.seconds), 0) ? instant : undefined;
}

/**
 * True if these are the fields of a google.protobuf.Timestamp: the years 0001 to 9999, and less
 * than a second of nanoseconds.
 */
export function isTimestamp(seconds: bigint, nanos: number): boolean {
  return (
    seconds >= TIMESTAMP_SECONDS_MIN &&
    seconds <= TIMESTAMP_SECONDS_MAX &&
    Number.isInteger(nanos) &&
    nanos >= 0 &&
    nanos <= 999_999_999
  );
}

/** The nanoseconds of the second; undefined if the fraction has more than nine digits. */
export function nanosOf({ fraction }: Instant): number | undefined {
  return fraction.length > 9 ? undefined : Number(fraction.padEnd(9, '0'));
}

/** Microseconds since the epoch, truncated. */
export function microsecondsOf({ seconds, fraction }: Instant): bigint {
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}

/** Negative, 0 or positive if `a` is before, at or after `b`. */
export function compareInstants(a: Instant, b: Instant): number {
  if (a.seconds !== b.seconds) return a.seconds - b.seconds;
  if (a.fraction === b.fraction) return 0;
  // Digits after the point compare as text: '5' is after '49', and a prefix is before its
  // extension.
  return a.fraction < b.fraction ? -1 : 1;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}
