import { DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import { FieldKind, type HeaderField } from './hpack/header-field.ts';
import type { Http2Headers } from './request-stream.ts';

/** What the fields of a request say of it. */
export type RequestHead = {
  readonly headers: Http2Headers;
  /** Of its body; -1 where it does not say. */
  readonly contentLength: number;
};

const PSEUDO_FIRST = FieldKind.method;
const PSEUDO_LAST = FieldKind.path;

/**
 * Hot. The head of a request as node:http2 gives it; null for one that RFC 9113 section 8 calls malformed: pseudo fields that are
 * missing, twice, late or of answers, fields of connections, names and values that are none. O(fields).
 */
export function requestHeadOf(fields: readonly HeaderField[]): RequestHead | null {
  const headers = Object.create(null) as Record<string, string | string[] | undefined>;
  let contentLength = -1;
  let isRegular = false;
  for (let i = 0; i < fields.length; i++) {
    const { name, value, kind, isValid } = fields[i] as HeaderField;
    if (!isValid) return null;
    if (kind >= PSEUDO_FIRST && kind <= PSEUDO_LAST) {
      if (isRegular || headers[name] !== undefined) return null;
      headers[name] = value;
      continue;
    }
    isRegular = true;
    const before = headers[name];
    if (kind === FieldKind.setCookie) {
      if (before === undefined) headers[name] = [value];
      else (before as string[]).push(value);
    } else if (before === undefined) {
      headers[name] = value;
      if (kind === FieldKind.contentLength) contentLength = Number(value);
    } else if (kind === FieldKind.contentLength) return null;
    // Whose credential counts would be a guess.
    else if (name === 'authorization') return null;
    else if (kind === FieldKind.cookie) headers[name] = `${before as string}; ${value}`;
    else if (kind === FieldKind.joined || kind === FieldKind.te) {
      headers[name] = `${before as string}, ${value}`;
    }
  }
  // Requests alike share it (HeaderBlocks.head): nobody may write on it.
  if (DEBUG_ASSERTIONS) Object.freeze(headers);
  return isComplete(headers) ? { headers, contentLength } : null;
}

function isComplete(headers: Record<string, string | string[] | undefined>): boolean {
  const method = headers[':method'];
  const path = headers[':path'];
  const scheme = headers[':scheme'];
  const authority = headers[':authority'];
  if (method === undefined) return false;
  if (method === 'CONNECT') {
    return path === undefined && scheme === undefined && authority !== undefined;
  }
  if (path === undefined || scheme === undefined) return false;
  if (authority === undefined && headers['host'] === undefined) return false;
  if (scheme !== 'http' && scheme !== 'https') return true;
  return (path as string).startsWith('/') || (path === '*' && method === 'OPTIONS');
}

/** Whether fields may come after a body: no pseudo ones, and none that are malformed. */
export function areTrailers(fields: readonly HeaderField[]): boolean {
  for (const { kind, isValid } of fields) {
    if (!isValid || (kind >= PSEUDO_FIRST && kind <= PSEUDO_LAST)) return false;
  }
  return true;
}
