import { JSON_BYTES } from '../shared/json-bytes.ts';
import {
  DEPTH_MAX,
  FIELDS_MAX,
  fieldTooLarge,
  ITEM_BYTES_MAX,
  malformed,
  STRUCT_BYTES_MAX,
  STRUCT_VALUES_MAX,
  TEXT_BYTES_MAX,
  TOKEN_BYTES_MAX,
  UNKNOWN_MAX,
} from './decode-limits.ts';
import type { FieldShape, MessageShape } from './message-shape.ts';
import { FieldPath, type FoundList, type FoundText, ListRuns } from './scan-results.ts';

const {
  QUOTE,
  BACKSLASH,
  COMMA,
  COLON,
  OPENING_BRACE,
  CLOSING_BRACE,
  OPENING_BRACKET,
  CLOSING_BRACKET,
} = JSON_BYTES;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;
/** Shorter texts, and less white space, stay where they are. */
const LONG_TEXT_BYTES = 16_384;
const LONG_SPACE_BYTES = 1_024;
/** Bytes between two steps. */
const STEP_BYTES = 65_536;

/** Thrown where the bytes are no JSON; the library says what is wrong with it, where it is asked. */
export class JsonSyntaxProblem extends Error {}

/**
 * Looks through a body of JSON before anything is built of it: what would be made of it is counted, and refused beyond the limits. It
 * finds where the items of lists stand which hang on the message by single messages alone, so that they can be read some at a time. Only
 * the structure is looked at: what is within texts, and whether a word is a number, is left to who reads them. O(bytes); allocates
 * nothing for values.
 *
 * Errors of `steps`: FIELD_TOO_LARGE, BODY_MALFORMED, JsonSyntaxProblem.
 */
export class JsonScan {
  readonly lists: FoundList[] = [];
  readonly texts: FoundText[] = [];
  /** White space that need not be kept. */
  readonly spaces: { readonly from: number; readonly to: number }[] = [];
  /** Values of all kinds. */
  values = 0;
  readonly #bytes: Uint8Array;
  readonly #root: MessageShape;
  readonly #path = new FieldPath();
  #at = 0;
  #steppedAt = 0;
  #unknown = 0;
  /** Where the field of the root, or the item of a list, began that is being looked at. */
  #itemAt = 0;
  #itemFields = 0;
  #structAt = 0;
  #structValues = 0;
  #valuesMax = STRUCT_VALUES_MAX;
  #structBytesMax = STRUCT_BYTES_MAX;

  constructor(bytes: Uint8Array, root: MessageShape) {
    this.#bytes = bytes;
    this.#root = root;
  }

