import { isUtf8 } from 'node:buffer';
import { isProtoContextNested, readProtoContext } from './proto-context.ts';
import type { RawFields } from './raw-fields.ts';
import {
  FIELD_CONTEXT,
  FIELD_ITEMS,
  FIELD_NAMESPACE,
  FIELD_OBJECT,
  FIELD_PROJECT,
  FIELD_RELATION,
  FIELD_TENANT,
  FIELD_TOKEN,
  FIELD_USER,
  ITEMS_FIELD,
  ITEM_FIELDS,
  FORBIDDEN_BYTE,
  LIST_FIELDS,
  POSITIONS_PER_ITEM,
  clearFields,
  growItems,
  hasControlBeyondAscii,
  keepValue,
} from './raw-fields.ts';

/** Field numbers of the messages in authz_service.proto → our fields; -1 is not for the hot path. */
const CHECK_REQUEST = [
  -1,
  FIELD_NAMESPACE,
  FIELD_OBJECT,
  FIELD_RELATION,
  FIELD_USER,
  -1,
  FIELD_CONTEXT,
  FIELD_PROJECT,
  FIELD_TENANT,
  FIELD_TOKEN,
];
const BATCH_CHECK_REQUEST = [-1, FIELD_PROJECT, FIELD_TENANT, FIELD_ITEMS, FIELD_TOKEN];
const BATCH_CHECK_ITEM = [-1, FIELD_NAMESPACE, FIELD_OBJECT, FIELD_RELATION, FIELD_USER];
const LIST_OBJECTS_REQUEST = [
  -1,
  FIELD_NAMESPACE,
  FIELD_RELATION,
  FIELD_USER,
  FIELD_PROJECT,
  FIELD_TENANT,
  FIELD_TOKEN,
];

const WIRE_LENGTH_DELIMITED = 2;
/** As in JsonScanner. */
const ITEMS_BETWEEN_LOOKS = 255;

/**
 * Hot. The binary counterpart of JsonScanner: every field of the hot requests is a string, a
 * nested item or the context, so each tag is one byte of wire type 2. Anything else (unknown or repeated fields,
 * other wire types, long tags) is `false` and goes the general path. O(bytes), allocates nothing
 * but room for a larger batch, and what a context holds.
 */
export class ProtoScanner {
  readonly #fields: RawFields;
  readonly #itemsMax: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  /** Of a batch that is read in slices, as in JsonScanner. */
  #end = 0;
  #seen = 0;
  #sliceEndMs = Infinity;
  #isPaused = false;

  constructor(fields: RawFields, itemsMax: number) {
    this.#fields = fields;
    this.#itemsMax = itemsMax;
  }

  check(bytes: Uint8Array, start: number, end: number): boolean {
    this.#begin(bytes, start, 1);
    return (this.#message(CHECK_REQUEST, end, 0) & ITEM_FIELDS) === ITEM_FIELDS;
  }

  batchCheck(bytes: Uint8Array, start: number, end: number): boolean {
    this.#begin(bytes, start, 0);
    return (this.#message(BATCH_CHECK_REQUEST, end, 0) & ITEMS_FIELD) !== 0;
  }

  /** As that of JsonScanner. */
  startBatch(bytes: Uint8Array, start: number, end: number, sliceEndMs: number): boolean | null {
    this.#begin(bytes, start, 0);
    this.#end = end;
    this.#seen = 0;
    return this.resumeBatch(bytes, sliceEndMs);
  }

  /** As that of JsonScanner. */
  resumeBatch(bytes: Uint8Array, sliceEndMs: number): boolean | null {
    this.#bytes = bytes;
    this.#isPaused = false;
    this.#sliceEndMs = sliceEndMs;
    const seen = this.#message(BATCH_CHECK_REQUEST, this.#end, 0, this.#seen);
    this.#sliceEndMs = Infinity;
    if (this.#isPaused) {
      this.#seen = seen;
      return null;
    }
    return (seen & ITEMS_FIELD) !== 0;
  }

  listObjects(bytes: Uint8Array, start: number, end: number): boolean {
    this.#begin(bytes, start, 1);
    return (this.#message(LIST_OBJECTS_REQUEST, end, 0) & LIST_FIELDS) === LIST_FIELDS;
  }

  #begin(bytes: Uint8Array, start: number, itemCount: number): void {
    this.#sliceEndMs = Infinity;
    this.#bytes = bytes;
    this.#at = start;
    this.#fields.itemCount = itemCount;
    clearFields(this.#fields);
  }

  /** The fields of one message as bits, with those `before`; 0 when it is not plain. */
  #message(numbers: readonly number[], end: number, base: number, before = 0): number {
    const bytes = this.#bytes;
    let seen = before;
    while (this.#at < end) {
      const tag = bytes[this.#at] as number;
      this.#at += 1;
      if ((tag & 7) !== WIRE_LENGTH_DELIMITED || tag > 0x7f) return 0;
      const field = numbers[tag >> 3] ?? -1;
      if (field < 0) return 0;
      const bit = 1 << field;
      if (field !== FIELD_ITEMS && (seen & bit) !== 0) return 0;
      seen |= bit;
      const length = this.#length();
      const start = this.#at;
      if (length < 0 || start + length > end) return 0;
      if (field === FIELD_ITEMS) {
        if (!this.#item(start + length)) return 0;
        const { itemCount } = this.#fields;
        if (
          (itemCount & ITEMS_BETWEEN_LOOKS) === ITEMS_BETWEEN_LOOKS &&
          start + length < end &&
          performance.now() >= this.#sliceEndMs
        ) {
          this.#at = start + length;
          this.#isPaused = true;
          return seen;
        }
      } else if (field === FIELD_CONTEXT) {
        if (!this.#context(start, start + length)) return 0;
      } else if (!this.#value(field, start, start + length, base)) return 0;
      this.#at = start + length;
    }
    return seen;
  }

  #item(end: number): boolean {
    const fields = this.#fields;
    if (fields.itemCount >= this.#itemsMax) return false;
    const base = fields.itemCount * POSITIONS_PER_ITEM;
    if (base + POSITIONS_PER_ITEM > fields.items.length) growItems(fields);
    fields.itemCount += 1;
    return this.#message(BATCH_CHECK_ITEM, end, base) === ITEM_FIELDS;
  }

  #context(start: number, end: number): boolean {
    const fields = this.#fields;
    const context = readProtoContext(this.#bytes, start, end);
    if (context === null) return false;
    fields.contextStart = start;
    fields.contextEnd = end;
    fields.isContextNested = isProtoContextNested();
    fields.context = context;
    return true;
  }

  #value(field: number, start: number, end: number, base: number): boolean {
    const bytes = this.#bytes;
    let isBeyondAscii = false;
    for (let i = start; i < end; i++) {
      const byte = bytes[i] as number;
      // Quotes and backslashes are plain here.
      if (FORBIDDEN_BYTE[byte] !== 0) return false;
      if (byte > 0x7f) isBeyondAscii = true;
    }
    if (
      isBeyondAscii &&
      (!isUtf8(bytes.subarray(start, end)) || hasControlBeyondAscii(bytes, start, end))
    ) {
      return false;
    }
    return keepValue(bytes, this.#fields, field, base, start, end);
  }

  /** A varint of at most four bytes; -1 when longer. */
  #length(): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = bytes[this.#at];
      if (byte === undefined) return -1;
      this.#at += 1;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return -1;
  }
}
