import { AppError } from '../../shared/app-error.ts';
import type { ServiceConnection } from './connection.ts';
import type { CliReason } from './exit-codes.ts';
import { messageOf } from './files.ts';
import { isObject, type JsonRecord } from './json-values.ts';

/** Codes of Connect after which another attempt may succeed. */
const PASSING = new Set([
  'unavailable',
  'deadline_exceeded',
  'resource_exhausted',
  'aborted',
  'canceled',
  'internal',
  'unknown',
  'data_loss',
]);
/** Reasons of requests that are too large, and will be again, whatever their code. */
const TOO_LARGE = /^(?:BODY|BATCH|FIELD|SHARD)_TOO_LARGE$/;
/** Key of the service's reason in the metadata of an error. */
const REASON = 'reason';
/** Most characters of a proxy's error page that are shown. */
const SHOWN_MAX = 200;

/**
 * Calls `package.Service/Method` with `body` and returns its JSON. T follows the proto and is not
 * validated.
 * Errors: REFUSED with the service's own message, reason and field; UNAVAILABLE if no answer came
 * in time.
 */
export async function call<T>(
  connection: ServiceConnection,
  method: string,
  body: object,
): Promise<T> {
  const response = await request(connection, `/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(connection.timeoutMs),
  });
  try {
    return (await response.json()) as T;
  } catch (error) {
    throw unavailable(connection, error);
  }
}

/**
 * Requests `path` of a service. Resolves at the response headers; the caller reads the body. Does
 * not follow redirects, which would take the credentials along. Errors: those of `call`.
 */
export async function request(
  connection: ServiceConnection,
  path: string,
  init: RequestInit,
): Promise<Response> {
  const headers = { ...headersOf(connection), ...(init.headers as Record<string, string>) };
  let response: Response;
  try {
    response = await fetch(`${connection.url}${path}`, { ...init, headers, redirect: 'manual' });
  } catch (error) {
    throw unavailable(connection, error);
  }
  if (response.ok) return response;
  const text = await response.text().catch((error: unknown) => messageOf(error));
  throw refusalOf(connection, response.status, text);
}

/**
 * Headers of every request: credentials, and the shard by which a balancer may choose an instance.
 */
export function headersOf(connection: ServiceConnection): Readonly<Record<string, string>> {
  const { project, tenant, token, adminSecret } = connection;
  return {
    'x-gatehouse-shard': encodeURI(`${project || 'default'}/${tenant}`),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(adminSecret === undefined ? {} : { 'x-admin-secret': adminSecret }),
  };
}

/** The error for a connection that failed or timed out. */
export function unavailable(connection: ServiceConnection, error: unknown): AppError {
  const isLate = error instanceof Error && error.name === 'TimeoutError';
  const why = isLate ? `no answer within ${connection.timeoutMs / 1000} s` : messageOf(error);
  return new AppError<CliReason>('UNAVAILABLE', `${connection.url}: ${why}`, {}, error);
}

/** The error in an answer of the service: its message, its reason and the field that it names. */
export function errorOfAnswer(document: JsonRecord): AppError {
  const { code, message, details } = document;
  const detail = Array.isArray(details) ? details.find(isObject) : undefined;
  const debug = isObject(detail?.['debug']) ? detail['debug'] : {};
  const metadata = isObject(debug['metadata']) ? debug['metadata'] : {};
  const texts = Object.entries({ ...metadata, [REASON]: debug[REASON] }).flatMap(([key, value]) =>
    typeof value === 'string' ? [[key, value] as const] : [],
  );
  const reason = typeof debug[REASON] === 'string' ? debug[REASON] : '';
  const isPassing = typeof code !== 'string' || (PASSING.has(code) && !TOO_LARGE.test(reason));
  return new AppError<CliReason>(
    isPassing ? 'UNAVAILABLE' : 'REFUSED',
    `${String(message ?? code)}${reason === '' ? '' : ` (${reason})`}`,
    Object.fromEntries(texts),
  );
}

/**
 * The reason that the service named, `TUPLE_EXISTS`; undefined if it named none, or never answered.
 */
export function serviceReason(error: unknown): string | undefined {
  return error instanceof AppError ? error.metadata[REASON] : undefined;
}

/**
 * The error for a status other than 200, from the service or from any other server at its address
 * or in front of it.
 */
export function refusalOf(connection: ServiceConnection, status: number, text: string): AppError {
  const document = documentOf(text);
  if (document === undefined) {
    const shown = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
    const reason: CliReason = status >= 500 || status === 429 ? 'UNAVAILABLE' : 'REFUSED';
    return new AppError<CliReason>(reason, `${connection.url} answered ${status}: ${shown}`);
  }
  const error = errorOfAnswer(document);
  const hint = hintOf(status, connection);
  return hint === ''
    ? error
    : new AppError<string>(error.reason, `${error.message}; ${hint}`, error.metadata);
}

function hintOf(status: number, { token, adminSecret }: ServiceConnection): string {
  if (status === 401 && token === undefined) return 'set GATEHOUSE_TOKEN, or give --token-file';
  if (status === 403 && adminSecret === undefined) {
    return 'where it asks for the operator secret, set GATEHOUSE_ADMIN_SECRET, or give --admin-secret-file';
  }
  return '';
}

function documentOf(text: string): JsonRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && typeof value['code'] === 'string' ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
