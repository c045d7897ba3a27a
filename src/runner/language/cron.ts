import { Cron } from 'croner';

const INTERVAL_MINUTES_MIN = 5;
const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const WEEKDAYS = 'sun mon tue wed thu fri sat'.split(' ');

type CronField = { readonly min: number; readonly max: number; readonly names: readonly string[] };
const FIELDS: readonly CronField[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: WEEKDAYS },
];

/**
 * What is wrong with a schedule: five fields of numbers, names of months and weekdays, lists, ranges and
 * steps; at most one run every five minutes. Source: GitHub's documentation of `on.schedule`.
 */
export function cronProblem(cron: string): string | undefined {
  const parts = cron.trim().split(/ +/);
  const isValid =
    parts.length === FIELDS.length &&
    FIELDS.every((field, index) => isField(parts[index] ?? '', field));
  return isValid
    ? undefined
    : "Invalid cron expression. Expected format: '* * * * *' (minute hour day month weekday)";
}

/** What is wrong with a time zone of the IANA database. */
export function timezoneProblem(timezone: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions();
    return timeZone === '' ? `Unknown time zone '${timezone}'` : undefined;
  } catch {
    return `Unknown time zone '${timezone}'`;
  }
}

/**
 * The first time after `after` at which a schedule is due, in UTC unless it has a time zone; undefined
 * when there is none. A schedule of more often than every five minutes is due at full fives only, as
 * GitHub runs it. The cron must be valid.
 */
export function nextScheduledTime(
  schedule: { readonly cron: string; readonly timezone?: string | undefined },
  after: Date,
): Date | undefined {
  const cron = new Cron(schedule.cron.trim(), {
    timezone: schedule.timezone ?? 'UTC',
    mode: '5-part',
    paused: true,
  });
  const next = cron.nextRun(after);
  if (next === null || !isTooFrequent(schedule.cron)) {
    return next ?? undefined;
  }
  const step = INTERVAL_MINUTES_MIN * 60_000;
  const earliest = new Date(Math.floor(after.getTime() / step + 1) * step);
  // Due at the first full five minutes from the next time on.
  return new Date(Math.max(earliest.getTime(), Math.ceil(next.getTime() / step) * step));
}

/** Whether two runs would lie less than five minutes apart. */
function isTooFrequent(cron: string): boolean {
  const minutes = new Cron(cron.trim(), { timezone: 'UTC', mode: '5-part', paused: true });
  const [first, second] = minutes.nextRuns(2, new Date('2024-01-01T00:00:00Z'));
  return (
    first !== undefined &&
    second !== undefined &&
    second.getTime() - first.getTime() < INTERVAL_MINUTES_MIN * 60_000
  );
}

function isField(text: string, field: CronField): boolean {
  return text.split(',').every((part) => isPart(part, field));
}

function isPart(text: string, field: CronField): boolean {
  const [range = '', step, ...rest] = text.split('/');
  if (rest.length > 0 || (step !== undefined && !(/^\d+$/.test(step) && Number(step) > 0))) {
    return false;
  }
  if (range === '*') {
    return true;
  }
  const [first = '', last, ...more] = range.split('-');
  const from = numberOf(first, field);
  const to = last === undefined ? from : numberOf(last, field);
  return more.length === 0 && from !== undefined && to !== undefined && from <= to;
}

function numberOf(text: string, field: CronField): number | undefined {
  const name = field.names.indexOf(text.toLowerCase());
  if (name >= 0) {
    return name + field.min;
  }
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= field.min && value <= field.max ? value : undefined;
}
