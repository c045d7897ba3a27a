import { isAscii, isUtf8 } from 'node:buffer';
import { fieldNames } from '../../decoding/json-names.ts';
import { JSON_END, JsonTokens } from '../../decoding/json-tokens.ts';
import { JSON_BYTES } from '../../shared/text/json-bytes.ts';
import { scanJsonContext } from './json-context.ts';
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

const { QUOTE, COMMA, OPENING_BRACE, CLOSING_BRACE, OPENING_BRACKET, CLOSING_BRACKET } = JSON_BYTES;

/** Values of an item. */
const VALUES = 4;
const SHAPE_STRIDE = 3;
/** One less than the items between two clock reads: cold, they take some tenths of a millisecond. */
const ITEMS_PER_CLOCK_READ = 255;

const NAMES = fieldNames([
  ['namespace', FIELD_NAMESPACE],
  ['object_id', FIELD_OBJECT],
  ['relation', FIELD_RELATION],
  ['subject_user_id', FIELD_USER],
  ['project_id', FIELD_PROJECT],
  ['tenant_id', FIELD_TENANT],
  ['at_least_consistency_token', FIELD_TOKEN],
  ['items', FIELD_ITEMS],
  ['context', FIELD_CONTEXT],
]);

/**
 * Hot. A strict scanner of the three hot request bodies in JSON. It accepts only what needs no
 * thought: known keys once each, plain strings without escapes, valid names and ids, every
 * required field. Everything else, also what is perfectly valid, is `false`: the general path
 * takes the request. So its answers cannot differ from the general path's, only be absent.
 * O(bytes); allocates nothing but memory for a larger batch.
 */
export class JsonScanner {
  readonly #fields: RawFields;
  readonly #itemsMax: number;
  readonly #tokens = new JsonTokens();
  #isAllAscii = false;
  /**
   * Shape of the first item: start and end of the bytes before each value, and its field; then those behind the last.
   */
  readonly #shape = new Uint32Array((VALUES + 1) * SHAPE_STRIDE);
  /** State of a batch that is read in slices: the end of the present one, and the fields seen before its items. */
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
   * Reads a batch like `batchCheck`, in slices until the monotonic clock passed `sliceEndMs`. null: there is more, for
   * `resumeBatch`. The scanner and its fields are this batch's alone until then.
   */
  startBatch(bytes: Uint8Array, start: number, end: number, sliceEndMs: number): boolean | null {
    this.#sliceEndMs = sliceEndMs;
    const isScanned = this.batchCheck(bytes, start, end);
    this.#sliceEndMs = Infinity;
    return this.#isPaused ? null : isScanned;
  }

  /** Continues the scan. `bytes` may be other memory, with the same content at the same positions. */
  resumeBatch(bytes: Uint8Array, sliceEndMs: number): boolean | null {
    this.#tokens.bytes = bytes;
    this.#sliceEndMs = sliceEndMs;
    this.#isPaused = false;
    const isScanned = this.#resume();
    this.#sliceEndMs = Infinity;
    return this.#isPaused ? null : isScanned;
  }

  #resume(): boolean {
    if (!this.#items(this.#fields.itemCount)) return false;
    const next = this.#tokens.next();
    let seen = -1;
    if (next === COMMA) seen = this.#members(this.#seenAtItems, 0, ITEMS_FIELD | SCOPE_FIELDS);
    else if (next === CLOSING_BRACE) seen = this.#seenAtItems;
    return this.#isWhole(seen, ITEMS_FIELD);
  }

  listObjects(bytes: Uint8Array, start: number, end: number): boolean {
    this.#fields.itemCount = 1;
    return this.#scan(bytes, start, end, LIST_FIELDS | SCOPE_FIELDS, LIST_FIELDS);
  }

