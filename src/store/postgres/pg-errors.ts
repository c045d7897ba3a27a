import { AppError } from '../../shared/app-error.ts';
import type { SharedReason } from '../../shared/reasons.ts';

/** The only place that knows SQLSTATE codes and the driver's error texts. */

/** Meaning of a failed statement to its caller. */
export type PgFailure =
  /** Nothing was applied; the same transaction may succeed when run again. */
  | 'retryable'
  /** A unique, exclusion or foreign key constraint was violated; `constraint` names it. */
  | 'conflict'
  /** The data itself: too long, malformed, a check constraint. */
  | 'invalid'
  /** The server refused or ended the session. Of a commit in flight the outcome is unknown. */
  | 'unavailable'
  /** The registration under which it was sent has ended, or may not write yet: nothing was applied. */
  | 'fenced'
  /** The rules of tuples have changed since they were checked: nothing was applied. */
  | 'outdated'
  /** The server will not do it, for a reason that an operator must end (`refusalIn`): nothing was applied. */
  | 'refused'
  /** statement_timeout, or a cancelled statement: nothing was applied. */
  | 'timeout'
  /** Anything else: a mistake of ours. */
  | 'unknown';

/** Why a server that answers will not do what it is asked, until an operator does something about it. */
export const PG_REFUSALS = ['disk_full', 'read_only', 'rights_missing', 'login_refused'] as const;
export type PgRefusal = (typeof PG_REFUSALS)[number];

const RETRYABLE = new Set(['40001', '40P01', '55P03', '40003']);
/** Reported by their SQLSTATE alone, in whatever language: nothing was done, at a connect or by a statement. */
const REFUSALS: ReadonlyMap<string, PgRefusal> = new Map([
  ['25006', 'read_only'],
  ['42501', 'rights_missing'],
]);
/**
 * disk_full: the same SQLSTATE for a table that cannot grow, which is an ERROR and applies nothing, and for the log that cannot, which is
 * a PANIC, after which the outcome of a commit is not known. Only the severity distinguishes them, whose word the driver has in the
 * language of the server. A word that is not known is taken for the worse.
 */
const DISK_FULL = '53100';
const APPLIES_NOTHING = 'ERROR';
/** States of a refused connect, before anything was sent: a role without login among them. */
const LOGIN_REFUSALS = new Set(['28000', '28P01']);
const TIMEOUTS = new Set(['57014', '25P03', '25P04']);
/** Class 08 (connection), 57P (ended by the operator or a crash), 53 (out of resources). */
const UNAVAILABLE = /^(?:08|57P|53|58|F0|XX)/;
const SYSTEM_UNAVAILABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNABORTED',
]);
const DRIVER_UNAVAILABLE =
  /Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect|Connection ended unexpectedly|timeout expired|Query read timeout|Client was closed|connection is not queryable/i;

/** data_corrupted and index_corrupted. */
const DAMAGE = new Set(['XX001', 'XX002']);
const DRIVER_SILENT =
  /timeout exceeded when trying to connect|connection timeout|timeout expired|Query read timeout/i;

/** State of gatehouse_refuse (migrations/0001_authorization.sql). */
const FENCED = 'GH002';
/** State of gatehouse_refuse_rules (migrations/0001_authorization.sql). */
const OUTDATED = 'GH003';

/** Five characters, or '' for errors that did not come from the server. */
function sqlState(error: unknown): string {
  const code = errorCode(error);
  return /^[0-9A-Z]{5}$/.test(code) && 'severity' in (error as object) ? code : '';
}

function errorCode(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}

/**
 * Fields of an error in a log line: the text of the first cause, and its SQLSTATE or, where the
 * server sent none, the code of the system.
 */
export function errorFields(error: unknown): {
  readonly error: string;
  readonly sqlstate?: string;
  readonly code?: string;
} {
  let at = error;
  while (at instanceof Error && at.cause instanceof Error) at = at.cause;
  const state = sqlState(at);
  if (state !== '') return { error: String(at), sqlstate: state };
  const code = errorCode(at);
  return code === '' ? { error: String(at) } : { error: String(at), code };
}

/**
 * The refusal that this error means; undefined: it is another error. Cost: a few lookups, for
 * failed statements only.
 */
export function refusalIn(error: unknown): PgRefusal | undefined {
  const state = sqlState(error);
  if (state === '') return undefined;
  if (LOGIN_REFUSALS.has(state)) return 'login_refused';
  if (state !== DISK_FULL) return REFUSALS.get(state);
  const { severity } = error as { readonly severity?: unknown };
  return severity === APPLIES_NOTHING ? 'disk_full' : undefined;
}

