/* Texts of times, each with what it means by a calendar that counts day by day. */

const MONTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** Seconds from 1970 to the time of a calendar and a clock, counted year by year and month by month. */
function secondsAt(year: number, month: number, day: number, ofDay: number): number {
  let days = day - 1;
  for (let y = 1970; y < year; y++) days += isLeap(y) ? 366 : 365;
  for (let y = year; y < 1970; y++) days -= isLeap(y) ? 366 : 365;
  for (let m = 1; m < month; m++) days += m === 2 && isLeap(year) ? 29 : (MONTHS[m - 1] ?? 0);
  return days * 86_400 + ofDay;
}

const NOON = 43_200;

/** Texts that are times, with the seconds and nanoseconds that they mean. */
export const TIMES: readonly (readonly [text: string, seconds: number, nanos: number])[] = [
  ['2027-02-28T12:00:00Z', secondsAt(2027, 2, 28, NOON), 0],
  ['2096-02-29T00:00:00Z', secondsAt(2096, 2, 29, 0), 0],
  ['2000-02-29T23:59:59Z', secondsAt(2000, 2, 29, 86_399), 0],
  ['2099-04-30T12:00:00Z', secondsAt(2099, 4, 30, NOON), 0],
  ['2096-02-29t12:00:00z', secondsAt(2096, 2, 29, NOON), 0],
  ['2096-02-29t12:00:00Z', secondsAt(2096, 2, 29, NOON), 0],
  ['2096-02-29T12:00:00z', secondsAt(2096, 2, 29, NOON), 0],
  ['2099-12-31t23:30:00-01:00', secondsAt(2100, 1, 1, 1_800), 0],
  ['2096-03-01T00:30:00+01:00', secondsAt(2096, 2, 29, 84_600), 0],
  ['2095-12-31T12:00:00-23:59', secondsAt(2096, 1, 1, NOON - 60), 0],
  ['2096-01-01T12:00:00-00:00', secondsAt(2096, 1, 1, NOON), 0],
  ['2096-01-01T12:00:00.5Z', secondsAt(2096, 1, 1, NOON), 500_000_000],
  ['2096-01-01T12:00:00.000000001Z', secondsAt(2096, 1, 1, NOON), 1],
  ['2096-01-01T12:00:00.123456789000+00:00', secondsAt(2096, 1, 1, NOON), 123_456_789],
  ['9999-12-31T23:59:59.999999999z', secondsAt(9999, 12, 31, 86_399), 999_999_999],
  ['0001-01-01T00:00:00Z', secondsAt(1, 1, 1, 0), 0],
];

/** Texts that are no times, or none of the years 0001 to 9999. */
export const NO_TIMES: readonly string[] = [
  ...MONTHS.map((days, i) => `2099-${String(i + 1).padStart(2, '0')}-${days + 1}T12:00:00Z`),
  '2100-02-29T12:00:00Z',
  '2096-02-30T12:00:00Z',
  '2096-00-10T12:00:00Z',
  '2096-13-10T12:00:00Z',
  '2096-10-00T12:00:00Z',
  '2096-10-10T24:00:00Z',
  '2096-10-10T12:60:00Z',
  '2096-10-10T12:00:60Z',
  '2016-12-31T23:59:60Z',
  '2099-06-31T12:00:00+02:00',
  '2099-02-29t12:00:00z',
  '2096-10-10T12:00:00+24:00',
  '2096-10-10T12:00:00+01:60',
  '2096-10-10T12:00:00+0100',
  '2096-10-10T12:00:00',
  '2096-10-10T12:00Z',
  '2096-10-10 12:00:00Z',
  '2096-10-10',
  '2096-10-10T12:00:00.Z',
  '2096-10-10T12:00:00,5Z',
  ' 2096-10-10T12:00:00Z',
  '2096-10-10T12:00:00Z\n',
  '+12096-10-10T12:00:00Z',
  '0000-12-31T12:00:00Z',
  '0001-01-01T00:00:00+00:01',
  '9999-12-31T23:59:59-00:01',
  '２096-10-10T12:00:00Z',
  '',
];

/** Times with digits that no nanoseconds hold: conditions take them, messages do not. */
export const TOO_FINE = '2096-10-10T12:00:00.1234567891Z';
