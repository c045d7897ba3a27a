import { isAscii, isUtf8 } from 'node:buffer';
import { isContextNested, scanJsonContext } from './json-context.ts';
import type { RawFields } from './raw-fields.ts';
import {
  CONTEXT_FIELD,
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
  LIST_FIELDS,
  POSITIONS_PER_ITEM,
  SCOPE_FIELDS,
  STOP_BYTE,
  clearFields,
  growItems,
  hasControlBeyondAscii,
  isFit,
  keepValue,
} from './raw-fields.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;

/** Values of an item. */
const VALUES = 4;
const SHAPE_STRIDE = 3;
/** One less than the items between two looks at the clock: cold, they take some tenths of a millisecond. */
const ITEMS_BETWEEN_LOOKS = 255;

type ScannedKey = { readonly text: Uint8Array; readonly field: number };

/** Both spellings that protobuf JSON accepts; the two of one field share its bit. */
const KEYS_BY_LENGTH: (readonly ScannedKey[])[] = Array.from({ length: 32 }, () => []);
for (const [field, names] of [
  [FIELD_NAMESPACE, ['namespace']],
  [FIELD_OBJECT, ['object_id', 'objectId']],
  [FIELD_RELATION, ['relation']],
  [FIELD_USER, ['subject_user_id', 'subjectUserId']],
  [FIELD_PROJECT, ['project_id', 'projectId']],
  [FIELD_TENANT, ['tenant_id', 'tenantId']],
  [FIELD_TOKEN, ['at_least_consistency_token', 'atLeastConsistencyToken']],
  [FIELD_ITEMS, ['items']],
  [FIELD_CONTEXT, ['context']],
] as const) {
  for (const name of names) {
    const keys = KEYS_BY_LENGTH[name.length] ?? [];
    KEYS_BY_LENGTH[name.length] = [...keys, { text: Buffer.from(name), field }];
  }
}

/**
 * Hot. A strict scanner of the three hot request bodies in JSON. It accepts only what needs no
 * thought: known keys once each, plain strings without escapes, valid names and ids, every
 * required field. Everything else, also what is perfectly valid, is `false`: the general path
 * takes the request. So its answers cannot differ from the general path's, only be absent.
 * O(bytes); allocates nothing but room for a larger batch.
 */
export class JsonScanner {
  readonly #fields: RawFields;
  readonly #itemsMax: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #isAllAscii = false;
  #at = 0;
  #end = 0;
  /** Of the first item: where the bytes before each value start and end, and its field; then those behind the last. */
  readonly #shape = new Uint32Array((VALUES + 1) * SHAPE_STRIDE);
  /** Of a batch that is read in slices: where the present one ends, and the fields seen before its items. */
  #sliceEndMs = Infinity;
  #isPaused = false;
  #seenAtItems = 0;

  constructor(fields: RawFields, itemsMax: number) {
    this.#fields = fields;
    this.#itemsMax = itemsMax;
  }

  check(bytes: Uint8Array, start: number, end: number): boolean {
    this.#fields.itemCount = 1;
    return this.#scan(bytes, start, end, ITEM_FIELDS | SCOPE_FIELDS | CONTEXT_FIELD, ITEM_FIELDS);
  }

  batchCheck(bytes: Uint8Array, start: number, end: number): boolean {
    this.#fields.itemCount = 0;
    return this.#scan(bytes, start, end, ITEMS_FIELD | SCOPE_FIELDS, ITEMS_FIELD);
  }

  /**
   * As `batchCheck`, in slices until the monotonic clock passed `sliceEndMs`: null says that there is more, for
   * `resumeBatch`. The scanner and its fields are this batch's alone until then.
   */
  startBatch(bytes: Uint8Array, start: number, end: number, sliceEndMs: number): boolean | null {
    this.#sliceEndMs = sliceEndMs;
    this.#isPaused = false;
    const isScanned = this.batchCheck(bytes, start, end);
    this.#sliceEndMs = Infinity;
    return this.#isPaused ? null : isScanned;
  }

  /** Goes on. `bytes` hold the same at the same positions, be it in other memory. */
  resumeBatch(bytes: Uint8Array, sliceEndMs: number): boolean | null {
    this.#bytes = bytes;
    this.#sliceEndMs = sliceEndMs;
    const isScanned = this.#resume();
    this.#sliceEndMs = Infinity;
    return this.#isPaused ? null : isScanned;
  }