/** Classifies what the driver threw. Cost: a few lookups, for failed statements only. */
export function classifyPgError(error: unknown): PgFailure {
  // Its text may quote a caller, who could write the driver's words.
  if (error instanceof AppError) return 'unknown';
  const state = sqlState(error);
  if (state === '') {
    if (SYSTEM_UNAVAILABLE.has(errorCode(error))) return 'unavailable';
    const text = error instanceof Error ? error.message : '';
    return DRIVER_UNAVAILABLE.test(text) ? 'unavailable' : 'unknown';
  }
  if (state === FENCED) return 'fenced';
  if (state === OUTDATED) return 'outdated';
  if (RETRYABLE.has(state)) return 'retryable';
  if (refusalIn(error) !== undefined) return 'refused';
  if (TIMEOUTS.has(state)) return 'timeout';
  if (state.startsWith('23'))
    return state === '23514' || state === '23502' ? 'invalid' : 'conflict';
  if (state.startsWith('22')) return 'invalid';
  if (UNAVAILABLE.test(state)) return 'unavailable';
  return 'unknown';
}

/** Serialization failure, deadlock or lock_timeout: nothing was applied, run it again. */
export function isRetryable(error: unknown): boolean {
  return classifyPgError(error) === 'retryable';
}

/** The instance is not registered any more, or may not write yet: nothing was applied. */
export function isFenced(error: unknown): boolean {
  return classifyPgError(error) === 'fenced';
}

/**
 * The projects whose tuples were checked against outdated rules; undefined: another error. Nothing
 * was applied.
 */
export function projectsWithOtherRules(error: unknown): readonly string[] | undefined {
  if (sqlState(error) !== OUTDATED) return undefined;
  const { detail } = error as { readonly detail?: unknown };
  return typeof detail === 'string' ? detail.split(' ') : [];
}

/** The server ended the session, since its transaction waited for the client too long: nothing was applied. */
export function isEndedIdle(error: unknown): boolean {
  return sqlState(error) === '25P03';
}

/** The server or the connection is gone; of a commit in flight the outcome is unknown. */
export function isUnavailable(error: unknown): boolean {
  return classifyPgError(error) === 'unavailable';
}

/** Nothing was heard of the server: neither an answer nor a refusal. */
export function isSilence(error: unknown): boolean {
  const isOfDriver =
    error instanceof Error && sqlState(error) === '' && !(error instanceof AppError);
  return isOfDriver && DRIVER_SILENT.test(error.message);
}

/** The error, or the first of its causes, by which the server reports damaged files; undefined: none. */
export function damageIn(error: unknown): Error | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (DAMAGE.has(sqlState(at))) return at;
  }
  return undefined;
}

/** Whether the server refused the password. */
export function isWrongPassword(error: unknown): boolean {
  return sqlState(error) === '28P01';
}

/** Name of the violated constraint, or undefined when it is another error. */
export function violatedConstraint(error: unknown): string | undefined {
  if (classifyPgError(error) !== 'conflict') return undefined;
  const name = (error as { readonly constraint?: unknown }).constraint;
  return typeof name === 'string' ? name : '';
}

/** Whether the named database does not exist. */
export function isUnknownDatabase(error: unknown): boolean {
  return sqlState(error) === '3D000';
}

/** Whether gatehouse_take_seat refused: the plan's seats are taken. The transaction is lost. */
export function isSeatRefusal(error: unknown): boolean {
  return sqlState(error) === 'GH001';
}

/** Whether gatehouse_import_part or another step of an import refused: a later attempt continues with it. */
export function isAdopted(error: unknown): boolean {
  return sqlState(error) === 'GH010';
}

const ERROR_OF_REFUSAL: Readonly<Record<PgRefusal, readonly [reason: SharedReason, text: string]>> =
  {
    disk_full: ['STORE_FULL', 'the database has no room left on its disk: nothing was written'],
    read_only: ['STORE_READ_ONLY', 'the database only reads for now: nothing was written'],
    rights_missing: ['STORE_RIGHTS_MISSING', 'the database refuses the rights of the service'],
    login_refused: ['STORE_LOGIN_REFUSED', 'the database refuses the login of the service'],
  };

/**
 * The error that a caller gets for an error of the driver: a refusal has a reason of its own, and
 * trouble that may pass by itself is STORE_UNAVAILABLE; anything else stays as it is.
 */
export function storeError(error: unknown): unknown {
  const refusal = refusalIn(error);
  if (refusal !== undefined) {
    const [reason, text] = ERROR_OF_REFUSAL[refusal];
    return new AppError<SharedReason>(reason, text, {}, error);
  }
  const failure = classifyPgError(error);
  if (failure !== 'unavailable' && failure !== 'timeout' && failure !== 'retryable') return error;
  return new AppError<SharedReason>(
    'STORE_UNAVAILABLE',
    'the database is not available',
    {},
    error,
  );
}
