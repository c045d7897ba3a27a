import { fieldError } from '../../model/reasons.ts';
import { utf8Length } from '../../shared/text/utf8.ts';

/** Longest string that the index can hold, in UTF-8 bytes. */
export const TEXT_BYTES_MAX = 0xffff;

/**
 * The string at work, as UTF-8 bytes packed into little-endian words, zeros behind its end. One per
 * thread: every user fills it and reads it again before anything else can run.
 */
export const scratchWords = new Uint32Array(TEXT_BYTES_MAX / 4 + 2);
const scratchBytes = new Uint8Array(scratchWords.buffer);
const encoder = new TextEncoder();

// Secret odd multipliers: two rounds a word, so that no fixed set of ids collides in every process.
const [KEY_1, KEY_2] = randomKeys();

if (new Uint8Array(new Uint32Array([1]).buffer)[0] !== 1) {
  throw new Error('the tuple index needs a little-endian machine');
}

/**
 * Packs `text` into the scratch. Returns its length in UTF-8 bytes, or -1 if it is ill-formed or too
 * long (no stored string equals it). ASCII needs no encoder and allocates nothing. Hot.
 */
export function loadText(text: string): number {
  const length = text.length;
  if (length > TEXT_BYTES_MAX) return -1;
  let seen = 0;
  let at = 0;
  let i = 0;
  for (; i + 4 <= length; i += 4) {
    const a = text.charCodeAt(i);
    const b = text.charCodeAt(i + 1);
    const c = text.charCodeAt(i + 2);
    const d = text.charCodeAt(i + 3);
    seen |= a | b | c | d;
    scratchWords[at++] = a | (b << 8) | (c << 16) | (d << 24);
  }
  let last = 0;
  for (let shift = 0; i < length; i++, shift += 8) {
    const code = text.charCodeAt(i);
    seen |= code;
    last |= code << shift;
  }
  scratchWords[at] = last;
  return seen < 0x80 ? length : loadUnicode(text);
}

function loadUnicode(text: string): number {
  // A code unit takes three bytes at most: shorter texts need not be counted.
  if (text.length * 3 > TEXT_BYTES_MAX && utf8Length(text) > TEXT_BYTES_MAX) return -1;
  if (!text.isWellFormed()) return -1;
  const length = encoder.encodeInto(text, scratchBytes).written;
  scratchBytes.fill(0, length, (length + 4) & ~3);
  return length;
}

/** Packs the UTF-8 bytes [start, end) into the scratch. Returns their number, or -1 if too many. Hot. */
export function loadBytes(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  if (length > TEXT_BYTES_MAX) return -1;
  let at = 0;
  let i = start;
  for (; i + 4 <= end; i += 4) scratchWords[at++] = wordAt(bytes, i);
  scratchWords[at] = i < end ? lastWordAt(bytes, i, end) : 0;
  return length;
}

/** `hashScratch` of the bytes [start, end) without the scratch; any value if they are too many. Hot. */
export function hashBytes(bytes: Uint8Array, start: number, end: number, owner: number): number {
  const length = end - start;
  if (length > TEXT_BYTES_MAX) return 0;
  let hash = mix(length, owner);
  let i = start;
  for (; i + 4 <= end; i += 4) hash = mix(hash, wordAt(bytes, i));
  return i < end ? mix(hash, lastWordAt(bytes, i, end)) : hash;
}

/** Four bytes as one little-endian word (int32). Hot. */
export function wordAt(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) |
    ((bytes[at + 1] as number) << 8) |
    ((bytes[at + 2] as number) << 16) |
    ((bytes[at + 3] as number) << 24)
  );
}

/** The one to three bytes from `at` on to `end`, padded with zeros. Hot. */
export function lastWordAt(bytes: Uint8Array, at: number, end: number): number {
  let word = bytes[at] as number;
  if (at + 1 < end) word |= (bytes[at + 1] as number) << 8;
  if (at + 2 < end) word |= (bytes[at + 2] as number) << 16;
  return word;
}

/** Hash (int32) of the scratch's first `length` bytes under `owner` (a namespace). Hot. */
export function hashScratch(length: number, owner: number): number {
  let hash = mix(length, owner);
  const words = (length + 3) >>> 2;
  for (let i = 0; i < words; i++) hash = mix(hash, scratchWords[i] as number);
  return hash;
}

/** Two keyed multiplications over the xor: the round of every hash of the index. Hot. */
export function mix(hash: number, word: number): number {
  let mixed = Math.imul(hash ^ word, KEY_1);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, KEY_2);
  return mixed ^ (mixed >>> 13);
}

/** Two odd numbers from 2 ** 30 to 2 ** 31. */
function randomKeys(): readonly [number, number] {
  const [first = 0, second = 0] = crypto.getRandomValues(new Uint32Array(2));
  return [(first & 0x3fff_ffff) | 0x4000_0001, (second & 0x3fff_ffff) | 0x4000_0001];
}

/** Hash (int32) of a pair of ids. Hot. */
export function hashPair(a: number, b: number): number {
  return mix(mix(0x5bd1_e995, a), b);
}

/** `length` as loadText or loadBytes returned it, unless the string cannot be stored: FIELD_INVALID. */
export function mustFit(length: number): number {
  if (length < 0) throw fieldError('tuple', 'a string is ill-formed or longer than 65,535 bytes');
  return length;
}
