import { AppError } from '../../shared/app-error.ts';
import { microsecondsOf, parseTimestamp } from '../../shared/time/instant.ts';

/** Errors: INVALID_REQUEST that names the parameter of the query. */
function wrong(name: string, problem: string): AppError {
  return new AppError('INVALID_REQUEST', `${name}: ${problem}`, { field: name });
}

/** The value of a parameter, undefined when it is absent. Errors: INVALID_REQUEST when it is given twice. */
export function queryText(query: URLSearchParams, name: string): string | undefined {
  const values = query.getAll(name);
  if (values.length > 1) throw wrong(name, 'is given more than once');
  return values[0];
}

/** A whole number within inclusive bounds. */
export function queryInteger(
  query: URLSearchParams,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const text = queryText(query, name);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text) || Number(text) < min || Number(text) > max) {
    throw wrong(name, `must be a whole number from ${min} to ${max}`);
  }
  return Number(text);
}

/** One of `values`. */
export function queryChoice<const V extends string>(
  query: URLSearchParams,
  name: string,
  values: readonly V[],
): V | undefined {
  const text = queryText(query, name);
  if (text === undefined) return undefined;
  const found = values.find((value) => value === text);
  if (found === undefined) throw wrong(name, `must be one of ${values.join(', ')}`);
  return found;
}

/** `1` or `true` is set; `0`, `false` or absent is not. */
export function queryFlag(query: URLSearchParams, name: string): boolean {
  const text = queryText(query, name);
  if (text === undefined || text === '0' || text === 'false') return false;
  if (text === '1' || text === 'true') return true;
  throw wrong(name, 'must be 1 or 0');
}

/** A time of RFC 3339, or a day, which means its beginning in UTC; as ISO 8601 in UTC with milliseconds. */
export function queryTime(query: URLSearchParams, name: string): string | undefined {
  const text = queryText(query, name);
  if (text === undefined) return undefined;
  const instant = parseTimestamp(/^[\d-]{10}$/.test(text) ? `${text}T00:00:00Z` : text);
  if (instant === undefined) throw wrong(name, 'must be a time such as 2026-01-31T12:00:00Z');
  const timeMs = Number(microsecondsOf(instant) / 1000n);
  return new Date(timeMs).toISOString();
}
