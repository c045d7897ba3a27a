import type { ConditionContext } from '../../model/conditions/conditions.ts';
import { ID_BYTES_MAX } from '../../model/names.ts';

/**
 * Results of the scanners: byte positions into the scanned buffer, no strings. Reused from request to request; a
 * suspended evaluation takes a copy of its items.
 */
export type RawFields = {
  itemCount: number;
  /** FIELDS_PER_ITEM positions per item: start and end of namespace, object, relation, user. */
  items: Uint32Array;
  /** Start and end of project_id, tenant_id and token; equal when absent. */
  readonly scope: Uint32Array;
  /** Start and end of the context of a Check; 0 if there is none. */
  contextStart: number;
  contextEnd: number;
  /** Whether it holds objects. */
  isContextNested: boolean;
  /** The context of a binary body, which is read at once. */
  context: ConditionContext | null;
};

export const FIELD_NAMESPACE = 0;
export const FIELD_OBJECT = 1;
export const FIELD_RELATION = 2;
export const FIELD_USER = 3;
export const FIELD_PROJECT = 4;
export const FIELD_TENANT = 5;
export const FIELD_TOKEN = 6;
export const FIELD_ITEMS = 7;
export const FIELD_CONTEXT = 8;
export const POSITIONS_PER_ITEM = 8;

/** Bits of the fields that an item of a BatchCheck has, all required. */
export const ITEM_FIELDS = 0b1111;
export const LIST_FIELDS = (1 << FIELD_NAMESPACE) | (1 << FIELD_RELATION) | (1 << FIELD_USER);
export const SCOPE_FIELDS = (1 << FIELD_PROJECT) | (1 << FIELD_TENANT) | (1 << FIELD_TOKEN);
export const ITEMS_FIELD = 1 << FIELD_ITEMS;
export const CONTEXT_FIELD = 1 << FIELD_CONTEXT;

/** Bytes of a context at most: it is read, and parsed, without a pause. */
export const CONTEXT_BYTES_MAX = 16 * 1024;

const FIRST_ITEMS = 128;

/** Empty fields; grow with the largest batch seen. */
export function createRawFields(): RawFields {
  return {
    itemCount: 0,
    items: new Uint32Array(FIRST_ITEMS * POSITIONS_PER_ITEM),
    scope: new Uint32Array(6),
    contextStart: 0,
    contextEnd: 0,
    isContextNested: false,
    context: null,
  };
}

/** Forgets scope and context of the body before. */
export function clearFields(fields: RawFields): void {
  fields.scope.fill(0);
  fields.contextStart = 0;
  fields.contextEnd = 0;
  fields.context = null;
}

/** Doubles the capacity for items; amortized O(1). */
export function growItems(fields: RawFields): void {
  const grown = new Uint32Array(fields.items.length * 2);
  grown.set(fields.items);
  fields.items = grown;
}

/** 1 for bytes that are valid in a namespace or relation after its first letter. */
const NAME_BYTE = new Uint8Array(256);
/** 1 for bytes that no id holds: `#` and the control characters of ASCII. */
export const FORBIDDEN_BYTE = new Uint8Array(256);
/** 1 for bytes that end the plain part of a JSON string: those, quote and backslash. */
export const STOP_BYTE = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) {
  const isLower = byte >= 0x61 && byte <= 0x7a;
  const isDigit = byte >= 0x30 && byte <= 0x39;
  NAME_BYTE[byte] = isLower || isDigit || byte === 0x5f || byte === 0x2d ? 1 : 0;
  FORBIDDEN_BYTE[byte] = byte < 0x20 || byte === 0x7f || byte === 0x23 ? 1 : 0;
  STOP_BYTE[byte] = FORBIDDEN_BYTE[byte] === 1 || byte === 0x22 || byte === 0x5c ? 1 : 0;
}

const NAME_BYTES_MAX = 64;

/** Whether [start, end) is a namespace or relation: `[a-z][a-z0-9_-]{0,63}`. Hot. */
function isName(bytes: Uint8Array, start: number, end: number): boolean {
  const length = end - start;
  if (length < 1 || length > NAME_BYTES_MAX) return false;
  const first = bytes[start] as number;
  if (first < 0x61 || first > 0x7a) return false;
  for (let i = start + 1; i < end; i++) {
    if (NAME_BYTE[bytes[i] as number] === 0) return false;
  }
  return true;
}

/** Whether the length of an id is allowed; its bytes were checked by the scanner. */
function isIdLength(start: number, end: number): boolean {
  const length = end - start;
  return length >= 1 && length <= ID_BYTES_MAX;
}

/** Whether two ranges of one buffer hold the same bytes. Hot. */
export function sameBytes(
  bytes: Uint8Array,
  aStart: number,
  aEnd: number,
  bStart: number,
  bEnd: number,
): boolean {
  if (aEnd - aStart !== bEnd - bStart) return false;
  for (let a = aStart, b = bStart; a < aEnd; a++, b++) {
    if (bytes[a] !== bytes[b]) return false;
  }
  return true;
}

/**
 * Keeps the positions of the value of `field`, of the item at `base` or of the scope; false if it is no valid name or
 * id. None of its bytes is a FORBIDDEN_BYTE. Both scanners call this, so that they accept the same. Hot.
 */
export function keepValue(
  bytes: Uint8Array,
  fields: RawFields,
  field: number,
  base: number,
  start: number,
  end: number,
): boolean {
  if (field >= FIELD_PROJECT) {
    const { scope } = fields;
    scope[(field - FIELD_PROJECT) * 2] = start;
    scope[(field - FIELD_PROJECT) * 2 + 1] = end;
    return true;
  }
  const { items } = fields;
  const slot = base + field * 2;
  items[slot] = start;
  items[slot + 1] = end;
  return isFit(bytes, items, field, slot, start, end);
}

/** Whether [start, end) is a valid name or id for `field`, whose positions of its item are at `slot`. Hot. */
export function isFit(
  bytes: Uint8Array,
  items: Uint32Array,
  field: number,
  slot: number,
  start: number,
  end: number,
): boolean {
  if (field === FIELD_OBJECT || field === FIELD_USER) return isIdLength(start, end);
  // Items of a batch mostly repeat the names of the one before, which were checked.
  const before = slot - POSITIONS_PER_ITEM;
  if (
    before >= 0 &&
    sameBytes(bytes, items[before] as number, items[before + 1] as number, start, end)
  ) {
    return true;
  }
  return isName(bytes, start, end);
}

/** Whether [start, end) is exactly this ASCII text; a text beyond ASCII never equals. */
export function equalsText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f || bytes[start + i] !== unit) return false;
  }
  return true;
}

/**
 * Whether non-ASCII bytes of a body are fit for ids: no C1 control character (C2 80 … C2 9F). The
 * caller has made sure of well-formed UTF-8.
 */
export function hasControlBeyondAscii(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end - 1; i++) {
    if (bytes[i] === 0xc2 && (bytes[i + 1] as number) < 0xa0) return true;
  }
  return false;
}
