import type { JsonTokens } from '../../decoding/json-tokens.ts';
import { JSON_BYTES } from '../../shared/text/json-bytes.ts';
import { CONTEXT_BYTES_MAX, type RawFields } from './raw-fields.ts';

const {
  QUOTE,
  BACKSLASH,
  COMMA,
  OPENING_BRACE,
  CLOSING_BRACE,
  OPENING_BRACKET,
  CLOSING_BRACKET,
  SPACE,
} = JSON_BYTES;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/** Objects and lists in one another, at most; members of one object, at most; characters of a number or literal. */
const DEPTH_MAX = 4;
const MEMBERS_MAX = 32;
const WORD_BYTES_MAX = 24;

const LITERALS = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')] as const;
const PROTO = Buffer.from('__proto__');
/** 1 for bytes that end the plain part of a string: control characters, quote and backslash. */
const STOPS = new Uint8Array(256);
STOPS.fill(1, 0, SPACE);
STOPS[QUOTE] = 1;
STOPS[BACKSLASH] = 1;
/** Starts and ends of the names of the open objects. */
const names = Uint32Array.from({ length: (DEPTH_MAX + 1) * MEMBERS_MAX * 2 });
let hasInner = false;

/**
 * Notes in `fields` the position of the context of a query, an object. False for one that needs the general path, or
 * is none. It scans without making a value: JSON.parse accepts all that it accepts, with the result of the general
 * path. So no escapes, no name twice, no number that is -0 or written with more than 24 characters, nothing deep or
 * long. The body is well-formed UTF-8. Hot: O(bytes), and the square of the members of one object.
 */
export function scanJsonContext(tokens: JsonTokens, fields: RawFields): boolean {
  if (tokens.peek() !== OPENING_BRACE) return false;
  const { at: start, end } = tokens;
  tokens.end = Math.min(end, start + CONTEXT_BYTES_MAX);
  hasInner = false;
  const isTaken = contents(tokens, 0, true);
  tokens.end = end;
  fields.contextStart = start;
  fields.contextEnd = tokens.at;
  fields.isContextNested = hasInner;
  return isTaken;
}

/** An object or list from its bracket on. */
function contents(tokens: JsonTokens, depth: number, isObject: boolean): boolean {
  const closing = isObject ? CLOSING_BRACE : CLOSING_BRACKET;
  tokens.at += 1;
  let next: number = tokens.peek() === closing ? tokens.next() : COMMA;
  for (let count = 0; next === COMMA; count++) {
    if (isObject && !(tokens.plain(STOPS) && isNewName(tokens, depth, count) && tokens.colon())) {
      return false;
    }
    if (!value(tokens, depth)) return false;
    next = tokens.next();
  }
  return next === closing;
}

/** `depth`: of what holds the value. */
function value(tokens: JsonTokens, depth: number): boolean {
  const byte = tokens.peek();
  if (byte === QUOTE) return tokens.plain(STOPS);
  if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
    const isObject = byte === OPENING_BRACE;
    if (isObject) hasInner = true;
    return depth < DEPTH_MAX && contents(tokens, depth + 1, isObject);
  }
  const { bytes, at } = tokens;
  if (!tokens.word(WORD_BYTES_MAX)) return false;
  if (byte <= NINE) return isNumber(bytes, at, tokens.at);
  return LITERALS.some((literal) => isText(literal, bytes, at, tokens.at));
}

/** Exponents are left out, and with them what is too large for a number, and what is too small. */
function isNumber(bytes: Uint8Array, from: number, to: number): boolean {
  const start = bytes[from] === MINUS ? from + 1 : from;
  const whole = digitsEnd(bytes, start);
  if (whole === start || (bytes[start] === ZERO && (start > from || whole > start + 1))) {
    return false;
  }
  if (whole === to) return true;
  return bytes[whole] === POINT && whole + 1 < to && digitsEnd(bytes, whole + 1) === to;
}

/** Ends with the word at the latest: what is behind it is no digit. */
function digitsEnd(bytes: Uint8Array, start: number): number {
  let at = start;
  while ((bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at += 1;
  return at;
}

/** Notes the name that was read last, the one at `count` of its object. */
function isNewName({ bytes, from, to }: JsonTokens, depth: number, count: number): boolean {
  if (count === MEMBERS_MAX) return false;
  const first = depth * MEMBERS_MAX * 2;
  for (let i = 0; i < count; i++) {
    const other = names[first + i * 2] as number;
    if ((names[first + i * 2 + 1] as number) - other !== to - from) continue;
    let k = 0;
    while (from + k < to && bytes[other + k] === bytes[from + k]) k += 1;
    if (from + k === to) return false;
  }
  names[first + count * 2] = from;
  names[first + count * 2 + 1] = to;
  // Some parsers read it as a member, others as the prototype.
  return !isText(PROTO, bytes, from, to);
}

function isText(text: Uint8Array, bytes: Uint8Array, from: number, to: number): boolean {
  if (to - from !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[from + i] !== text[i]) return false;
  return true;
}
