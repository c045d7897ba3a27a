import { readFileSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { AppError } from '../shared/app-error.ts';
import { damageIn } from './pg-errors.ts';
import type { StoreReason } from './store-reason.ts';

/** Of the log of a server that could not work: more is in the file. */
const LINES_MAX = 8;
/** What the log says of every start and stop. */
const ORDINARY =
  /LOG: {2}(?:starting PostgreSQL|listening on|database system (?:is|was) (?:shut down|ready)|received |aborting any|background worker|shutting down|terminating any other|all server processes)/;

/** A log, and the byte from which on it counts. */
export type LogPosition = { readonly path: string; readonly start: number };

/** Where a log ends now: what a server says later lies behind it. */
export function endOfLog(path: string): LogPosition {
  return { path, start: statSync(path, { throwIfNoEntry: false })?.size ?? 0 };
}

/** `problem`, with what the log says of it. */
export function logError(
  problem: string,
  log: LogPosition,
  cause?: unknown,
): AppError<StoreReason> {
  const message = `${problem}; its log ${log.path} says:\n${reporting(log)}`;
  return new AppError<StoreReason>('STORE_UNAVAILABLE', message, {}, cause);
}

function reporting({ path, start }: LogPosition): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return ''; // Nothing was logged yet.
  }
  // A log that was set aside begins anew.
  const text = bytes.subarray(start > bytes.length ? 0 : start).toString('utf8');
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !ORDINARY.test(line));
  return lines.slice(-LINES_MAX).join('\n');
}

/** `problem` of a cluster, with what an operator can do where its files are damaged. */
export function damageError(
  problem: string,
  dataDirectory: string,
  cause?: unknown,
): AppError<StoreReason> {
  return new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    `${problem}\n${remedyOf(dataDirectory)}`,
    { dataDirectory },
    cause,
  );
}

/** Where a data directory (GATEWAY_DATA_DIR) has its cluster. */
export function clusterDirectory(dataDirectory: string): string {
  return join(resolve(dataDirectory), 'postgres');
}

function remedyOf(dataDirectory: string): string {
  return [
    `If files of ${dataDirectory} are damaged:`,
    `  - put a backup of ${dirname(dataDirectory)} in its place (docs/operations.md, Restore), or`,
    `  - move ${dataDirectory} away: the next start then begins with an empty database.`,
  ].join('\n');
}

/**
 * What a start failed with; where PostgreSQL found damaged files, as an error that says what to do. `dataDirectory`
 * is the one of the embedded server; undefined: the database is that of DATABASE_URL.
 */
export function explainDamage(error: unknown, dataDirectory: string | undefined): unknown {
  const isExplained = error instanceof AppError && 'dataDirectory' in error.metadata;
  const damage = isExplained ? undefined : damageIn(error);
  if (damage === undefined) return error;
  const problem = `PostgreSQL found damaged data: ${damage.message}`;
  if (dataDirectory !== undefined) {
    return damageError(problem, clusterDirectory(dataDirectory), error);
  }
  return new AppError<StoreReason>(
    'STORE_UNAVAILABLE',
    `${problem}\nRestore the database of DATABASE_URL from a backup (docs/operations.md, Restore).`,
    {},
    error,
  );
}
