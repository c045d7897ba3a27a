import { askNumber, askText, type CelQuestion, Draft, type Draw, quoted } from './draft.ts';

const TIMESTAMP_EDGES = [
  '2024-01-01t00:00:00z',
  '2024-01-01T00:00:00',
  '2024-01-01 00:00:00Z',
  '2024-01-01T00:00:60Z',
  '2024-01-01T24:00:00Z',
  '2024-01-01T1:00:00Z',
  '2024-1-01T01:00:00Z',
  '2024-01-01T00:00:00,5Z',
  '2024-01-01T00:00:00.Z',
  '2024-01-01T00:00Z',
  '2024-01-01',
  '2024-02-30T00:00:00Z',
  '2023-02-29T00:00:00Z',
  '2024-02-29T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00Z',
  '0001-01-01T00:00:00+00:01',
  '0001-01-01T00:00:00-00:01',
  '9999-12-31T23:59:59.999999999Z',
  '9999-12-31T23:59:59-00:01',
  '9999-12-31T23:59:59+00:01',
  '10000-01-01T00:00:00Z',
  '2024-01-01T00:00:00+24:00',
  '2024-01-01T00:00:00+23:59',
  '2024-01-01T00:00:00+14:60',
  '2024-01-01T00:00:00+0100',
  '2024-01-01T00:00:00+01',
  '2024-01-01T00:00:00-00:00',
  '2024-01-01T00:00:00+00:00',
  '2024-01-01T00:00:00.123456789123Z',
  '2024-01-01T00:00:00.9999999999Z',
  '-2024-01-01T00:00:00Z',
  '1969-12-31T23:59:59.5Z',
  ' 2024-01-01T00:00:00Z',
  '2024-01-01T00:00:00Z ',
  '',
];
const OFFSETS = [
  'Z',
  'Z',
  'Z',
  '+00:00',
  '+02:00',
  '-07:00',
  '+05:30',
  '-00:30',
  '+14:00',
  '-12:00',
];
const ZONES =
  'UTC|+02:00|-07:00|-7:00|+2:00|02:00|2:00|+05:30|-05:30|-00:30|+00:00|+14:00|-14:00|+24:00|+23:59|+25:00|+99:99|+1:5|+0200|+02||Z|GMT|utc|Local|America/New_York|Europe/Berlin|Asia/Kolkata|Etc/GMT+5|Nowhere/Land|+02:00:00|++2:00| +02:00|+02:|:30|+:30|+02:60|+02:-5'.split(
    '|',
  );
const GETTERS =
  'getFullYear getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds getMilliseconds'.split(
    ' ',
  );
const DURATION_GETTERS = 'getHours getMinutes getSeconds getMilliseconds'.split(' ');
const DURATIONS =
  '0 0s -0s +0s 1s -1s +5s 1.5s -1.5s .5s 1.s -.5s . -.s s 1m30.5s 90s 90m 1h30m -1h30m5s 36h 100ms 1500ms 1us 1µs 1μs 1ns 999999999ns 0.000000001s 0.0000000001s 0.1234567891s 1.123456789123s -0.000000001s 1h1h 1s1h 1d 1w 1S 1H 1 -1 - + 1e3s 1e-3s 1_000s 0x1s 1:30 PT1S 1h-5m --1s 9223372036s 9223372036.854775807s 9223372036.854775808s -9223372036.854775808s -9223372036.854775809s 2562047h 2562047h47m16.854775807s 2562048h 9223372037s 315576000000s 315576000001s 99999999999999999999s 1.0000000000000000000000001h 0.5ns 1.5ns 0.3333333333h 1,5s'.split(
    ' ',
  );
const ODD_DURATIONS = ['', ' ', ' 1s', '1s ', '1 s', '1h 30m', '1\u00a0s', '١s'];
const UNIT_SECONDS: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9 };