  #scan(bytes: Uint8Array, start: number, end: number, allowed: number, required: number): boolean {
    this.#isPaused = false;
    if (!this.#isPlainText(bytes, start, end)) return false;
    this.#tokens.open(bytes, start, end);
    clearFields(this.#fields);
    return this.#isWhole(this.#object(0, allowed), required);
  }

  #isWhole(seen: number, required: number): boolean {
    return seen >= 0 && (seen & required) === required && this.#tokens.peek() === JSON_END;
  }

  /** Bodies of one message share a buffer, which mostly is ASCII as a whole: checked once, so it must not change. */
  #isPlainText(bytes: Uint8Array, start: number, end: number): boolean {
    if (bytes !== this.#tokens.bytes) this.#isAllAscii = isAscii(bytes);
    if (this.#isAllAscii) return true;
    const body = bytes.subarray(start, end);
    return isAscii(body) || (isUtf8(body) && !hasControlBeyondAscii(bytes, start, end));
  }

  /** The fields of one object as bits, or -1. `base` is where the positions of an item go. */
  #object(base: number, allowed: number): number {
    return this.#tokens.next() === OPENING_BRACE ? this.#members(0, base, allowed) : -1;
  }

  /** Reads an object from a key on, like `#object`; `before` are the fields before it. */
  #members(before: number, base: number, allowed: number): number {
    const tokens = this.#tokens;
    let seen = before;
    for (;;) {
      const field = this.#key();
      const bit = 1 << field;
      if (field < 0 || (allowed & bit) === 0 || (seen & bit) !== 0) return -1;
      seen |= bit;
      if (field === FIELD_ITEMS) {
        this.#seenAtItems = seen;
        if (tokens.next() !== OPENING_BRACKET || !this.#items(0)) return -1;
      } else if (field === FIELD_CONTEXT) {
        if (!scanJsonContext(tokens, this.#fields)) return -1;
      } else {
        if (!tokens.plain(STOP_BYTE)) return -1;
        if (!keepValue(tokens.bytes, this.#fields, field, base, tokens.from, tokens.to)) return -1;
      }
      const next = tokens.next();
      if (next === CLOSING_BRACE) return seen;
      if (next !== COMMA) return -1;
    }
  }

  /** The field of the next key, left after its colon and space; -1 is any other key. */
  #key(): number {
    const tokens = this.#tokens;
    if (!tokens.plain(STOP_BYTE)) return -1;
    const field = NAMES.lookUp(tokens.bytes, tokens.from, tokens.to);
    return field === undefined || !tokens.colon() ? -1 : field;
  }

  /** Reads items from `first` on. False as well where the slice ends: then #isPaused is true. */
  #items(first: number): boolean {
    const tokens = this.#tokens;
    const fields = this.#fields;
    let count = first;
    for (;;) {
      if ((count & ITEMS_PER_CLOCK_READ) === ITEMS_PER_CLOCK_READ && count !== first) {
        if (performance.now() >= this.#sliceEndMs) {
          fields.itemCount = count;
          this.#isPaused = true;
          return false;
        }
      }
      if (count >= this.#itemsMax) return false;
      const base = count * POSITIONS_PER_ITEM;
      if (base + POSITIONS_PER_ITEM > fields.items.length) growItems(fields);
      tokens.peek();
      const start = tokens.at;
      const end = count === 0 ? -1 : this.#likeFirst(start, base);
      if (end >= 0) tokens.at = end;
      else {
        if (this.#object(base, ITEM_FIELDS) !== ITEM_FIELDS) return false;
        if (count === 0) this.#keepShape(start, base);
      }
      count += 1;
      const next = tokens.next();
      if (next === COMMA) continue;
      fields.itemCount = count;
      return next === CLOSING_BRACKET;
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
    shape[VALUES * SHAPE_STRIDE + 1] = this.#tokens.at;
  }

  /**
   * Reads an item whose bytes between the values are those of the first item, as a program writes
   * them: then its keys are, too. Returns the position behind it; -1 is for `#object` to read.
   */
  #likeFirst(start: number, base: number): number {
    const { bytes, end: last } = this.#tokens;
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
    return at <= last ? at : -1;
  }
}
