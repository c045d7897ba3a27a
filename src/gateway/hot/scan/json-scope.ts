import { fieldNames } from '../../../decoding/json-names.ts';
import { ASCII_STOPS, JSON_END, JsonTokens } from '../../../decoding/json-tokens.ts';
import { JSON_BYTES } from '../../../shared/text/json-bytes.ts';
import { type ScopeScan, SCOPE_VALUE_LENGTH_MAX } from './scope-scan.ts';

const { QUOTE, COMMA, OPENING_BRACE, CLOSING_BRACE, OPENING_BRACKET, CLOSING_BRACKET } = JSON_BYTES;

/** Bits of the fields that the requests have; OTHERS and above are not read. */
const PROJECT = 1;
const TENANT = 2;
const TOKEN = 4;
const ITEMS = 8;
const OTHERS = 16;
const SUBJECT_SET = OTHERS << 4;
const NAMES = fieldNames([
  ['project_id', PROJECT],
  ['tenant_id', TENANT],
  ['at_least_consistency_token', TOKEN],
  ['items', ITEMS],
  ['namespace', OTHERS],
  ['object_id', OTHERS << 1],
  ['relation', OTHERS << 2],
  ['subject_user_id', OTHERS << 3],
  ['subject_set', SUBJECT_SET],
  ['context', OTHERS << 5],
]);
/**
 * Names of queries of gatehouse.v1, which hold their scope themselves. None equals a name of a scope's field, so a scope may
 * follow the items.
 */
const SCOPE = OTHERS << 6;
const QUERY_NAMES = fieldNames([
  ['scope', SCOPE],
  ['items', ITEMS],
  ['object_ids', ITEMS],
  ['question', OTHERS << 7],
  ['remedies_max', OTHERS << 8],
  ['namespace', OTHERS << 9],
  ['object_id', OTHERS << 10],
  ['relation', OTHERS << 11],
  ['subject', OTHERS << 12],
  ['relations', OTHERS << 13],
]);
const MODEL_VERSION = OTHERS;
const SCOPE_NAMES = fieldNames([
  ['project_id', PROJECT],
  ['tenant_id', TENANT],
  ['at_least_consistency_token', TOKEN],
  ['model_version', MODEL_VERSION],
  ['context', OTHERS << 1],
  ['contextual_tuples', OTHERS << 2],
  ['userset_mode', OTHERS << 3],
]);
const NULL = Buffer.from('null');
const ZERO = 0x30;
const VERSION_DIGITS_MAX = 9;
/** A character takes at most six bytes, as `\u0041`; the longest name has 26. */
const RAW_VALUE_BYTES_MAX = SCOPE_VALUE_LENGTH_MAX * 6;
const RAW_NAME_BYTES_MAX = 26 * 6;
/**
 * A body longer than this has only the scope and the items; the items are skipped unread. Nothing else precedes or follows
 * them.
 */
const SKIPPED_BYTES_MAX = 65_536;
const tokens = new JsonTokens();

type ScopeNames = typeof NAMES;

/**
 * Hot. Finds project, tenant and token of a request in JSON, as `fromJsonString` reads them: in either spelling, with escapes or without,
 * anywhere among the members. False: `fromJsonString` refuses the body, a value has more than SCOPE_VALUE_LENGTH_MAX characters, or a
 * long body is no plain batch. It notices only some of what is wrong elsewhere. O(bytes), of a long body O(bytes behind the items); reads
 * each name once at most, and allocates the strings found.
 */
export function scanJsonScope(body: Buffer, out: ScopeScan): boolean {
  return scanBody(body, NAMES, out);
}

/**
 * Does what `scanJsonScope` does for a request whose scope is a message of its own. False also for a version of the model that is not
 * written in up to nine digits, as a number or a string.
 */
export function scanJsonQuery(body: Buffer, out: ScopeScan): boolean {
  return scanBody(body, QUERY_NAMES, out);
}

function scanBody(body: Buffer, names: ScopeNames, out: ScopeScan): boolean {
  if (scanMembers(body, names, out, true)) return true;
  return body.length <= SKIPPED_BYTES_MAX && scanMembers(body, names, out, false);
}

/**
 * `isQuick`: the items are skipped by searching the last `]` of the body. It ends them if scope alone follows: then any other `]`
 * would be within a value, where no quote and name can follow it.
 */
