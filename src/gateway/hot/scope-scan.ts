import { JSON_BYTES } from '../../shared/json-bytes.ts';

/**
 * Finds the routing fields of a raw request body: project_id, tenant_id and
 * at_least_consistency_token of the top level. The scan only routes; the worker's full parse is
 * authoritative and answers `fallback` when it read something else. So the scan may give up on
 * anything unusual, and need not notice that the rest of the body is broken.
 */

/** Field numbers of the three scope fields in one request message. */
export type ScopeFieldNumbers = {
  readonly projectId: number;
  readonly tenantId: number;
  readonly token: number;
};

/** Where a scan leaves what it found; reused between requests, so copy what must be kept. */
export type ScopeScan = { projectId: string; tenantId: string; token: string };

/** An empty result to scan into. */
export function createScopeScan(): ScopeScan {
  return { projectId: '', tenantId: '', token: '' };
}

const {
  QUOTE,
  BACKSLASH,
  COLON,
  COMMA,
  OPENING_BRACE,
  CLOSING_BRACE,
  OPENING_BRACKET,
  CLOSING_BRACKET,
} = JSON_BYTES;

/** Longest value that is taken as plain; a tenant id has 128 bytes, a token fewer than 200. */
const VALUE_BYTES_MAX = 512;

/**
 * Hot. Scans a JSON body. Returns false when the general path must take the request: not an
 * object, a key with an escape or beyond ASCII, a scope field twice or in both spellings, or a
 * scope value that is not a plain ASCII string. O(bytes); allocates only the strings found.
 * A key `items` whose value is an array is skipped by searching the body's last `]`.
 */
export function scanJsonScope(body: Buffer, out: ScopeScan): boolean {
  out.projectId = '';
  out.tenantId = '';
  out.token = '';
  const end = body.length;
  let seen = 0;
  let at = skipSpace(body, 0);
  if (body[at] !== OPENING_BRACE) return false;
  at = skipSpace(body, at + 1);
  if (body[at] === CLOSING_BRACE) return true;
  for (;;) {
    if (body[at] !== QUOTE) return false;
    const keyStart = at + 1;
    const keyEnd = plainStringEnd(body, keyStart);
    if (keyEnd < 0) return false;
    at = skipSpace(body, keyEnd + 1);
    if (body[at] !== COLON) return false;
    at = skipSpace(body, at + 1);
    const field = scopeFieldOf(body, keyStart, keyEnd);
    if (field !== 0) {
      if ((seen & field) !== 0 || body[at] !== QUOTE) return false;
      seen |= field;
      const valueEnd = plainStringEnd(body, at + 1);
      if (valueEnd < 0 || valueEnd - at > VALUE_BYTES_MAX) return false;
      const value = body.toString('latin1', at + 1, valueEnd);
      if (field === 1) out.projectId = value;
      else if (field === 2) out.tenantId = value;
      else out.token = value;
      at = valueEnd + 1;
    } else if (body[at] === OPENING_BRACKET && isItems(body, keyStart, keyEnd)) {
      at = body.lastIndexOf(CLOSING_BRACKET) + 1;
      if (at <= keyEnd) return false;
    } else {
      at = skipValue(body, at, end);
      if (at < 0) return false;
    }
    at = skipSpace(body, at);
    const next = body[at];
    if (next === CLOSING_BRACE) return true;
    if (next !== COMMA) return false;
    at = skipSpace(body, at + 1);
  }
}

function skipSpace(body: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = body[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** Index of the closing quote of a string of printable ASCII without escapes, or -1. */
function plainStringEnd(body: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const byte = body[at];
    if (byte === QUOTE) return at;
    if (byte === undefined || byte === BACKSLASH || byte < 0x20 || byte > 0x7e) return -1;
    at += 1;
  }
}

/** Index after a value, or -1 at the end of the body. */
function skipValue(body: Buffer, from: number, end: number): number {
  let at = from;
  let depth = 0;
  while (at < end) {
    const byte = body[at] as number;
    if (byte === QUOTE) {
      at = skipString(body, at + 1, end);
      if (at < 0) return -1;
      if (depth === 0) return at;
      continue;
    }
    if (byte === OPENING_BRACE || byte === OPENING_BRACKET) depth += 1;
    else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && byte === COMMA) return at;
    at += 1;
  }
  return -1;
}

