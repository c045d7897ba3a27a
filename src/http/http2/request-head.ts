import { DEBUG_ASSERTIONS } from '../../shared/assert.ts';
import { FieldKind, type HeaderField } from './hpack/header-field.ts';
import type { Http2Headers } from './request-stream.ts';

/** Head of a request, made of its fields. */
export type RequestHead = {
  readonly headers: Http2Headers;
  /** Length of the body; -1 where it is not stated. */
  readonly contentLength: number;
};

const PSEUDO_FIRST = FieldKind.method;
const PSEUDO_LAST = FieldKind.path;

/**
 * Hot. Makes the head of a request as node:http2 does. Returns null for a malformed one (RFC 9113 section 8). That is one
 * with pseudo fields that are missing, twice, late or of answers, fields of connections, or invalid names or values. A second
 * content-length or authorization is refused, too. O(fields).
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
    // Which credential counts would be a guess.
    else if (name === 'authorization') return null;
    else if (kind === FieldKind.cookie) headers[name] = `${before as string}; ${value}`;
    else if (kind === FieldKind.joined || kind === FieldKind.te) {
      headers[name] = `${before as string}, ${value}`;
    }
  }
  // Equal requests share it (HeaderBlocks.head): it must not be changed.
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

/** Whether fields may come after a body: none of them is a pseudo field or malformed. */
export function areTrailers(fields: readonly HeaderField[]): boolean {
  for (const { kind, isValid } of fields) {
    if (!isValid || (kind >= PSEUDO_FIRST && kind <= PSEUDO_LAST)) return false;
  }
  return true;
}
