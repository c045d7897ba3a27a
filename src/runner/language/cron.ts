import { CRON_CHARACTERS_MAX } from './limits.ts';
import { firstInstantOf, wallTimeOf } from './local-time.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const INTERVAL_MINUTES_MIN = 5;
/** The longest wait for a date that exists: 29 February over a century that is no leap year. */
const WAIT_YEARS_MAX = 8;
const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const WEEKDAYS = 'sun mon tue wed thu fri sat'.split(' ');

type CronField = {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
};
const FIELDS: readonly CronField[] = [
  { name: 'minute', min: 0, max: 59, names: [] },
  { name: 'hour', min: 0, max: 23, names: [] },
  { name: 'day', min: 1, max: 31, names: [] },
  { name: 'month', min: 1, max: 12, names: MONTHS },
  { name: 'weekday', min: 0, max: 6, names: WEEKDAYS },
];

/** The values of each field, in order. */
type CronTimes = {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: readonly number[];
  readonly months: readonly number[];
  readonly weekdays: readonly number[];
  /** One of the two that is `*` says nothing of the day; where both say something, either is enough. */
  readonly isAnyDay: boolean;
  readonly isAnyWeekday: boolean;
};

/**
 * What is wrong with a schedule: five fields of numbers, names of months and weekdays, lists, ranges and
 * steps (`20/15`: from 20 to the end of the field), no step beyond the number of values, 1,000 characters in
 * all. Source: GitHub's documentation of `on.schedule`.
 */
export function cronProblem(cron: string): string | undefined {
  if (cron.length > CRON_CHARACTERS_MAX) {
    return `Invalid cron expression: it has more than ${CRON_CHARACTERS_MAX} characters`;
  }
  if (cronTimes(cron) !== undefined) return undefined;
  const expected =
    "Invalid cron expression. Expected format: '* * * * *' (minute hour day month weekday)";
  const texts = cron.trim().split(/ +/);
  const wrong = FIELDS.findIndex(
    (field, index) => valuesOf(texts[index] ?? '', field) === undefined,
  );
  const field = FIELDS[wrong];
  if (texts.length !== FIELDS.length || field === undefined) return expected;
  const { name, min, max } = field;
  return `${expected}; ${name} '${texts[wrong]}' is none of ${min}-${max}, with a step of at most ${max - min + 1}`;
}

/**
 * The first time after `after` at which a schedule is due, in UTC unless it has a time zone; undefined
 * when there is none, as on 30 February. A schedule of more often than every five minutes is due at full
 * fives only, as GitHub runs it. Each local time is due once: one that the clock skips when the clock
 * goes on again, one that it repeats the first time. Errors: RangeError where cron or zone are invalid.
 */
export function nextScheduledTime(
  schedule: { readonly cron: string; readonly timezone?: string | undefined },
  after: Date,
): Date | undefined {
  const times = cronTimes(schedule.cron);
  if (times === undefined) throw new RangeError(`Invalid cron expression '${schedule.cron}'`);
  const interval = isTooFrequent(times) ? INTERVAL_MINUTES_MIN * MINUTE_MS : 1;
  // What came since the last full five is due at the next one.
  const afterMs = Math.floor(after.getTime() / interval) * interval;
  const next = nextTime(times, schedule.timezone, afterMs);
  return next === undefined ? undefined : new Date(Math.ceil(next / interval) * interval);
}

function nextTime(
  times: CronTimes,
  timezone: string | undefined,
  afterMs: number,
): number | undefined {
  if (timezone === undefined) return nextWallTime(times, afterMs);
  let wall = nextWallTime(times, wallTimeOf(afterMs, timezone));
  while (wall !== undefined) {
    const time = firstInstantOf(wall, timezone);
    if (time > afterMs) return time;
    // In an hour that the clock repeats: this one came before.
    wall = nextWallTime(times, wall);
  }
  return undefined;
}

