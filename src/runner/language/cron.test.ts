import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cronProblem, nextScheduledTime } from './cron.ts';
import { timezoneProblem } from './local-time.ts';

test.each([
  '* * * * *',
  '*/15 0-5 1,15 * *',
  '0 5 * jan-MAR mon-fri',
  '5/10 0 31 12 0',
  '0-59/2 */3 * * SUN',
  '20/15 * * * *',
  '*/60 */24 */31 */12 */7',
  '0   007 1-7 Apr/3 sun-2',
  '1,*,30-40/5 3/1 29 feb-2 5,SAT',
])('%s is a schedule', (cron) => {
  expect(cronProblem(cron)).toBeUndefined();
});

test.each([
  '',
  '* * * *',
  '* * * * * *',
  '60 * * * *',
  '* 24 * * *',
  '* * 0 * *',
  '* * 32 * *',
  '* * * 13 *',
  '* * * * 7',
  '*/0 * * * *',
  '*/61 * * * *',
  '7/90 * * * *',
  '0 */25 * * *',
  '0 0 5/32 * *',
  '0 0 1 */13 *',
  '0 0 * * 1/8',
  '5/x * * * *',
  '5/ * * * *',
  '/5 * * * *',
  '5/*/5 * * * *',
  '*-5 * * * *',
  '5-1 * * * *',
  '0 0 * * fri-mon',
  '0 0 * mon jan',
  '+5 * * * *',
  '1e1 * * * *',
  '1,,2 * * * *',
  '? * * * *',
  'L * * * *',
  '* * 1W * *',
  '* * LW * *',
  '* * * * +1',
  '* * * * 5L',
  '* * * * 1#2',
  '@daily',
  '1-2-3 * * * *',
  'x * * * *',
])('%s is none', (cron) => {
  expect(cronProblem(cron)).toContain('Invalid cron expression');
  expect(() => nextScheduledTime({ cron }, new Date())).toThrow(RangeError);
});

test('each value of each field by itself is a schedule, a list without end is none', () => {
  const all = (min: number, max: number): string =>
    Array.from({ length: max - min + 1 }, (_, index) => min + index).join(',');
  const every = [all(0, 59), all(0, 23), all(1, 31), all(1, 12), all(0, 6)].join(' ');
  expect(cronProblem(every)).toBeUndefined();
  expect(next(every, '2026-01-01T00:00:00Z')).toBe('2026-01-01T00:05:00.000Z');
  const endless = `${Array.from({ length: 500 }, () => '*').join(',')},59 * * * *`;
  expect(cronProblem(endless)).toContain('more than 1000 characters');
  expect(() => next(endless, '2026-01-01T00:00:00Z')).toThrow(RangeError);
});

test('what is wrong names the field', () => {
  expect(cronProblem('*/90 * * * *')).toMatch(
    /; minute '\*\/90' is none of 0-59, with a step of at most 60$/,
  );
  expect(cronProblem('0 0 * * 7')).toMatch(
    /; weekday '7' is none of 0-6, with a step of at most 7$/,
  );
  expect(cronProblem('* * * *')).toMatch(/weekday\)$/);
});

test('time zones', () => {
  expect(timezoneProblem('Europe/Berlin')).toBeUndefined();
  for (const zone of ['Mars/Olympus', '+01:00', '-0930', '']) {
    expect(timezoneProblem(zone)).toContain('Unknown time zone');
  }
});

const next = (cron: string, after: string, timezone?: string): string | undefined =>
  nextScheduledTime({ cron, timezone }, new Date(after))?.toISOString();

/** Times in a row, without seconds. */
function series(cron: string, after: string, count: number, timezone?: string): readonly string[] {
  const found: string[] = [];
  for (let at = after; found.length < count;) {
    at = next(cron, at, timezone) ?? '';
    found.push(at.slice(0, 16));
  }
  return found;
}

