import { isUtf8 } from 'node:buffer';
import type { ConditionContext } from '../../model/conditions.ts';
import { CONTEXT_BYTES_MAX } from './raw-fields.ts';

/** Objects and lists in one another, at most. */
const DEPTH_MAX = 4;

// Tags of google.protobuf.Struct, its entries, Value and ListValue.
const FIELDS = 0x0a;
const ENTRY_KEY = 0x0a;
const ENTRY_VALUE = 0x12;
const VALUE_NULL = 0x08;
const VALUE_NUMBER = 0x11;
const VALUE_STRING = 0x1a;
const VALUE_BOOL = 0x20;
const VALUE_STRUCT = 0x2a;
const VALUE_LIST = 0x32;
const LIST_VALUES = 0x0a;

/** What is no value, or needs thought. */
const UNUSUAL = Symbol('unusual');

type ContextMembers = { [name: string]: unknown };

let bytes: Buffer = Buffer.alloc(0);
/** Where the next byte is read. */
let at = 0;
let hasInner = false;

/** Whether the context that was read last holds objects, whose members a condition may see in their order. */
export function isProtoContextNested(): boolean {
  return hasInner;
}

/**
 * The context of a query, a google.protobuf.Struct in [start, end) as encoders write it: each entry a name and a value, each
 * value of one kind. null for what is written otherwise, names that come twice, numbers that are not finite, text that is
 * not fit, and what is deep or long: the general path says what it is. O(bytes).
 */
export function readProtoContext(
  body: Uint8Array,
  start: number,
  end: number,
): ConditionContext | null {
  if (end - start > CONTEXT_BYTES_MAX) return null;
  bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  at = start;
  hasInner = false;
  const value = readStruct(end, 0);
  return value === UNUSUAL ? null : (value as ContextMembers);
}

function readStruct(end: number, depth: number): unknown {
  const members: ContextMembers = {};
  while (at < end) {
    const entryEnd = lengthOf(FIELDS, end);
    if (entryEnd < 0) return UNUSUAL;
    const nameEnd = lengthOf(ENTRY_KEY, entryEnd);
    if (nameEnd < 0) return UNUSUAL;
    const name = readText(nameEnd);
    // As a member it is one for some, and the prototype for others.
    if (name === null || name === '__proto__' || Object.hasOwn(members, name)) return UNUSUAL;
    if (lengthOf(ENTRY_VALUE, entryEnd) !== entryEnd) return UNUSUAL;
    const value = readValue(entryEnd, depth);
    if (value === UNUSUAL) return UNUSUAL;
    members[name] = value;
  }
  return members;
}

function readList(end: number, depth: number): unknown {
  const values: unknown[] = [];
  while (at < end) {
    const valueEnd = lengthOf(LIST_VALUES, end);
    if (valueEnd < 0) return UNUSUAL;
    const value = readValue(valueEnd, depth);
    if (value === UNUSUAL) return UNUSUAL;
    values.push(value);
  }
  return values;
}

/** The value that ends at `end`; `depth`: of what holds it. */
function readValue(end: number, depth: number): unknown {
  if (at >= end) return UNUSUAL;
  switch (bytes[at]) {
    case VALUE_NULL:
    case VALUE_BOOL: {
      const isNull = bytes[at] === VALUE_NULL;
      const value = bytes[at + 1] as number;
      at += 2;
      if (at !== end || value > (isNull ? 0 : 1)) return UNUSUAL;
      return isNull ? null : value === 1;
    }
    case VALUE_NUMBER: {
      if (at + 9 !== end) return UNUSUAL;
      const value = bytes.readDoubleLE(at + 1);
      at = end;
      // JSON has no negative zero, and the general path goes by way of it.
      if (!Number.isFinite(value)) return UNUSUAL;
      return value === 0 ? 0 : value;
    }
    case VALUE_STRING:
      return lengthOf(VALUE_STRING, end) === end ? (readText(end) ?? UNUSUAL) : UNUSUAL;
    case VALUE_STRUCT:
    case VALUE_LIST: {
      const isStruct = bytes[at] === VALUE_STRUCT;
      if (depth === DEPTH_MAX || lengthOf(bytes[at] as number, end) !== end) return UNUSUAL;
      if (isStruct) hasInner = true;
      return isStruct ? readStruct(end, depth + 1) : readList(end, depth + 1);
    }
    default:
      return UNUSUAL;
  }
}

/** Reads `tag` and a length of at most two bytes; where what it speaks of ends, or -1. */
function lengthOf(tag: number, end: number): number {
  if (bytes[at] !== tag || at + 1 >= end) return -1;
  let length = bytes[at + 1] as number;
  at += 2;
  if (length > 0x7f) {
    const high = bytes[at] as number;
    if (at >= end || high > 0x7f) return -1;
    length = (length & 0x7f) | (high << 7);
    at += 1;
  }
  return at + length <= end ? at + length : -1;
}

/** Well-formed text up to `end` without U+0000; null for any other. */
function readText(end: number): string | null {
  const from = at;
  at = end;
  const part = bytes.subarray(from, end);
  return part.includes(0) || !isUtf8(part) ? null : part.toString('utf8');
}
