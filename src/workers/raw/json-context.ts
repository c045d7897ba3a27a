import { CONTEXT_BYTES_MAX } from './raw-fields.ts';

/** Objects and lists in one another, at most; members of one object, at most; characters of a number. */
const DEPTH_MAX = 4;
const MEMBERS_MAX = 32;
const NUMBER_BYTES_MAX = 24;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const LITERALS = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')] as const;
const PROTO = Buffer.from('__proto__');
/** Starts and ends of the names of the open objects. */
const names = Uint32Array.from({ length: (DEPTH_MAX + 1) * MEMBERS_MAX * 2 });
let bytes = new Uint8Array(0);
let end = 0;
let hasInner = false;

/** Whether the context that was scanned last holds objects, whose members a condition may see in their order. */
export function isContextNested(): boolean {
  return hasInner;
}

/**
 * Where the context of a query in JSON that starts at `start` has ended; -1 for one that needs thought, or is none. A
 * scan without a value: what it takes `JSON.parse` takes, and gives what the general path gives. So no escapes, no name
 * twice, no number that is -0 or beyond what is written with 24 characters, nothing deep or long. `body` is well-formed UTF-8 up
 * to `bodyEnd`. Hot: O(bytes), and the square of the members of one object.
 */
export function scanJsonContext(body: Uint8Array, start: number, bodyEnd: number): number {
  bytes = body as Uint8Array<ArrayBuffer>;
  end = Math.min(bodyEnd, start + CONTEXT_BYTES_MAX);
  hasInner = false;
  return bytes[start] === OPEN_BRACE ? objectEnd(start, 0) : -1;
}

function objectEnd(start: number, depth: number): number {
  const first = depth * MEMBERS_MAX * 2;
  let count = 0;
  let at = afterSpace(start + 1);
  if (bytes[at] === CLOSE_BRACE) return at < end ? at + 1 : -1;
  for (;;) {
    if (bytes[at] !== QUOTE || count === MEMBERS_MAX) return -1;
    const nameStart = at + 1;
    const nameEnd = stringEnd(nameStart) - 1;
    if (nameEnd < nameStart || !isNewName(first, count, nameStart, nameEnd)) return -1;
    names[first + count * 2] = nameStart;
    names[first + count++ * 2 + 1] = nameEnd;
    at = afterSpace(nameEnd + 1);
    if (bytes[at] !== COLON) return -1;
    at = valueEnd(afterSpace(at + 1), depth);
    if (at < 0) return -1;
    at = afterSpace(at);
    if (at >= end) return -1;
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    if (bytes[at] !== COMMA) return -1;
    at = afterSpace(at + 1);
  }
}

function listEnd(start: number, depth: number): number {
  let at = afterSpace(start + 1);
  if (bytes[at] === CLOSE_BRACKET) return at < end ? at + 1 : -1;
  for (;;) {
    at = valueEnd(at, depth);
    if (at < 0) return -1;
    at = afterSpace(at);
    if (at >= end) return -1;
    if (bytes[at] === CLOSE_BRACKET) return at + 1;
    if (bytes[at] !== COMMA) return -1;
    at = afterSpace(at + 1);
  }
}

/** `depth`: of what holds the value. */
function valueEnd(at: number, depth: number): number {
  const byte = bytes[at] as number;
  if (byte === QUOTE) return stringEnd(at + 1);
  if (byte === MINUS || (byte >= ZERO && byte < COLON)) return numberEnd(at);
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
    if (depth === DEPTH_MAX) return -1;
    if (byte === OPEN_BRACKET) return listEnd(at, depth + 1);
    hasInner = true;
    return objectEnd(at, depth + 1);
  }
  for (const text of LITERALS) if (isTextAt(text, at)) return at + text.length;
  return -1;
}

/** Behind the closing quote of a string without escapes and control characters. */
function stringEnd(start: number): number {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at + 1;
    if (byte === BACKSLASH || byte < 0x20) return -1;
  }
  return -1;
}

/** Exponents are left out, and with them what is too large for a number, and what is too small. */
function numberEnd(start: number): number {
  let at = bytes[start] === MINUS ? start + 1 : start;
  if (bytes[at] === ZERO) {
    if (at > start) return -1;
    at += 1;
  } else {
    const whole = digitsEnd(at);
    if (whole === at) return -1;
    at = whole;
  }
  if (bytes[at] === POINT) {
    const fraction = digitsEnd(at + 1);
    if (fraction === at + 1) return -1;
    at = fraction;
  }
  const next = (bytes[at] as number) | 0x20;
  return next === 0x65 || at - start > NUMBER_BYTES_MAX || at > end ? -1 : at;
}

function digitsEnd(start: number): number {
  let at = start;
  while ((bytes[at] as number) >= ZERO && (bytes[at] as number) < COLON) at += 1;
  return at;
}

function isNewName(first: number, count: number, start: number, nameEnd: number): boolean {
  for (let i = 0; i < count; i++) {
    const other = names[first + i * 2] as number;
    if ((names[first + i * 2 + 1] as number) - other !== nameEnd - start) continue;
    let k = 0;
    while (start + k < nameEnd && bytes[other + k] === bytes[start + k]) k += 1;
    if (start + k === nameEnd) return false;
  }
  // As a member it is one for some, and the prototype for others.
  return nameEnd - start !== PROTO.length || !isTextAt(PROTO, start);
}

function isTextAt(text: Uint8Array, at: number): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text[i]) return false;
  return at + text.length <= end;
}

function afterSpace(from: number): number {
  let at = from;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}