function skipString(body: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end) {
    const byte = body[at] as number;
    if (byte === QUOTE) return at + 1;
    at += byte === BACKSLASH ? 2 : 1;
  }
  return -1;
}

/** 1 project, 2 tenant, 4 token, 0 another key. Distinguished by length and then compared in full. */
function scopeFieldOf(body: Buffer, start: number, end: number): number {
  switch (end - start) {
    case 8:
      return equals(body, start, 'tenantId') ? 2 : 0;
    case 9:
      if (equals(body, start, 'tenant_id')) return 2;
      return equals(body, start, 'projectId') ? 1 : 0;
    case 10:
      return equals(body, start, 'project_id') ? 1 : 0;
    case 23:
      return equals(body, start, 'atLeastConsistencyToken') ? 4 : 0;
    case 26:
      return equals(body, start, 'at_least_consistency_token') ? 4 : 0;
    default:
      return 0;
  }
}

function isItems(body: Buffer, start: number, end: number): boolean {
  return end - start === 5 && equals(body, start, 'items');
}

function equals(body: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (body[start + i] !== text.charCodeAt(i)) return false;
  }
  return true;
}

/**
 * Hot. Scans a binary body for the scope fields with the given numbers. Returns false for a
 * truncated body, a group, a scope field twice, or a scope value that is not printable ASCII.
 * O(fields of the top level); allocates only the strings found.
 */
export function scanProtoScope(body: Buffer, numbers: ScopeFieldNumbers, out: ScopeScan): boolean {
  out.projectId = '';
  out.tenantId = '';
  out.token = '';
  let seen = 0;
  varintAt = 0;
  while (varintAt < body.length) {
    const tag = readVarint(body);
    if (tag < 8) return false;
    const number = tag >>> 3;
    const wireType = tag & 7;
    if (wireType === 0) {
      if (readVarint(body) < 0) return false;
      continue;
    }
    if (wireType === 1 || wireType === 5) {
      varintAt += wireType === 1 ? 8 : 4;
      continue;
    }
    if (wireType !== 2) return false;
    const length = readVarint(body);
    const start = varintAt;
    if (length < 0 || start + length > body.length) return false;
    varintAt = start + length;
    const field =
      number === numbers.projectId
        ? 1
        : number === numbers.tenantId
          ? 2
          : number === numbers.token
            ? 4
            : 0;
    if (field === 0) continue;
    if ((seen & field) !== 0 || length > VALUE_BYTES_MAX) return false;
    seen |= field;
    if (!isPlain(body, start, start + length)) return false;
    const value = body.toString('latin1', start, start + length);
    if (field === 1) out.projectId = value;
    else if (field === 2) out.tenantId = value;
    else out.token = value;
  }
  return varintAt === body.length;
}

let varintAt = 0;

/** A varint of at most 31 bits at `varintAt`, which moves past it; -1 for anything longer. */
function readVarint(body: Buffer): number {
  let value = 0;
  for (let shift = 0; shift < 35; shift += 7) {
    const byte = body[varintAt];
    if (byte === undefined) return -1;
    varintAt += 1;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value < 0 || (shift === 28 && byte > 7) ? -1 : value;
  }
  return -1;
}

function isPlain(body: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = body[at] as number;
    if (byte < 0x20 || byte > 0x7e) return false;
  }
  return true;
}

const TENANT_ID_LENGTH_MAX = 128;

/** As `checkTenantId` of model/names.ts, without an error: the general path gives it. */
export function isTenantId(tenantId: string): boolean {
  if (tenantId.length > TENANT_ID_LENGTH_MAX) return false;
  for (let i = 0; i < tenantId.length; i++) {
    const code = tenantId.charCodeAt(i);
    const isLetter = (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
    // `-`, `.`, digits and `:`; `/` lies between.
    const isOther = code === 0x2d || code === 0x2e || code === 0x5f || (code > 0x2f && code < 0x3b);
    if (!isLetter && !isOther) return false;
  }
  return true;
}