describe('next time', () => {
  test('in UTC and in a time zone, over the change of the clock', () => {
    expect(next('30 5 * * *', '2026-01-01T05:30:00Z')).toBe('2026-01-02T05:30:00.000Z');
    expect(next('30 5 * * 1', '2026-01-01T00:00:00Z')).toBe('2026-01-05T05:30:00.000Z');
    expect(next('0 6 * * *', '2026-03-28T12:00:00Z', 'Europe/Berlin')).toBe(
      '2026-03-29T04:00:00.000Z',
    );
    expect(next('0 6 * * *', '2026-03-27T12:00:00Z', 'Europe/Berlin')).toBe(
      '2026-03-28T05:00:00.000Z',
    );
  });

  test.each([
    ['20/15 * * * *', ['01-01T00:20', '01-01T00:35', '01-01T00:50', '01-01T01:20']],
    ['0 17/3 * * *', ['01-01T17:00', '01-01T20:00', '01-01T23:00', '01-02T17:00']],
    ['0 0 13/9 * *', ['01-13T00:00', '01-22T00:00', '01-31T00:00', '02-13T00:00']],
    ['0 0 1 SEP/2 *', ['09-01T00:00', '11-01T00:00']],
    ['0 0 * * THU/2', ['01-03T00:00', '01-08T00:00', '01-10T00:00']],
  ])('%s goes from its first value to the end of the field', (cron, times) => {
    const found = series(cron, '2026-01-01T00:00:00Z', times.length);
    expect(found).toEqual(times.map((time) => `2026-${time}`));
  });

  test('is never less than five minutes away from the one before', () => {
    expect(next('* * * * *', '2026-01-01T00:00:00Z')).toBe('2026-01-01T00:05:00.000Z');
    expect(next('* * * * *', '2026-01-01T00:03:20Z')).toBe('2026-01-01T00:05:00.000Z');
    expect(next('*/2 * * * *', '2026-01-01T00:05:00Z')).toBe('2026-01-01T00:10:00.000Z');
    expect(next('*/5 * * * *', '2026-01-01T00:05:00Z')).toBe('2026-01-01T00:10:00.000Z');
    // Due at the full five, also for who looks after the last of its minutes.
    expect(next('11-13 * * * *', '2026-01-01T00:14:00Z')).toBe('2026-01-01T00:15:00.000Z');
    expect(next('0,3 * * * *', '2026-01-01T00:00:00Z')).toBe('2026-01-01T00:05:00.000Z');
    expect(next('1,58 * * * *', '2026-01-01T00:50:00Z')).toBe('2026-01-01T01:00:00.000Z');
    expect(next('1,58 9 * * *', '2026-01-01T09:50:00Z')).toBe('2026-01-01T09:58:00.000Z');
  });

  test('there is none on a day that never comes, and 29 February may be eight years away', () => {
    expect(next('0 0 31 2 *', '2026-01-01T00:00:00Z')).toBeUndefined();
    expect(next('0 0 31 4/5 *', '2026-01-01T00:00:00Z', 'Asia/Tokyo')).toBeUndefined();
    expect(next('0 0 29 2 *', '2096-02-29T00:00:00Z')).toBe('2104-02-29T00:00:00.000Z');
    // Both days are given: either is enough.
    expect(next('0 0 30 2 3', '2026-01-01T00:00:00Z')).toBe('2026-02-04T00:00:00.000Z');
  });

  // Of the year 2026: when the clock goes on, when it goes back.
  test.each([
    ['Europe/Berlin', '30 2 * * *', '03-28T01:30 03-29T01:00 03-30T00:30'],
    ['Europe/Berlin', '30 2 * * *', '10-24T00:30 10-25T00:30 10-26T01:30'],
    ['Europe/Berlin', '0,20,40 2 * * *', '03-28T01:40 03-29T01:00 03-30T00:00'],
    ['Europe/Berlin', '15 * * * *', '03-29T00:15 03-29T01:00 03-29T01:15'],
    ['Europe/Berlin', '15 * * * *', '10-25T00:15 10-25T02:15 10-25T03:15'],
    ['Europe/Berlin', '0 3 * * *', '03-28T02:00 03-29T01:00 03-30T01:00'],
    ['America/New_York', '59 2 * * *', '03-07T07:59 03-08T07:00 03-09T06:59'],
    ['America/New_York', '10 1 * * *', '10-31T05:10 11-01T05:10 11-02T06:10'],
    ['Australia/Lord_Howe', '15 2 * * *', '10-02T15:45 10-03T15:30 10-04T15:15'],
    ['Australia/Lord_Howe', '45 1 * * *', '04-03T14:45 04-04T14:45 04-05T15:15'],
  ])('in %s, %s comes once a local time: %s', (timezone, cron, times) => {
    const [first = '', ...rest] = times.split(' ').map((time) => `2026-${time}`);
    expect(series(cron, `${first}:00Z`, rest.length, timezone)).toEqual(rest);
  });
});

