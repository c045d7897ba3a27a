const SECONDS = /^\d+$/;
const DAY_NAME = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const MONTH = `(?<month>${MONTHS.join('|')})`;
const TIME = String.raw`(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)`;
/** The forms of RFC 9110 §5.6.7: the one in use, that of RFC 850, and that of C's asctime. All are of UTC. */
const DATES: readonly RegExp[] = [
  new RegExp(String.raw`^${DAY_NAME}, (?<day>\d\d) ${MONTH} (?<year>\d{4}) ${TIME} GMT$`),
  new RegExp(
    String.raw`^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\d\d)-${MONTH}-(?<year>\d\d) ${TIME} GMT$`,
  ),
  new RegExp(String.raw`^${DAY_NAME} ${MONTH} (?<day>[ \d]\d) ${TIME} (?<year>\d{4})$`),
];
const YEARS_AHEAD_MAX = 50;

/**
 * How long `Retry-After` (RFC 9110 §10.2.3) asks to wait, milliseconds, from a whole number of seconds or an HTTP-date; 0 for
 * one that has passed. Undefined for anything else, which asks for nothing.
 */
export function retryAfterMs(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  if (SECONDS.test(value)) return Number(value) * 1000;
  for (const form of DATES) {
    const parts = form.exec(value)?.groups;
    if (parts !== undefined) return Math.max(0, timeOf(parts, nowMs) - nowMs);
  }
  return undefined;
}

function timeOf(parts: Readonly<Record<string, string>>, nowMs: number): number {
  const number = (name: string): number => Number(parts[name]);
  const month = MONTHS.indexOf(parts['month'] ?? '');
  const year = fullYear(parts['year'] ?? '', new Date(nowMs).getUTCFullYear());
  return Date.UTC(year, month, number('day'), number('hour'), number('minute'), number('second'));
}

/** Of two digits that would be more than fifty years ahead the last year with them is meant. */
function fullYear(digits: string, thisYear: number): number {
  if (digits.length > 2) return Number(digits);
  const year = thisYear - (thisYear % 100) + Number(digits);
  return year > thisYear + YEARS_AHEAD_MAX ? year - 100 : year;
}