/** The first minute after `wallMs` that matches; both as if the local clock were UTC's. */
function nextWallTime(times: CronTimes, wallMs: number): number | undefined {
  const from = Math.floor(wallMs / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
  const start = new Date(from);
  const [year, firstMonth] = [start.getUTCFullYear(), start.getUTCMonth()];
  for (let month = firstMonth; month <= firstMonth + 12 * WAIT_YEARS_MAX; month += 1) {
    if (!times.months.includes((month % 12) + 1)) continue;
    const end = Date.UTC(year, month + 1, 1);
    for (let day = Date.UTC(year, month, 1); day < end; day += DAY_MS) {
      const time = day + DAY_MS <= from ? undefined : nextOfDay(times, day, from);
      if (time !== undefined) return time;
    }
  }
  return undefined;
}

function nextOfDay(times: CronTimes, day: number, from: number): number | undefined {
  if (!isDay(times, new Date(day))) return undefined;
  for (const hour of times.hours) {
    for (const minute of times.minutes) {
      const time = day + (hour * 60 + minute) * MINUTE_MS;
      if (time >= from) return time;
    }
  }
  return undefined;
}

function isDay({ days, weekdays, isAnyDay, isAnyWeekday }: CronTimes, date: Date): boolean {
  const isInMonth = days.includes(date.getUTCDate());
  const isInWeek = weekdays.includes(date.getUTCDay());
  return isAnyDay || isAnyWeekday ? isInMonth && isInWeek : isInMonth || isInWeek;
}

/** Whether two runs would lie less than five minutes apart, in one hour or from one to the next. */
function isTooFrequent({ minutes, hours }: CronTimes): boolean {
  const hasNextHour = hours.some((hour) => hours.includes((hour + 1) % 24));
  const following = [...minutes.slice(1), hasNextHour ? (minutes[0] ?? 0) + 60 : Infinity];
  return minutes.some(
    (minute, index) => (following[index] ?? Infinity) - minute < INTERVAL_MINUTES_MIN,
  );
}

/** undefined where the text is no schedule. */
function cronTimes(cron: string): CronTimes | undefined {
  if (cron.length > CRON_CHARACTERS_MAX) return undefined;
  const texts = cron.trim().split(/ +/);
  const values = FIELDS.map((field, index) => valuesOf(texts[index] ?? '', field));
  const [minutes, hours, days, months, weekdays] = values;
  if (texts.length !== FIELDS.length) return undefined;
  if (!minutes || !hours || !days || !months || !weekdays) return undefined;
  const isAnyDay = texts[2] === '*';
  const isAnyWeekday = texts[4] === '*';
  return { minutes, hours, days, months, weekdays, isAnyDay, isAnyWeekday };
}

function valuesOf(text: string, field: CronField): readonly number[] | undefined {
  const found = new Set<number>();
  for (const part of text.split(',')) {
    const range = rangeOf(part, field);
    if (range === undefined) return undefined;
    for (let value = range.from; value <= range.to; value += range.step) found.add(value);
  }
  return [...found].toSorted((a, b) => a - b);
}

function rangeOf(
  part: string,
  field: CronField,
): { readonly from: number; readonly to: number; readonly step: number } | undefined {
  const { min, max } = field;
  const [range = '', stepText, ...rest] = part.split('/');
  const step = stepText === undefined ? 1 : wholeNumber(stepText);
  if (rest.length > 0 || !(step > 0 && step <= max - min + 1)) return undefined;
  if (range === '*') return { from: min, to: max, step };
  const [first = '', last, ...more] = range.split('-');
  const from = numberOf(first, field);
  const end = last === undefined ? from : numberOf(last, field);
  if (more.length > 0 || from === undefined || end === undefined || from > end) return undefined;
  return { from, to: last === undefined && stepText !== undefined ? max : end, step };
}

function numberOf(text: string, { min, max, names }: CronField): number | undefined {
  const name = names.indexOf(text.toLowerCase());
  const value = name >= 0 ? name + min : wholeNumber(text);
  return value >= min && value <= max ? value : undefined;
}

/** NaN for anything but digits. */
function wholeNumber(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}
