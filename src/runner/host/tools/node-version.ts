import schedule from 'node-releases/data/release-schedule/release-schedule.json' with { type: 'json' };
import { AppError } from '../../../shared/app-error.ts';
import { newestWish, type VersionWish, wishFor } from './tool-version.ts';

const FIELD = 'node-version';
const NEWEST: ReadonlySet<string> = new Set(['latest', 'current', 'node', '*']);

type ReleaseLine = {
  readonly start?: string;
  readonly lts?: string;
  readonly codename?: string;
};

/**
 * What `node-version` asks for: a version, a range, `lts/*`, `lts/iron`, `lts/-1`, `latest`; in the forms
 * of `.nvmrc` too. Which lines have long-term support is read from the schedule of the Node.js project.
 * Errors: INVALID_VALUE, for nightly builds as well.
 */
export function nodeWish(text: string, nowMs: number): VersionWish {
  const wanted = text.trim().replace(/^v(?=\d)/i, '');
  if (NEWEST.has(wanted.toLowerCase())) return newestWish(text);
  if (/-(?:nightly|v8-canary|canary|test)/.test(wanted)) {
    const why = 'builds that are no releases are in no package registry';
    throw new AppError('INVALID_VALUE', `Node '${text}' cannot be had: ${why}`, { field: FIELD });
  }
  if (/^lts(?:\/|$)/i.test(wanted)) {
    return wishFor(text, `${ltsMajor(text, wanted.slice(4), nowMs)}.x`, FIELD);
  }
  return wishFor(text, wanted, FIELD);
}

/** `alias`: `*`, '' , a code name or `-n`, the n-th line before the newest. */
function ltsMajor(text: string, alias: string, nowMs: number): number {
  const lines = ltsLines(nowMs);
  const back = /^-(\d+)$/.exec(alias)?.[1];
  const found =
    back !== undefined || alias === '' || alias === '*'
      ? lines[Number(back ?? 0)]
      : lines.find(({ name }) => name.toLowerCase() === alias.toLowerCase());
  if (found !== undefined) return found.major;
  const names = lines.map(({ name }) => name.toLowerCase()).join(', ');
  const message = `'${text}' is no line of Node with long-term support; there are ${names}`;
  throw new AppError('INVALID_VALUE', message, { field: FIELD });
}

/** Newest first. */
function ltsLines(nowMs: number): { readonly major: number; readonly name: string }[] {
  const lines: { major: number; name: string }[] = [];
  for (const [key, line] of Object.entries<ReleaseLine>(schedule)) {
    if (line.lts === undefined || Date.parse(line.lts) > nowMs) continue;
    lines.push({ major: Number(key.slice(1)), name: line.codename ?? '' });
  }
  return lines.toSorted((a, b) => b.major - a.major);
}
