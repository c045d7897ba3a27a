import { durationText } from '../../text/duration.ts';
import { html, type SafeHtml } from './html.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

type Timed = {
  readonly startedAt?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly durationMs?: number | undefined;
};

/** How long something took; of what goes on, how long it has, which the browser counts on. */
export function elapsed(thing: Timed, now: number): SafeHtml {
  const { startedAt, completedAt, durationMs } = thing;
  if (durationMs !== undefined) return html`<span class="time">${durationText(durationMs)}</span>`;
  if (startedAt === undefined || completedAt !== undefined) return html``;
  const text = durationText(now - Date.parse(startedAt));
  return html`<span class="time" data-since="${startedAt}">${text}</span>`;
}

/** When something was, as people say it; the exact time is in the title. */
export function ago(at: string, now: number): SafeHtml {
  return html`<time datetime="${at}" title="${at}" data-ago="${at}">${agoText(at, now)}</time>`;
}

export function agoText(at: string, now: number): string {
  const ms = now - Date.parse(at);
  if (ms < MINUTE_MS) return 'just now';
  if (ms < HOUR_MS) return count(Math.floor(ms / MINUTE_MS), 'minute');
  if (ms < DAY_MS) return count(Math.floor(ms / HOUR_MS), 'hour');
  return count(Math.floor(ms / DAY_MS), 'day');
}

/** When something will be; the exact time is in the title. */
export function ahead(at: string, now: number): SafeHtml {
  return html`<time datetime="${at}" title="${at}" data-ahead="${at}">${aheadText(at, now)}</time>`;
}

export function aheadText(at: string, now: number): string {
  const ms = Date.parse(at) - now;
  if (ms < MINUTE_MS) return 'within a minute';
  if (ms < HOUR_MS) return `in ${amount(Math.floor(ms / MINUTE_MS), 'minute')}`;
  if (ms < DAY_MS) return `in ${amount(Math.floor(ms / HOUR_MS), 'hour')}`;
  return `in ${amount(Math.floor(ms / DAY_MS), 'day')}`;
}

function count(value: number, unit: string): string {
  return `${amount(value, unit)} ago`;
}

function amount(value: number, unit: string): string {
  return `${value} ${unit}${value === 1 ? '' : 's'}`;
}