function timestampText(draw: Draw): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  const year = draw.pick(['2024', '2023', '1999', '1970', '1969', '2038', '1900', '0001', '9999']);
  const day = `${two(1 + draw.below(12))}-${two(1 + draw.below(28))}`;
  const time = `${two(draw.below(24))}:${two(draw.below(60))}:${two(draw.below(60))}`;
  const digits = draw.pick([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const fraction = draw.chance(0.3)
    ? '1'.padEnd(digits, '0').slice(0, digits)
    : draw.digits(digits);
  return `${year}-${day}T${time}${digits === 0 ? '' : `.${fraction}`}${draw.pick(OFFSETS)}`;
}

function timestampOf(draft: Draft, text: string): string {
  return draft.draw.chance(0.5)
    ? draft.parameter('timestamp', text)
    : `timestamp(${draft.text(text)})`;
}

function durationOf(draft: Draft, text: string): string {
  return draft.draw.chance(0.5)
    ? draft.parameter('duration', text)
    : `duration(${draft.text(text)})`;
}

/** How one and another printer would write a timestamp. */
function printedTimestamps(text: string): string[] {
  const match = /^(.*?)(?:\.([0-9]+))?(Z|[+-][0-9:]+)$/.exec(text);
  if (match === null) return [text];
  const [, base = '', fraction = '', offset = ''] = match;
  const short = fraction.replace(/0+$/, '');
  const date = new Date(`${base}${offset}`);
  const utc = Number.isNaN(date.getTime()) ? base : date.toISOString().slice(0, 19);
  const nine = fraction.slice(0, 9).padEnd(9, '0');
  const threes = short === '' ? '' : nine.slice(0, Math.ceil(short.length / 3) * 3);
  const dotted = (digits: string): string => (digits === '' ? '' : `.${digits}`);
  const own = offset === '+00:00' ? 'Z' : offset;
  return [
    `${base}${dotted(short)}${own}`,
    `${base}${dotted(short)}${own}`,
    `${utc}${dotted(short)}Z`,
    `${utc}${dotted(threes)}Z`,
    `${base}${dotted(threes)}${own}`,
    `${utc}.${nine}Z`,
  ];
}

/** Parts of a date whose UTC fields are those of the place. */
function partsOf(date: Date): Record<string, number> {
  const start = Date.UTC(date.getUTCFullYear(), 0, 1);
  return {
    getFullYear: date.getUTCFullYear(),
    getMonth: date.getUTCMonth(),
    getDate: date.getUTCDate(),
    getDayOfMonth: date.getUTCDate() - 1,
    getDayOfWeek: date.getUTCDay(),
    getDayOfYear: Math.floor((date.getTime() - start) / 86_400_000),
    getHours: date.getUTCHours(),
    getMinutes: date.getUTCMinutes(),
    getSeconds: date.getUTCSeconds(),
    getMilliseconds: date.getUTCMilliseconds(),
  };
}

/** A part of a timestamp, in UTC, at its own offset and at that of the zone that is asked for. */
export function timestampPart(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const text = draw.chance(0.9) ? timestampText(draw) : draw.pick(TIMESTAMP_EDGES);
  const zone = draw.pick(ZONES);
  const hasZone = draw.chance(0.5);
  const getter = draw.pick(GETTERS);
  const made = `${timestampOf(draft, text)}.${getter}(${hasZone ? draft.text(zone) : ''})`;
  const at = Date.parse(text);
  const minutes = /^([+-]?)([0-9]{1,2}):([0-9]{1,2})$/;
  const offsetOf = (place: string): number => {
    const [, sign, hours = '0', rest = '0'] = minutes.exec(place) ?? [];
    return (Number(hours) * 60 + Number(rest)) * (sign === '-' ? -1 : 1);
  };
  const offsets = hasZone ? [offsetOf(zone), offsetOf(zone), 0] : [0, offsetOf(text.slice(-6))];
  const plausible = offsets
    .map((offset) => partsOf(new Date(at + offset * 60_000))[getter] ?? 0)
    .map((part) => (Number.isNaN(part) ? '0' : String(part)));
  const topic = hasZone ? 'part of a timestamp in a zone' : 'part of a timestamp';
  return draft.question(topic, askNumber(draw, made, plausible));
}

/** A part of a duration: of the whole, or what is left below the next unit. */
export function durationPart(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const text = draw.pick(DURATIONS);
  const getter = draw.pick(DURATION_GETTERS);
  const seconds = secondsOf(text);
  const whole = { getHours: 3600, getMinutes: 60, getSeconds: 1, getMilliseconds: 0.001 };
  const value = seconds / whole[getter as keyof typeof whole];
  const plausible = [value, value, value % 1000, value % 60, Math.floor(value) + 0]
    .map(Math.trunc)
    .map((one) => (Number.isSafeInteger(one) ? String(one + 0) : '0'));
  const made = `${durationOf(draft, text)}.${getter}()`;
  return draft.question('part of a duration', askNumber(draw, made, plausible));
}

function secondsOf(text: string): number {
  let seconds = 0;
  for (const [, number = '', unit = ''] of text.matchAll(/([0-9.]+)(ns|us|ms|h|m|s)/g)) {
    seconds += Number(number) * (UNIT_SECONDS[unit] ?? 0);
  }
  return text.startsWith('-') ? -seconds : seconds;
}

/** string(), int() and equality of timestamps. */
export function printedTimestamp(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const text = draw.chance(0.7) ? timestampText(draw) : draw.pick(TIMESTAMP_EDGES);
  const made = timestampOf(draft, text);
  const seconds = Math.floor(Date.parse(text) / 1000);
  const plausible = Number.isNaN(seconds) ? ['0'] : [String(seconds), String(seconds + 1)];
  switch (draw.below(6)) {
    case 0:
      return draft.question('int of a timestamp', askNumber(draw, `int(${made})`, plausible));
    case 1: {
      const asked = `${made} == timestamp(${draw.pick(plausible)})`;
      return draft.question('timestamp of an int', asked);
    }
    case 2: {
      const other = timestampOf(draft, draw.pick([text, ...printedTimestamps(text)]));
      const sign = draw.pick(['==', '!=', '<', '<=', '>', '>=']);
      return draft.question('comparison of timestamps', `${made} ${sign} ${other}`);
    }
    default: {
      const asked = askText(draw, `string(${made})`, printedTimestamps(text));
      return draft.question('string of a timestamp', asked);
    }
  }
}

/** string() and equality of durations. */
export function printedDuration(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const text = draw.chance(0.9) ? draw.pick(DURATIONS) : draw.pick(ODD_DURATIONS);
  const made = durationOf(draft, text);
  const seconds = secondsOf(text);
  if (draw.chance(0.6)) {
    const printed = [`${seconds}s`, text, `${seconds.toFixed(3)}s`, `${Math.trunc(seconds)}s`];
    return draft.question('string of a duration', askText(draw, `string(${made})`, printed));
  }
  const other = durationOf(
    draft,
    draw.pick([`${Math.trunc(seconds)}s`, text, draw.pick(DURATIONS)]),
  );
  const sign = draw.pick(['==', '!=', '<', '<=', '>', '>=']);
  return draft.question('comparison of durations', `${made} ${sign} ${other}`);
}

/** Sums and differences of both, with what goes beyond their range. */
export function timeArithmetic(draw: Draw): CelQuestion {
  const draft = new Draft(draw);
  const stamp = (): string => {
    return timestampOf(draft, draw.chance(0.6) ? timestampText(draw) : draw.pick(TIMESTAMP_EDGES));
  };
  const span = (): string => durationOf(draft, draw.pick(DURATIONS));
  const seconds = quoted(`${draw.pick(['', '-'])}${draw.digits(1 + draw.below(12))}s`);
  const topic = 'arithmetic of times';
  switch (draw.below(8)) {
    case 0:
      return draft.question(topic, `${stamp()} + ${span()} > ${stamp()}`);
    case 1:
      return draft.question(topic, `${span()} + ${stamp()} > ${stamp()}`);
    case 2:
      return draft.question(topic, `${stamp()} - ${span()} < ${stamp()}`);
    case 3:
      return draft.question(topic, `${stamp()} - ${stamp()} < ${span()}`);
    case 4:
      return draft.question(topic, `${span()} + ${span()} > ${span()}`);
    case 5:
      return draft.question(topic, `${span()} - ${span()} == ${span()}`);
    case 6:
      return draft.question(topic, `${stamp()} + duration(${seconds}) != ${stamp()}`);
    default: {
      const text = timestampText(draw);
      const made = `${timestampOf(draft, text)} + duration("0s")`;
      return draft.question(topic, askText(draw, `string(${made})`, printedTimestamps(text)));
    }
  }
}