// An independent reading of the same rules: it looks at each minute, and asks each field for its value.
const RANGES = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 6],
] as const;
const NAMES = [
  [],
  [],
  [],
  ' jan feb mar apr may jun jul aug sep oct nov dec'.split(' '),
  'sun mon tue wed thu fri sat'.split(' '),
];

function holds(field: string, index: number, value: number): boolean {
  const [min, max] = RANGES[index] ?? [0, 0];
  const number = (text: string): number =>
    /\d/.test(text) ? Number(text) : (NAMES[index] ?? []).indexOf(text.toLowerCase());
  return field.split(',').some((part) => {
    const [range = '', step] = part.split('/');
    const [from = '', to = step === undefined ? from : String(max)] = range.split('-');
    const low = range === '*' ? min : number(from);
    const high = range === '*' ? max : number(to);
    return value >= low && value <= high && (value - low) % Number(step ?? 1) === 0;
  });
}

function matches(cron: string, wallMs: number): boolean {
  const fields = cron.split(' ');
  const wall = new Date(wallMs);
  const values = [
    wall.getUTCMinutes(),
    wall.getUTCHours(),
    wall.getUTCDate(),
    wall.getUTCMonth() + 1,
    wall.getUTCDay(),
  ];
  const [minute, hour, day, month, weekday] = fields.map((field, index) =>
    holds(field, index, values[index] ?? 0),
  );
  const isDay = fields[2] === '*' || fields[4] === '*' ? day && weekday : day || weekday;
  return minute === true && hour === true && month === true && isDay === true;
}

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Each minute after `fromMs`, and the local times that the clock shows or passes then for the first time. */
function firstShown(
  fromMs: number,
  minutes: number,
  timezone: string,
): readonly (readonly [number, readonly number[]])[] {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: 'short',
  });
  const shownAt = (time: number): number => Date.parse(`${format.format(time).replace(' ', 'T')}Z`);
  // What came before the window may be shown again in it.
  let latest = shownAt(fromMs - 3 * HOUR_MS);
  const found: [number, number[]][] = [];
  for (let time = fromMs - 3 * HOUR_MS; time <= fromMs + minutes * MINUTE_MS; time += MINUTE_MS) {
    const fresh: number[] = [];
    for (; latest < shownAt(time); latest += MINUTE_MS) fresh.push(latest + MINUTE_MS);
    if (time > fromMs) found.push([time, fresh]);
  }
  return found;
}

/** Whether two times of a day are less than five minutes apart. */
function isFrequent(cron: string): boolean {
  const [minute = '', hour = ''] = cron.split(' ');
  const due = (at: number): boolean =>
    holds(minute, 0, at % 60) && holds(hour, 1, Math.floor(at / 60) % 24);
  return Array.from({ length: 24 * 60 }, (_, at) => at).some(
    (at) => due(at) && [1, 2, 3, 4].some((more) => due(at + more)),
  );
}

