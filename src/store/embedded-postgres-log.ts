import { closeSync, copyFileSync, fstatSync, openSync, readSync, truncateSync } from 'node:fs';
import type { LogPosition } from './embedded-postgres-damage.ts';
import { LOG_BYTES_MAX } from './embedded-postgres-process.ts';
import type { StoreLog } from './store-log.ts';

/** What each line of the server's log begins with: time, process and SQLSTATE. */
export const LOG_LINE_PREFIX = '%m [%p] %e ';

const LOOK_MS = 1_000;
/** The most that one look reads; the rest is left to the file. */
const BYTES_MAX = 64 * 1024;
const LINES_MAX = 10;
const TEXT_MAX = 500;
const TROUBLE = /^\S+ \S+ \S+ \[(\d+)\] ([0-9A-Z]{5}) (WARNING|ERROR|FATAL|PANIC): {2}(.*)$/;
/**
 * Errors that whoever asked gets, and that often quote them: bad data (22), violated constraints (23), and refusals by functions of
 * ours (GH).
 */
const OF_CALLERS = /^(?:22|23|GH)/;

/** Whoever follows a log, until `stop`, which looks once more. */
export type FollowedLog = { readonly stop: () => void };

/**
 * Passes on what the server reports from `start` on: `postgres_reports` with its severity, SQLSTATE and words, without the statement.
 * Looks once a second; at most ten lines a look, the last of which counts those left out. A log of more than 8 MiB begins anew, and
 * what it was is kept beside it. Never throws.
 */
export function followServerLog({ path, start }: LogPosition, log: StoreLog): FollowedLog {
  let at = start;
  const look = (): void => {
    const { text, end } = linesBehind(path, at);
    at = end > LOG_BYTES_MAX && isSetAside(path) ? 0 : end;
    const found = text.split('\n').flatMap((line) => troubleIn(line) ?? []);
    // Of many the worst are passed on.
    if (found.length > LINES_MAX) found.sort((a, b) => rankOf(b) - rankOf(a));
    for (const [index, fields] of found.slice(0, LINES_MAX).entries()) {
      const omitted = index === LINES_MAX - 1 ? found.length - LINES_MAX : 0;
      const level = fields.severity === 'WARNING' ? 'warn' : 'error';
      log(level, 'postgres_reports', omitted > 0 ? { ...fields, omitted } : fields);
    }
  };
  const timer = setInterval(look, LOOK_MS).unref();
  return {
    stop: () => {
      clearInterval(timer);
      look();
    },
  };
}

type Trouble = {
  readonly severity: string;
  readonly sqlstate: string;
  readonly text: string;
  readonly pid: number;
};

const SEVERITIES = ['WARNING', 'ERROR', 'FATAL', 'PANIC'];

function rankOf({ severity }: Trouble): number {
  return SEVERITIES.indexOf(severity);
}

function troubleIn(line: string): Trouble | undefined {
  const [, pid = '', sqlstate = '', severity = '', text = ''] = TROUBLE.exec(line) ?? [];
  if (pid === '' || OF_CALLERS.test(sqlstate)) return undefined;
  return { severity, sqlstate, text: text.slice(0, TEXT_MAX), pid: Number(pid) };
}

/** The server goes on writing at the end of the file that it has open, so that it is emptied, not replaced. */
function isSetAside(path: string): boolean {
  try {
    copyFileSync(path, `${path}.1`);
    truncateSync(path);
    return true;
  } catch {
    return false; // The disk is full, say; the next look tries again.
  }
}

/** The whole lines behind `at`, and where they end; of more than 64 KiB the last. */
function linesBehind(path: string, at: number): { readonly text: string; readonly end: number } {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    const { size } = fstatSync(file);
    // One that was set aside begins anew.
    const from = Math.max(size < at ? 0 : at, size - BYTES_MAX);
    const bytes = Buffer.alloc(size - from);
    const read = readSync(file, bytes, 0, bytes.length, from);
    const length = bytes.subarray(0, read).lastIndexOf(0x0a) + 1;
    return { text: bytes.toString('utf8', 0, length), end: from + length };
  } catch {
    return { text: '', end: at }; // It was removed, or the disk fails, which the server says itself.
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
