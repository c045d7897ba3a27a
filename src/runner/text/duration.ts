const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** A duration for people: `0.4s`, `12s`, `3m 05s`, `2h 07m`. */
export function durationText(ms: number): string {
  if (ms < 10 * SECOND_MS) return `${(Math.max(0, ms) / SECOND_MS).toFixed(1)}s`;
  if (ms < MINUTE_MS) return `${Math.round(ms / SECOND_MS)}s`;
  if (ms < HOUR_MS) {
    return `${Math.floor(ms / MINUTE_MS)}m ${two(Math.floor((ms % MINUTE_MS) / SECOND_MS))}s`;
  }
  return `${Math.floor(ms / HOUR_MS)}h ${two(Math.floor((ms % HOUR_MS) / MINUTE_MS))}m`;
}

/** A number of bytes for people: `10 B`, `1.5 kB`, `20 MB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const text = unit === 0 || value >= 100 ? Math.round(value).toString() : value.toFixed(1);
  return `${text} ${units[unit] ?? ''}`;
}

function two(value: number): string {
  return value.toString().padStart(2, '0');
}
