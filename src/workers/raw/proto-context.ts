import { isUtf8 } from 'node:buffer';
import { WireTokens } from '../../decoding/wire-tokens.ts';
import type { ConditionContext } from '../../model/conditions/conditions.ts';
import { CONTEXT_BYTES_MAX } from './raw-fields.ts';

/** Objects and lists in one another, at most. */
const DEPTH_MAX = 4;
/** Bytes of a length at most: enough for CONTEXT_BYTES_MAX. */
const LENGTH_BYTES_MAX = 2;

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

/** Marks bytes that are no value, or need the general path. */
const UNUSUAL = Symbol('unusual');

type ContextMembers = { [name: string]: unknown };

const tokens = new WireTokens();
let bytes: Buffer = Buffer.alloc(0);
let hasInner = false;

/** Whether the context that was read last holds objects, whose members a condition may see in their order. */
export function isProtoContextNested(): boolean {
  return hasInner;
}

/**
 * The context of a query, a google.protobuf.Struct in [start, end) as encoders write it: each entry a name and a
 * value, each value of one kind. null for any other encoding, names that come twice, numbers that are not finite, text
 * that is not fit, and what is deep or long: the general path decides those. O(bytes).
 */
export function readProtoContext(
  body: Uint8Array,
  start: number,
  end: number,
): ConditionContext | null {
  if (end - start > CONTEXT_BYTES_MAX) return null;
  bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  tokens.open(bytes, start, end);
  hasInner = false;
  const value = readStruct(end, 0);
  return value === UNUSUAL ? null : (value as ContextMembers);
}

function readStruct(end: number, depth: number): unknown {
  const members: ContextMembers = {};
  while (tokens.at < end) {
    const entryEnd = valueEnd(FIELDS, end);
    const nameEnd = valueEnd(ENTRY_KEY, entryEnd);
    const name = readText(nameEnd);
    // Some parsers read it as a member, others as the prototype.
    if (name === null || name === '__proto__' || Object.hasOwn(members, name)) return UNUSUAL;
    if (valueEnd(ENTRY_VALUE, entryEnd) !== entryEnd) return UNUSUAL;
    const value = readValue(entryEnd, depth);
    if (value === UNUSUAL) return UNUSUAL;
    members[name] = value;
  }
  return members;
}

function readList(end: number, depth: number): unknown {
  const values: unknown[] = [];
  while (tokens.at < end) {
    const value = readValue(valueEnd(LIST_VALUES, end), depth);
    if (value === UNUSUAL) return UNUSUAL;
    values.push(value);
  }
  return values;
}

/** The value that ends at `end`, -1 for none; `depth`: of what holds it. */
function readValue(end: number, depth: number): unknown {
  const { at } = tokens;
  if (at >= end) return UNUSUAL;
  const kind = bytes[at] as number;
  switch (kind) {
    case VALUE_NULL:
    case VALUE_BOOL: {
      const value = bytes[at + 1] as number;
      tokens.at = end;
      if (at + 2 !== end || value > (kind === VALUE_NULL ? 0 : 1)) return UNUSUAL;
      return kind === VALUE_NULL ? null : value === 1;
    }
    case VALUE_NUMBER: {
      if (at + 9 !== end) return UNUSUAL;
      const value = bytes.readDoubleLE(at + 1);
      tokens.at = end;
      // JSON has no negative zero, and the general path goes by way of it.
      if (!Number.isFinite(value)) return UNUSUAL;
      return value === 0 ? 0 : value;
    }
    case VALUE_STRING:
    case VALUE_STRUCT:
    case VALUE_LIST:
      if (valueEnd(kind, end) !== end) return UNUSUAL;
      if (kind === VALUE_STRING) return readText(end) ?? UNUSUAL;
      if (depth === DEPTH_MAX) return UNUSUAL;
      if (kind === VALUE_LIST) return readList(end, depth + 1);
      hasInner = true;
      return readStruct(end, depth + 1);
    default:
      return UNUSUAL;
  }
}

/** Reads `tag` and a length: where what follows ends, or -1. */
function valueEnd(tag: number, limit: number): number {
  if (bytes[tokens.at] !== tag) return -1;
  tokens.at += 1;
  return tokens.valueEnd(limit, LENGTH_BYTES_MAX);
}

/** Well-formed text up to `end` without U+0000; null for any other, and where `end` is -1. */
function readText(end: number): string | null {
  if (end < 0) return null;
  const part = bytes.subarray(tokens.at, end);
  tokens.at = end;
  return part.includes(0) || !isUtf8(part) ? null : part.toString('utf8');
}
