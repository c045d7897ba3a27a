import { isUtf8 } from 'node:buffer';
import { WireTokens } from '../../../decoding/wire-tokens.ts';
import { SCOPE_VALUE_LENGTH_MAX, type ScopeScan } from './scope-scan.ts';

/**
 * Field numbers of the three scope fields in one request message. The token is the last of its fields, and all of them are
 * texts and messages.
 */
export type ScopeFieldNumbers = {
  /** 0 where the message has none. */
  readonly subjectSet: number;
  readonly projectId: number;
  readonly tenantId: number;
  readonly token: number;
};

/** Field numbers of a request that has its scope in a QueryScope, as number 1: `last` of all, and of the one that is a number; 0: none is. */
export type QueryFieldNumbers = { readonly last: number; readonly number: number };

/** Field numbers of a request and of QueryScope, as query_service.proto has them. */
const SCOPE = 1;
export const IN_SCOPE = {
  projectId: 1,
  tenantId: 2,
  token: 3,
  modelVersion: 6,
  usersetMode: 7,
} as const;

/** Fields of the top level that are read: by default no batch has as many items. */
const FIELDS_MAX = 65_536;
/** Bytes of the number of a version that is read here: larger and negative ones are left. */
const VERSION_BYTES_MAX = 4;
const tokens = new WireTokens();
/** Start and end of the last values of project, tenant and token; then the version of the model. */
const found = new Uint32Array(7);
const VERSION = 6;

/**
 * Hot. Reads the scope fields of a binary body as `fromBinary` decodes them: the last one of each counts, and a field that the
 * message has is read by its length, whatever its wire type. False: `fromBinary` refuses the body, it has fields that the message has not, or
 * a value has more than SCOPE_VALUE_LENGTH_MAX bytes, or they are more than FIELDS_MAX. Goes by the lengths of messages within: one that runs past its own end reads on behind
 * it in the library alone, and is refused where it is decoded. O(fields of the top level); allocates only the strings found.
 */
export function scanProtoScope(body: Buffer, numbers: ScopeFieldNumbers, out: ScopeScan): boolean {
  const { length } = body;
  const { projectId, tenantId, token, subjectSet } = numbers;
  found.fill(0);
  out.namesSet = false;
  tokens.open(body, 0, length);
  for (let fields = 0; tokens.at < length; fields++) {
    const tag = tokens.tag();
    const number = tag >>> 3;
    if (tag < 0 || number > token || fields === FIELDS_MAX) return false;
    if (number === subjectSet) out.namesSet = true;
    const end = tokens.valueEnd(length);
    if (end < 0) return false;
    const slot = number === projectId ? 0 : number === tenantId ? 2 : number === token ? 4 : -1;
    if (slot >= 0) {
      found[slot] = tokens.at;
      found[slot + 1] = end;
    }
    tokens.at = end;
  }
  return readFound(body, out);
}

/**
 * Does what `scanProtoScope` does for a request whose scope is a message of its own: of several ones each counts, as parts of one. False also for a
 * version of the model that has more than 28 bits. O(fields of both).
 */
export function scanProtoQuery(
  body: Buffer,
  { last, number: numberField }: QueryFieldNumbers,
  out: ScopeScan,
): boolean {
  const { length } = body;
  found.fill(0);
  out.namesSet = false;
  tokens.open(body, 0, length);
  for (let fields = 0; tokens.at < length; fields++) {
    const tag = tokens.tag();
    const number = tag >>> 3;
    if (tag < 0 || number > last || fields === FIELDS_MAX) return false;
    if (number === numberField) {
      if (tokens.varint() < 0) return false;
      continue;
    }
    const end = tokens.valueEnd(length);
    if (end < 0 || (number === SCOPE && !scanQueryScope(end))) return false;
    tokens.at = end;
  }
  return readFound(body, out);
}

function scanQueryScope(end: number): boolean {
  for (let fields = 0; tokens.at < end; fields++) {
    const tag = tokens.tag();
    const number = tag >>> 3;
    if (tag < 0 || number > IN_SCOPE.usersetMode || fields === FIELDS_MAX) return false;
    if (number === IN_SCOPE.modelVersion) {
      const version = tokens.varint(VERSION_BYTES_MAX);
      if (version < 0) return false;
      found[VERSION] = version;
      continue;
    }
    if (number === IN_SCOPE.usersetMode) {
      if (tokens.varint() < 0) return false;
      continue;
    }
    const valueEnd = tokens.valueEnd(end);
    if (valueEnd < 0) return false;
    if (number <= IN_SCOPE.token) {
      const slot = (number - IN_SCOPE.projectId) * 2;
      found[slot] = tokens.at;
      found[slot + 1] = valueEnd;
    }
    tokens.at = valueEnd;
  }
  return tokens.at === end;
}

/** The texts that were found. */
function readFound(body: Buffer, out: ScopeScan): boolean {
  const project = textAt(body, 0);
  const tenant = textAt(body, 2);
  const tokenText = textAt(body, 4);
  if (project === null || tenant === null || tokenText === null) return false;
  out.projectId = project;
  out.tenantId = tenant;
  out.token = tokenText;
  out.modelVersion = found[VERSION] as number;
  return true;
}

/** Well-formed text; null for any other, and for a long one. */
function textAt(body: Buffer, slot: number): string | null {
  const start = found[slot] as number;
  const end = found[slot + 1] as number;
  if (start === end) return '';
  if (end - start > SCOPE_VALUE_LENGTH_MAX) return null;
  for (let at = start; at < end; at++) {
    if ((body[at] as number) < 0x80) continue;
    return isUtf8(body.subarray(start, end)) ? body.toString('utf8', start, end) : null;
  }
  return body.toString('latin1', start, end);
}