  #resume(): boolean {
    this.#isPaused = false;
    if (!this.#items(this.#fields.itemCount)) return false;
    this.#skipSpace();
    const next = this.#bytes[this.#at];
    this.#at += 1;
    let seen = -1;
    if (next === COMMA) seen = this.#members(this.#seenAtItems, 0, ITEMS_FIELD | SCOPE_FIELDS);
    else if (next === CLOSE_BRACE && this.#at <= this.#end) seen = this.#seenAtItems;
    return this.#isWhole(seen, ITEMS_FIELD);
  }

  listObjects(bytes: Uint8Array, start: number, end: number): boolean {
    this.#fields.itemCount = 1;
    return this.#scan(bytes, start, end, LIST_FIELDS | SCOPE_FIELDS, LIST_FIELDS);
  }

  #scan(bytes: Uint8Array, start: number, end: number, allowed: number, required: number): boolean {
    if (!this.#isPlainText(bytes, start, end)) return false;
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    this.#isPaused = false;
    clearFields(this.#fields);
    this.#skipSpace();
    return this.#isWhole(this.#object(0, allowed), required);
  }

  #isWhole(seen: number, required: number): boolean {
    if (seen < 0 || (seen & required) !== required) return false;
    this.#skipSpace();
    return this.#at >= this.#end; // past it only by space of the next body
  }

  /** Bodies of one message share a buffer, which mostly is ASCII as a whole: looked at once, so it must not change. */
  #isPlainText(bytes: Uint8Array, start: number, end: number): boolean {
    if (bytes !== this.#bytes) this.#isAllAscii = isAscii(bytes);
    if (this.#isAllAscii) return true;
    const body = bytes.subarray(start, end);
    return isAscii(body) || (isUtf8(body) && !hasControlBeyondAscii(bytes, start, end));
  }

  /** The fields of one object as bits, or -1. `base` is where the positions of an item go. */
  #object(base: number, allowed: number): number {
    if (this.#bytes[this.#at] !== OPEN_BRACE) return -1;
    this.#at += 1;
    return this.#members(0, base, allowed);
  }

  /** As `#object`, from a key on; `before` are the fields before it. */
  #members(before: number, base: number, allowed: number): number {
    const bytes = this.#bytes;
    let seen = before;
    for (;;) {
      this.#skipSpace();
      const field = this.#key();
      if (field < 0) return -1;
      const bit = 1 << field;
      if ((allowed & bit) === 0 || (seen & bit) !== 0) return -1;
      seen |= bit;
      if (field === FIELD_ITEMS) {
        this.#seenAtItems = seen;
        if (bytes[this.#at] !== OPEN_BRACKET) return -1;
        this.#at += 1;
        if (!this.#items(0)) return -1;
      } else if (field === FIELD_CONTEXT) {
        if (!this.#context()) return -1;
      } else if (!this.#value(field, base)) return -1;
      this.#skipSpace();
      const next = bytes[this.#at];
      this.#at += 1;
      if (next === CLOSE_BRACE) return this.#at <= this.#end ? seen : -1;
      if (next !== COMMA) return -1;
    }
  }

  /** The field of the key at #at, left after its colon and space; -1 is any other key. */
  #key(): number {
    const bytes = this.#bytes;
    const start = this.#at + 1;
    if (bytes[start - 1] !== QUOTE) return -1;
    let end = start;
    while (STOP_BYTE[bytes[end] as number] === 0) end += 1;
    if (bytes[end] !== QUOTE || end >= this.#end) return -1;
    const length = end - start;
    if (length >= KEYS_BY_LENGTH.length) return -1;
    this.#at = end + 1;
    this.#skipSpace();
    if (bytes[this.#at] !== COLON) return -1;
    this.#at += 1;
    this.#skipSpace();
    const candidates = KEYS_BY_LENGTH[length] as readonly ScannedKey[]; // length checked above
    for (let i = 0; i < candidates.length; i++) {
      const { text, field } = candidates[i] as ScannedKey; // below length
      let k = 0;
      while (k < length && text[k] === bytes[start + k]) k += 1;
      if (k === length) return field;
    }
    return -1;
  }

  #context(): boolean {
    const fields = this.#fields;
    const end = scanJsonContext(this.#bytes, this.#at, this.#end);
    if (end < 0) return false;
    fields.contextStart = this.#at;
    fields.contextEnd = end;
    fields.isContextNested = isContextNested();
    this.#at = end;
    return true;
  }

  #value(field: number, base: number): boolean {
    const bytes = this.#bytes;
    const start = this.#at + 1;
    if (bytes[start - 1] !== QUOTE) return false;
    let end = start;
    while (STOP_BYTE[bytes[end] as number] === 0) end += 1;
    if (bytes[end] !== QUOTE || end >= this.#end) return false;
    this.#at = end + 1;
    return keepValue(bytes, this.#fields, field, base, start, end);
  }

  /** From item `first` on. False as well where the slice ends, which #isPaused says. */
  #items(first: number): boolean {
    const bytes = this.#bytes;
    const fields = this.#fields;
    let count = first;
    for (;;) {
      if ((count & ITEMS_BETWEEN_LOOKS) === ITEMS_BETWEEN_LOOKS && count !== first) {
        if (performance.now() >= this.#sliceEndMs) {
          fields.itemCount = count;
          this.#isPaused = true;
          return false;
        }
      }
      if (count >= this.#itemsMax) return false;
      const base = count * POSITIONS_PER_ITEM;
      if (base + POSITIONS_PER_ITEM > fields.items.length) growItems(fields);
      this.#skipSpace();
      const start = this.#at;
      const end = count === 0 ? -1 : this.#likeFirst(start, base);
      if (end >= 0) this.#at = end;
      else {
        if (this.#object(base, ITEM_FIELDS) !== ITEM_FIELDS) return false;
        if (count === 0) this.#keepShape(start, base);
      }
      count += 1;
      this.#skipSpace();
      const next = bytes[this.#at];
      this.#at += 1;
      if (next === COMMA) continue;
      fields.itemCount = count;
      return next === CLOSE_BRACKET;
    }
  }

  /** Notes the order of the fields of the first item and the bytes between their values. */
  #keepShape(start: number, base: number): void {
    const { items } = this.#fields;
    const shape = this.#shape;
    let from = start;
    for (let i = 0; i < VALUES; i++) {
      let next = 0;
      let nextStart = 0xffff_ffff;
      for (let field = 0; field < VALUES; field++) {
        const valueStart = items[base + field * 2] as number;
        if (valueStart < from || valueStart >= nextStart) continue;
        nextStart = valueStart;
        next = field;
      }
      shape[i * SHAPE_STRIDE] = from;
      shape[i * SHAPE_STRIDE + 1] = nextStart;
      shape[i * SHAPE_STRIDE + 2] = next;
      from = items[base + next * 2 + 1] as number;
    }
    shape[VALUES * SHAPE_STRIDE] = from;
    shape[VALUES * SHAPE_STRIDE + 1] = this.#at;
  }

  /**
   * Reads an item whose bytes between the values are those of the first item, as a program writes
   * them: then its keys are, too. Returns the position behind it; -1 is for `#object` to read.
   */
  #likeFirst(start: number, base: number): number {
    const bytes = this.#bytes;
    const shape = this.#shape;
    const { items } = this.#fields;
    let at = start;
    for (let i = 0; i <= VALUES; i++) {
      const to = shape[i * SHAPE_STRIDE + 1] as number;
      for (let from = shape[i * SHAPE_STRIDE] as number; from < to; from++, at++) {
        if (bytes[from] !== bytes[at]) return -1;
      }
      if (i === VALUES) break;
      const field = shape[i * SHAPE_STRIDE + 2] as number;
      const slot = base + field * 2;
      let end = at;
      while (STOP_BYTE[bytes[end] as number] === 0) end += 1;
      if (bytes[end] !== QUOTE || !isFit(bytes, items, field, slot, at, end)) return -1;
      items[slot] = at;
      items[slot + 1] = end;
      at = end;
    }
    return at <= this.#end ? at : -1;
  }

  #skipSpace(): void {
    const bytes = this.#bytes;
    let at = this.#at;
    for (;;) {
      const byte = bytes[at] as number;
      if (byte > SPACE) break;
      if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
      at += 1;
    }
    this.#at = at;
  }
}