const anyPart = (index: number): fc.Arbitrary<string> => {
  const [min, max] = RANGES[index] ?? [0, 0];
  const value = fc.integer({ min, max });
  const name = (at: number): string =>
    index > 2 && at % 2 === 0 ? (NAMES[index]?.[at] ?? '') : `${at}`;
  const step = fc.option(fc.integer({ min: 1, max: max - min + 1 }), { nil: undefined });
  const range = fc.oneof(
    fc.constant('*'),
    value.map(name),
    fc.tuple(value, value).map(([a, b]) => `${name(Math.min(a, b))}-${name(Math.max(a, b))}`),
  );
  return fc.tuple(range, step).map(([text, by]) => (by === undefined ? text : `${text}/${by}`));
};
const anyField = (index: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant('*'),
    fc.array(anyPart(index), { minLength: 1, maxLength: 3 }).map((parts) => parts.join(',')),
  );
const anyCron = fc
  .tuple(anyField(0), anyField(1), anyField(2), anyField(3), anyField(4))
  .map((fields) => fields.join(' '));
/** Comes every few hours, so that a window of two days has some of its times. */
const denseCron = fc.tuple(anyField(0), anyField(1)).map((fields) => `${fields.join(' ')} * * *`);

// The middle of each window is a change of the clock, but for the first.
const WINDOWS = [
  ['UTC', '2028-02-28T12:00:00Z'],
  ['Europe/Berlin', '2026-03-29T01:00:00Z'],
  ['Europe/Berlin', '2026-10-25T01:00:00Z'],
  ['America/New_York', '2026-03-08T07:00:00Z'],
  ['America/New_York', '2026-11-01T06:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
  ['America/Santiago', '2026-04-05T03:00:00Z'],
  ['Africa/Cairo', '2026-04-23T22:00:00Z'],
  ['Asia/Kathmandu', '2026-12-31T18:15:00Z'],
] as const;

describe.each(WINDOWS)('in %s around %s', (timezone, middle) => {
  const fromMs = Date.parse(middle) - 24 * HOUR_MS;
  const shown = firstShown(fromMs, 48 * 60, timezone);

  test('the times are those of a look at every minute', () => {
    fc.assert(
      fc.property(fc.oneof(denseCron, anyCron), (cron) => {
        expect(cronProblem(cron)).toBeUndefined();
        const due = shown.flatMap(([time, walls]) =>
          walls.some((wall) => matches(cron, wall)) ? [time] : [],
        );
        const fives = due.map((time) => Math.ceil(time / (5 * MINUTE_MS)) * 5 * MINUTE_MS);
        const wanted = isFrequent(cron) ? [...new Set(fives)] : due;
        const found: number[] = [];
        let at = new Date(fromMs);
        for (;;) {
          const time = nextScheduledTime({ cron, timezone }, at);
          if (time === undefined || time.getTime() > fromMs + 48 * HOUR_MS) break;
          found.push(time.getTime());
          at = time;
        }
        expect(found).toEqual(wanted);
      }),
      { numRuns: 12 },
    );
  });
});

test('what is taken has a next time that matches, or never comes, from any time on', () => {
  const anyTime = fc.integer({ min: Date.UTC(1995, 0), max: Date.UTC(2105, 0) });
  const anyZone = fc.constantFrom(undefined, ...WINDOWS.map(([timezone]) => timezone));
  fc.assert(
    fc.property(anyCron, anyTime, anyZone, (cron, atMs, timezone) => {
      const time = nextScheduledTime({ cron, timezone }, new Date(atMs))?.getTime();
      const [, , days = '', months = '', weekdays] = cron.split(' ');
      const canCome = [...Array(366).keys()].some((day) => {
        // Of a leap year.
        const date = new Date(Date.UTC(2024, 0, 1 + day));
        return holds(months, 3, date.getUTCMonth() + 1) && holds(days, 2, date.getUTCDate());
      });
      if (time === undefined) expect([canCome, weekdays]).toEqual([false, '*']);
      else expect(time).toBeGreaterThan(atMs);
    }),
    { numRuns: 200 },
  );
});