  /**
   * Of JSON that no message describes, in one go: at most `valuesMax` members and list entries, `bytesMax` bytes, DEPTH_MAX levels.
   * Errors: FIELD_TOO_LARGE and BODY_MALFORMED without a field, JsonSyntaxProblem.
   */
  assertBounds(valuesMax: number, bytesMax: number): void {
    if (this.#bytes.length > bytesMax) throw fieldTooLarge('the text', bytesMax, 'bytes');
    this.#valuesMax = valuesMax;
    this.#structBytesMax = bytesMax;
    this.#skipMark();
    this.#structValue(this.#peek());
    if (!Number.isNaN(this.#peek())) throw this.#syntax();
  }

  /** To be run to its end. Each step is short. */
  *steps(): Generator<void, void> {
    this.#skipMark();
    yield* this.#space();
    if (this.#peek() === OPENING_BRACE) yield* this.#message(this.#root);
    else this.#opaque();
    yield* this.#space();
    if (!Number.isNaN(this.#peek())) throw this.#syntax();
  }

  #skipMark(): void {
    const isMarked = BYTE_ORDER_MARK.every((byte, i) => this.#bytes[i] === byte);
    this.#at = isMarked ? BYTE_ORDER_MARK.length : 0;
  }

  /** A message that hangs on the root by single messages. */
  *#message(shape: MessageShape): Generator<void, void> {
    this.#enter();
    this.#at += 1;
    yield* this.#space();
    if (this.#isEmpty(CLOSING_BRACE)) return;
    do {
      yield* this.#space();
      const field = this.#key(shape);
      yield* this.#space();
      if (field === undefined) this.#opaque();
      else {
        this.#path.push(field);
        const byte = this.#peek();
        this.#itemAt = this.#at;
        this.#countField();
        if (field.isList && byte === OPENING_BRACKET) yield* this.#list(field);
        else if (field.kind === 'message' && byte === OPENING_BRACE && !field.isList) {
          yield* this.#message(field.message());
        } else this.#single(field, byte);
        this.#path.pop();
      }
      yield* this.#space();
      if (this.#isStepOver()) yield;
    } while (this.#hasNext(CLOSING_BRACE));
    this.#leave();
  }

  /** A field that is no list, or should be none. Long texts are noted. */
  #single(field: FieldShape, byte: number): void {
    const from = this.#at;
    this.#value(field, byte);
    const isLong = byte === QUOTE && this.#at - from > LONG_TEXT_BYTES;
    if (isLong && field.kind === 'text' && !field.isList) {
      this.texts.push({ path: this.#path.fields(), from, to: this.#at });
    }
  }

  *#list(field: FieldShape): Generator<void, void> {
    this.#enter();
    this.#at += 1;
    const from = this.#at;
    const runs = new ListRuns(field.items.max, false);
    const fields = this.#itemFields;
    if (!this.#isEmpty(CLOSING_BRACKET)) {
      do {
        this.#peek();
        this.#itemAt = this.#at;
        this.#itemFields = 0;
        this.#path.index = runs.count;
        const valuesBefore = this.values;
        this.#value(field, this.#peek());
        runs.add(this.#itemAt, this.#at, this.values - valuesBefore);
        if (this.#isStepOver()) yield;
      } while (this.#hasNext(CLOSING_BRACKET));
      this.#leave();
    }
    this.#path.index = -1;
    this.#itemFields = fields;
    const { count } = runs;
    const to = this.#at - 1;
    this.lists.push({ path: this.#path.fields(), from, to, count, runs: runs.end() });
  }

  #value(field: FieldShape, byte: number): void {
    this.values += 1;
    if (byte === QUOTE) {
      const isStruct = field.kind === 'struct';
      this.#text(isStruct ? this.#structBytesMax : field.bytesMax, field.kind === 'token');
    } else if (byte !== OPENING_BRACE && byte !== OPENING_BRACKET) this.#word();
    else if (field.kind === 'struct') {
      this.#structValues = 0;
      this.#structAt = this.#at;
      this.#structValue(byte);
      this.#countBytes(this.#structAt, this.#structBytesMax);
    } else if (field.kind === 'message' && byte === OPENING_BRACE) this.#object(field.message());
    else this.#opaque();
  }

  /** A message within an item. */
  #object(shape: MessageShape): void {
    this.#enter();
    this.#at += 1;
    if (this.#isEmpty(CLOSING_BRACE)) return;
    do {
      const field = this.#key(shape);
      if (field === undefined) this.#opaque();
      else {
        this.#path.push(field);
        this.#countField();
        const byte = this.#peek();
        if (field.isList && byte === OPENING_BRACKET) this.#innerList(field);
        else this.#value(field, byte);
        this.#path.pop();
      }
    } while (this.#hasNext(CLOSING_BRACE));
    this.#leave();
  }

  #innerList(field: FieldShape): void {
    this.#enter();
    this.#at += 1;
    if (this.#isEmpty(CLOSING_BRACKET)) return;
    do {
      this.#countField();
      this.#value(field, this.#peek());
    } while (this.#hasNext(CLOSING_BRACKET));
    this.#leave();
  }

  /** A value within a Struct. */
  #structValue(byte: number): void {
    if (byte === QUOTE) {
      this.#text(this.#structBytesMax, false);
      return;
    }
    if (byte !== OPENING_BRACE && byte !== OPENING_BRACKET) return this.#word();
    const isObject = byte === OPENING_BRACE;
    const closing = isObject ? CLOSING_BRACE : CLOSING_BRACKET;
    this.#enter();
    this.#at += 1;
    if (this.#isEmpty(closing)) return;
    do {
      this.values += 1;
      this.#structValues += 1;
      if (this.#structValues > this.#valuesMax) {
        throw fieldTooLarge(this.#path.text(), this.#valuesMax, 'values');
      }
      if (isObject) {
        if (this.#peek() !== QUOTE) throw this.#syntax();
        this.#text(TEXT_BYTES_MAX, false);
        this.#expectColon();
      }
      this.#countBytes(this.#structAt, this.#structBytesMax);
      this.#structValue(this.#peek());
    } while (this.#hasNext(closing));
    this.#leave();
  }

  /** A value that no field has room for: of these there are only some. */
  #opaque(): void {
    const byte = this.#peek();
    this.values += 1;
    this.#unknown += 1;
    if (this.#unknown > UNKNOWN_MAX) {
      const field = this.#path.text();
      const where = field === '' ? 'the body' : field;
      throw malformed(
        `${where}: holds more than ${UNKNOWN_MAX} values that it has no field for`,
        field,
      );
    }
    if (byte === QUOTE) {
      this.#text(TEXT_BYTES_MAX, false);
      return;
    }
    if (byte !== OPENING_BRACE && byte !== OPENING_BRACKET) return this.#word();
    const isObject = byte === OPENING_BRACE;
    const closing = isObject ? CLOSING_BRACE : CLOSING_BRACKET;
    this.#enter();
    this.#at += 1;
    if (this.#isEmpty(closing)) return;
    do {
      if (isObject) {
        if (this.#peek() !== QUOTE) throw this.#syntax();
        this.#text(TEXT_BYTES_MAX, false);
        this.#expectColon();
      }
      this.#opaque();
    } while (this.#hasNext(closing));
    this.#leave();
  }

  /** The field that a member's name is of, behind its colon. */
  #key(shape: MessageShape): FieldShape | undefined {
    if (this.#peek() !== QUOTE) throw this.#syntax();
    const from = this.#at + 1;
    const isEscaped = this.#text(TEXT_BYTES_MAX, false);
    const to = this.#at - 1;
    const field = isEscaped ? this.#escapedKey(shape, from, to) : this.#plainKey(shape, from, to);
    this.#expectColon();
    return field;
  }

  #plainKey({ names }: MessageShape, from: number, to: number): FieldShape | undefined {
    const bytes = this.#bytes;
    const length = to - from;
    next: for (const name of names) {
      if (name.bytes.length !== length) continue;
      for (let i = 0; i < length; i++) if (name.bytes[i] !== bytes[from + i]) continue next;
      return name.field;
    }
    return undefined;
  }

  #escapedKey({ fields }: MessageShape, from: number, to: number): FieldShape | undefined {
    if (to - from > TOKEN_BYTES_MAX * 6) return undefined;
    let name: unknown;
    try {
      name = JSON.parse(Buffer.from(this.#bytes.subarray(from - 1, to + 1)).toString('latin1'));
    } catch {
      throw this.#syntax();
    }
    return fields.find(({ field }) => field.name === name || field.jsonName === name);
  }

  /** A text, its quotes included; says whether something is escaped in it. */
  #text(bytesMax: number, isToken: boolean): boolean {
    const bytes = this.#bytes;
    const from = this.#at + 1;
    let at = from;
    let isEscaped = false;
    for (; ; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) break;
      if (byte === BACKSLASH) {
        isEscaped = true;
        at += 1;
      } else if (byte === undefined) throw this.#syntax();
      if (at - from > bytesMax) throw this.#tooLong(bytesMax, isToken);
    }
    this.#at = at + 1;
    return isEscaped;
  }

  #tooLong(bytesMax: number, isToken: boolean): Error {
    const field = this.#path.text();
    if (!isToken) return fieldTooLarge(field, bytesMax, 'bytes of text');
    return malformed(`${field}: a value of more than ${bytesMax} characters`, field);
  }

  /** A number, true, false or null: whatever stands there that is no structure. */
  #word(): void {
    const bytes = this.#bytes;
    const from = this.#at;
    let at = from;
    for (; ; at++) {
      const byte = bytes[at];
      // Letters, digits, sign and point.
      const isOfWord = byte !== undefined && byte > 0x2a && byte !== COMMA && byte !== COLON;
      if (!isOfWord || byte > 0x7a || byte === OPENING_BRACKET || byte === CLOSING_BRACKET) break;
      if (at - from > TOKEN_BYTES_MAX) throw this.#tooLong(TOKEN_BYTES_MAX, true);
    }
    if (at === from) throw this.#syntax();
    this.#at = at;
  }

  #expectColon(): void {
    if (this.#peek() !== COLON) throw this.#syntax();
    this.#at += 1;
  }

  /** Whether another member or item follows; reads the comma or the end. */
  #hasNext(closing: number): boolean {
    const byte = this.#peek();
    if (byte !== COMMA && byte !== closing) throw this.#syntax();
    this.#at += 1;
    return byte === COMMA;
  }

  /** Whether an object or list that was entered ends at once; leaves it then. */
  #isEmpty(closing: number): boolean {
    if (this.#peek() !== closing) return false;
    this.#at += 1;
    this.#leave();
    return true;
  }

  /** The next byte that is no white space; NaN at the end. */
  #peek(): number {
    const from = this.#at;
    this.#skipSpace(this.#bytes.length);
    this.#noteSpace(from);
    return this.#bytes[this.#at] ?? Number.NaN;
  }

  /** Skips white space up to `end`. */
  #skipSpace(end: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    for (; at < end; at++) {
      const byte = bytes[at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    }
    this.#at = at;
  }

  #noteSpace(from: number): void {
    if (this.#at - from > LONG_SPACE_BYTES) this.spaces.push({ from, to: this.#at });
  }

  /** White space, of which there may be as much as fits into a body, where nobody has to wait for its end. */
  *#space(): Generator<void, void> {
    for (;;) {
      const from = this.#at;
      this.#skipSpace(Math.min(this.#bytes.length, from + STEP_BYTES));
      this.#noteSpace(from);
      if (this.#at < from + STEP_BYTES) return;
      yield;
    }
  }

  #enter(): void {
    this.#path.depth += 1;
    if (this.#path.depth > DEPTH_MAX) {
      const field = this.#path.text();
      throw malformed(`${field}: nested deeper than ${DEPTH_MAX} levels`, field);
    }
  }

  #leave(): void {
    this.#path.depth -= 1;
  }

  #countField(): void {
    this.#itemFields += 1;
    if (this.#itemFields > FIELDS_MAX) {
      throw fieldTooLarge(this.#path.text(), FIELDS_MAX, 'fields');
    }
    this.#countBytes(this.#itemAt, ITEM_BYTES_MAX);
  }

  #countBytes(from: number, bytesMax: number): void {
    if (this.#at - from > bytesMax) throw fieldTooLarge(this.#path.text(), bytesMax, 'bytes');
  }

  #isStepOver(): boolean {
    if (this.#at - this.#steppedAt < STEP_BYTES) return false;
    this.#steppedAt = this.#at;
    return true;
  }

  #syntax(): JsonSyntaxProblem {
    return new JsonSyntaxProblem(`not JSON at byte ${this.#at}`);
  }
}
