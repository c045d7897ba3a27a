import { isUtf8 } from 'node:buffer';
import { LENGTH_DELIMITED, WireTokens } from '../../decoding/wire-tokens.ts';
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

const SCOPE = [FIELD_PROJECT, FIELD_TENANT, FIELD_TOKEN];
/** Field numbers of the messages in authz_service.proto → our fields; -1 is not for the hot path. */
const BATCH_CHECK_ITEM = [-1, FIELD_NAMESPACE, FIELD_OBJECT, FIELD_RELATION, FIELD_USER];
const CHECK_REQUEST = [...BATCH_CHECK_ITEM, -1, FIELD_CONTEXT, ...SCOPE];
const BATCH_CHECK_REQUEST = [-1, FIELD_PROJECT, FIELD_TENANT, FIELD_ITEMS, FIELD_TOKEN];
const LIST_OBJECTS_REQUEST = [-1, FIELD_NAMESPACE, FIELD_RELATION, FIELD_USER, ...SCOPE];

/** Bits of a byte that are the wire type, and whether the tag continues. */
const ONE_BYTE_TAG = 0x87;
/** Bytes of a length at most. */
const LENGTH_BYTES_MAX = 4;
/** The same as in JsonScanner. */
const ITEMS_PER_CLOCK_READ = 255;
/** Replaces the fields of a message that is read on later. */
const PAUSED = -1;

/**
 * Hot. The binary counterpart of JsonScanner: every field of the hot requests is a string, a
 * nested item or the context, so each tag is one byte of wire type 2. Anything else (unknown or repeated fields,
 * other wire types, long tags) is `false` and goes the general path. O(bytes), allocates nothing
 * but memory for a larger batch, and what a context holds.
 */
export class ProtoScanner {
  readonly #fields: RawFields;
  readonly #itemsMax: number;
  readonly #tokens = new WireTokens();
  /** Fields that a batch had when it paused. */
  #seen = 0;
  #sliceEndMs = Infinity;

  constructor(fields: RawFields, itemsMax: number) {
    this.#fields = fields;
    this.#itemsMax = itemsMax;
  }

  check(bytes: Uint8Array, start: number, end: number): boolean {
    this.#begin(bytes, start, end, 1);
    return (this.#message(CHECK_REQUEST, end, 0, 0) & ITEM_FIELDS) === ITEM_FIELDS;
  }

  listObjects(bytes: Uint8Array, start: number, end: number): boolean {
    this.#begin(bytes, start, end, 1);
    return (this.#message(LIST_OBJECTS_REQUEST, end, 0, 0) & LIST_FIELDS) === LIST_FIELDS;
  }

  batchCheck(bytes: Uint8Array, start: number, end: number): boolean {
    return this.startBatch(bytes, start, end, Infinity) === true;
  }

  /** The counterpart of that of JsonScanner. */
  startBatch(bytes: Uint8Array, start: number, end: number, sliceEndMs: number): boolean | null {
    this.#begin(bytes, start, end, 0);
    return this.resumeBatch(bytes, sliceEndMs);
  }

  /** The counterpart of that of JsonScanner. */
  resumeBatch(bytes: Uint8Array, sliceEndMs: number): boolean | null {
    this.#tokens.bytes = bytes;
    this.#sliceEndMs = sliceEndMs;
    const seen = this.#message(BATCH_CHECK_REQUEST, this.#tokens.end, 0, this.#seen);
    return seen === PAUSED ? null : (seen & ITEMS_FIELD) !== 0;
  }

  #begin(bytes: Uint8Array, start: number, end: number, itemCount: number): void {
    this.#tokens.open(bytes, start, end);
    this.#seen = 0;
    this.#fields.itemCount = itemCount;
    clearFields(this.#fields);
  }

  /** The fields of one message as bits, with those `before`; 0 when it is not plain. */
  #message(numbers: readonly number[], end: number, base: number, before: number): number {
    const tokens = this.#tokens;
    const { bytes } = tokens;
    let seen = before;
    while (tokens.at < end) {
      const tag = bytes[tokens.at] as number;
      tokens.at += 1;
      if ((tag & ONE_BYTE_TAG) !== LENGTH_DELIMITED) return 0;
      const field = numbers[tag >> 3] ?? -1;
      if (field < 0) return 0;
      const bit = 1 << field;
      if (field !== FIELD_ITEMS && (seen & bit) !== 0) return 0;
      seen |= bit;
      const valueEnd = tokens.valueEnd(end, LENGTH_BYTES_MAX);
      const start = tokens.at;
      if (valueEnd < 0) return 0;
      if (field === FIELD_ITEMS) {
        if (!this.#item(valueEnd)) return 0;
        const isLook = (this.#fields.itemCount & ITEMS_PER_CLOCK_READ) === ITEMS_PER_CLOCK_READ;
        if (isLook && valueEnd < end && performance.now() >= this.#sliceEndMs) {
          this.#seen = seen;
          return PAUSED;
        }
      } else if (field === FIELD_CONTEXT) {
        if (!this.#context(start, valueEnd)) return 0;
      } else if (!this.#value(bytes, field, start, valueEnd, base)) return 0;
      tokens.at = valueEnd;
    }
    return seen;
  }

  #item(end: number): boolean {
    const fields = this.#fields;
    if (fields.itemCount >= this.#itemsMax) return false;
    const base = fields.itemCount * POSITIONS_PER_ITEM;
    if (base + POSITIONS_PER_ITEM > fields.items.length) growItems(fields);
    fields.itemCount += 1;
    return this.#message(BATCH_CHECK_ITEM, end, base, 0) === ITEM_FIELDS;
  }

  #context(start: number, end: number): boolean {
    const fields = this.#fields;
    const context = readProtoContext(this.#tokens.bytes, start, end);
    if (context === null) return false;
    fields.contextStart = start;
    fields.contextEnd = end;
    fields.isContextNested = isProtoContextNested();
    fields.context = context;
    return true;
  }

  #value(bytes: Uint8Array, field: number, start: number, end: number, base: number): boolean {
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
}
