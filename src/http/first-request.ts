/** What the first bytes of a connection of HTTP/1.1 are. */
export type FirstRequest =
  /** The head has not come whole. */
  | 'partial'
  /** One request of the usual form, which uWebSockets.js reads as every other reader does. */
  | 'plain'
  /** Anything else, well-formed or not. */
  | 'unusual';

const CR = 13;
const LF = 10;
const SP = 32;
const TAB = 9;
const COLON = 58;
const SLASH = 47;
const LAST_CHUNK = Buffer.from('0\r\n\r\n');
const VERSION = Buffer.from(' HTTP/1.1\r\n');
/** "transfer-encoding" and longer than every other name that is looked at. */
const NAME_LENGTH_MAX = 17;
const LENGTH_DIGITS_MAX = 15;

/** tchar of RFC 9110 §5.6.2. */
const IS_TOKEN = new Uint8Array(256);
for (const char of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
  IS_TOKEN[char.charCodeAt(0)] = 1;
}

/**
 * Looks at the `count` bytes that a connection begins with. Plain is: a token, a target in origin form, HTTP/1.1,
 * fields of a name and a value each on a line, one Host, a Content-Length in digits or no body or
 * `Transfer-Encoding: chunked`, and nothing behind the body (RFC 9112 §§3, 5, 6). 'partial' asks for more bytes.
 * O(count of the head), about a microsecond; allocates for the few names that it compares.
 */
export function firstRequestOf(bytes: Uint8Array, count: number): FirstRequest {
  let at = tokenEnd(bytes, 0, count);
  if (at === count) return 'partial';
  if (at === 0 || bytes[at] !== SP) return 'unusual';
  at += 1;
  if (at < count && bytes[at] !== SLASH) return 'unusual';
  while (at < count && (bytes[at] ?? 0) > SP && bytes[at] !== 127) at += 1;
  for (const expected of VERSION) {
    if (at === count) return 'partial';
    if (bytes[at] !== expected) return 'unusual';
    at += 1;
  }
  return fieldsOf(bytes, at, count);
}

function fieldsOf(bytes: Uint8Array, from: number, count: number): FirstRequest {
  let hosts = 0;
  let length = -1;
  let isChunked = false;
  for (let at = from; ;) {
    if (at === count) return 'partial';
    if (bytes[at] === CR) {
      if (at + 1 === count) return 'partial';
      if (bytes[at + 1] !== LF || hosts !== 1) return 'unusual';
      if (isChunked) return length < 0 && !isFollowed(bytes, at, count) ? 'plain' : 'unusual';
      return count - at - 2 <= Math.max(length, 0) ? 'plain' : 'unusual';
    }
    const nameEnd = tokenEnd(bytes, at, count);
    if (nameEnd === count) return 'partial';
    if (nameEnd === at || bytes[nameEnd] !== COLON) return 'unusual';
    const valueEnd = textEnd(bytes, nameEnd + 1, count);
    if (valueEnd + 1 >= count) {
      return valueEnd < count && bytes[valueEnd] !== CR ? 'unusual' : 'partial';
    }
    if (bytes[valueEnd] !== CR || bytes[valueEnd + 1] !== LF) return 'unusual';
    const name = nameOf(bytes, at, nameEnd);
    if (name === 'host') hosts += 1;
    else if (name === 'content-length') {
      const value = valueOf(bytes, nameEnd + 1, valueEnd);
      if (length >= 0 || !isDigits(value)) return 'unusual';
      length = Number(value);
    } else if (name === 'transfer-encoding') {
      if (isChunked || valueOf(bytes, nameEnd + 1, valueEnd).toLowerCase() !== 'chunked') {
        return 'unusual';
      }
      isChunked = true;
    }
    at = valueEnd + 2;
  }
}

/** Is there something behind what ends a chunked body? True as well for a chunk that holds such bytes: it costs no more than speed. */
function isFollowed(bytes: Uint8Array, from: number, count: number): boolean {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset + from, count - from);
  const end = body.indexOf(LAST_CHUNK);
  return end >= 0 && end + LAST_CHUNK.length < body.length;
}

/** Of a Content-Length: digits alone, and few enough to be a number. */
export function isDigits(text: string): boolean {
  if (text === '' || text.length > LENGTH_DIGITS_MAX) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 48 || code > 57) return false;
  }
  return true;
}

function tokenEnd(bytes: Uint8Array, from: number, count: number): number {
  let at = from;
  while (at < count && IS_TOKEN[bytes[at] ?? 0] === 1) at += 1;
  return at;
}

/** Past all that a value may hold. */
function textEnd(bytes: Uint8Array, from: number, count: number): number {
  let at = from;
  for (; at < count; at++) {
    const byte = bytes[at] ?? 0;
    if ((byte < SP && byte !== TAB) || byte === 127) break;
  }
  return at;
}

/** In lower case; '' for one that is too long to be looked at. */
function nameOf(bytes: Uint8Array, from: number, to: number): string {
  const length = to - from;
  // The lengths of the three names.
  if (length !== 4 && length !== 14 && length !== NAME_LENGTH_MAX) return '';
  return latin1(bytes, from, to).toLowerCase();
}

function valueOf(bytes: Uint8Array, from: number, to: number): string {
  return latin1(bytes, from, to).replaceAll(/^[ \t]+|[ \t]+$/g, '');
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to));
}