function scanMembers(body: Buffer, names: ScopeNames, out: ScopeScan, isQuick: boolean): boolean {
  out.projectId = '';
  out.tenantId = '';
  out.token = '';
  out.modelVersion = 0;
  tokens.open(body, 0, Math.min(body.length, SKIPPED_BYTES_MAX));
  tokens.skipMark();
  if (tokens.next() !== OPENING_BRACE) return false;
  let seen = 0;
  let next: number = tokens.peek() === CLOSING_BRACE ? tokens.next() : COMMA;
  while (next === COMMA) {
    if (!tokens.name(RAW_NAME_BYTES_MAX)) return false;
    const field = names.read(tokens);
    if (!field || (seen & field) !== 0) return false;
    const byte = tokens.peek();
    if (field === SCOPE && byte === OPENING_BRACE) {
      if (!scanScope(body, out)) return false;
    } else if (field < ITEMS) {
      if (!readValue(body, field, byte, out)) return false;
    } else if (isQuick && field === ITEMS && byte === OPENING_BRACKET) {
      tokens.at = body.lastIndexOf(CLOSING_BRACKET) + 1;
      if (body.length - tokens.at > SKIPPED_BYTES_MAX) return false;
      tokens.end = body.length;
    } else if (isQuick && (body.length > SKIPPED_BYTES_MAX || (seen & ITEMS) !== 0)) {
      return false;
    } else if (!tokens.skip()) return false;
    seen |= field;
    next = tokens.next();
  }
  out.namesSet = (seen & SUBJECT_SET) !== 0;
  const isWhole = tokens.end === body.length;
  return next === CLOSING_BRACE && tokens.peek() === JSON_END && isWhole;
}

/** Skips a null, which is an absent field. Returns whether there was one. */
function skipNull(body: Buffer): boolean {
  if (!NULL.every((one, i) => body[tokens.at + i] === one)) return false;
  tokens.at += NULL.length;
  return true;
}

/** Reads the members of a scope, which begins here. */
function scanScope(body: Buffer, out: ScopeScan): boolean {
  tokens.at += 1;
  let seen = 0;
  let next: number = tokens.peek() === CLOSING_BRACE ? tokens.next() : COMMA;
  while (next === COMMA) {
    if (!tokens.name(RAW_NAME_BYTES_MAX)) return false;
    const field = SCOPE_NAMES.read(tokens);
    if (!field || (seen & field) !== 0) return false;
    const byte = tokens.peek();
    if (field <= TOKEN) {
      if (!readValue(body, field, byte, out)) return false;
    } else if (field === MODEL_VERSION) {
      if (!readVersion(body, byte, out)) return false;
    } else if (!tokens.skip()) return false;
    seen |= field;
    next = tokens.next();
  }
  return next === CLOSING_BRACE;
}

/** A number or a string of up to nine digits without a zero in front, or a null. */
function readVersion(body: Buffer, byte: number, out: ScopeScan): boolean {
  const isString = byte === QUOTE;
  let at = tokens.at + (isString ? 1 : 0);
  const end = Math.min(at + VERSION_DIGITS_MAX, tokens.end);
  const from = at;
  let version = 0;
  for (; at < end && isDigit(body[at]); at++) version = version * 10 + (body[at] as number) - ZERO;
  if (at === from) return !isString && skipNull(body);
  if (body[from] === ZERO && at > from + 1) return false;
  if (isString) {
    if (at === tokens.end || body[at] !== QUOTE) return false;
    at += 1;
  }
  tokens.at = at;
  out.modelVersion = version;
  return true;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}

function readValue(body: Buffer, field: number, byte: number, out: ScopeScan): boolean {
  let value: string | undefined = '';
  if (tokens.plain(ASCII_STOPS)) value = body.toString('latin1', tokens.from, tokens.to);
  else if (byte === QUOTE)
    value = tokens.string(RAW_VALUE_BYTES_MAX) ? tokens.text(body) : undefined;
  else if (!skipNull(body)) return false;
  if (value === undefined || value.length > SCOPE_VALUE_LENGTH_MAX) return false;
  if (field === PROJECT) out.projectId = value;
  else if (field === TENANT) out.tenantId = value;
  else out.token = value;
  return true;
}
