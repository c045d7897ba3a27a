const DAY_MS = 24 * 60 * 60_000;
const MINUTE_MS = 60_000;
/** Zones whose formatter is kept, which costs more to make than to use. */
const FORMATS_MAX = 100;

const formats = new Map<string, Intl.DateTimeFormat>();

/** What is wrong with a time zone of the IANA database. */
export function timezoneProblem(timezone: string): string | undefined {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: timezone }).resolvedOptions();
    // An offset (`+01:00`) is taken there and is no zone of that database.
    return timeZone === '' || /^[+-]/.test(timeZone)
      ? `Unknown time zone '${timezone}'`
      : undefined;
  } catch {
    return `Unknown time zone '${timezone}'`;
  }
}

/**
 * What the clock of a zone shows at an instant (epoch ms), as the epoch ms at which UTC's clock shows it.
 * Errors: RangeError for an unknown zone.
 */
export function wallTimeOf(timeMs: number, timezone: string): number {
  return timeMs + offsetAt(timeMs, timezone);
}

/**
 * The first instant (epoch ms) at which the clock of a zone shows a time, which is as `wallTimeOf` gives
 * it; for one that the clock skips, the instant at which it goes on. Errors: RangeError likewise.
 */
export function firstInstantOf(wallMs: number, timezone: string): number {
  // No zone is a day from UTC, and none changes twice within two days.
  const before = offsetAt(wallMs - DAY_MS, timezone);
  const after = offsetAt(wallMs + DAY_MS, timezone);
  const early = wallMs - Math.max(before, after);
  const late = wallMs - Math.min(before, after);
  if (wallTimeOf(early, timezone) === wallMs) return early;
  if (wallTimeOf(late, timezone) === wallMs) return late;
  let [low, high] = [early, late];
  while (high - low > MINUTE_MS) {
    const middle = low + Math.ceil((high - low) / 2 / MINUTE_MS) * MINUTE_MS;
    if (offsetAt(middle, timezone) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** What the clock of a zone is ahead of UTC, in ms. */
function offsetAt(timeMs: number, timezone: string): number {
  const parts = formatOf(timezone).formatToParts(timeMs);
  const get = (type: Intl.DateTimeFormatPartTypes): number =>
    Number(parts.find((part) => part.type === type)?.value);
  const wallMs = Date.UTC(
    get('year'),
    get('month') - 1,
    get('day'),
    get('hour'),
    get('minute'),
    get('second'),
  );
  return wallMs - Math.floor(timeMs / 1_000) * 1_000;
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  if (formats.size >= FORMATS_MAX) formats.clear();
  formats.set(timeZone, format);
  return format;
}
