import { JSON_BYTES } from '../shared/text/json-bytes.ts';
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
import { JSON_END, JsonTokens } from './json-tokens.ts';
import type { FieldShape, MessageShape } from './message-shape.ts';
import { FieldPath, type FoundList, type FoundText, ListRuns } from './scan-results.ts';

const {
  QUOTE,
  COMMA,
  COLON,
  OPENING_BRACE,
  CLOSING_BRACE,
  OPENING_BRACKET,
  CLOSING_BRACKET,
  SPACE,
} = JSON_BYTES;
/** Shorter texts, and shorter white space, stay in the rest of the body. */
const LONG_TEXT_BYTES = 16_384;
const LONG_SPACE_BYTES = 1_024;
/** Bytes between two steps. */
const STEP_BYTES = 65_536;

/**
 * States of the scan: after an opening bracket, before a name, before its colon, before a value,
 * after a value.
 */
const BEGUN = 0;
const NAME = 1;
const COLON_NEXT = 2;
const VALUE = 3;
const VALUE_ENDED = 4;

/**
 * Thrown if the bytes are not JSON. The library gives the better message where the text is passed
 * to it.
 */
export class JsonSyntaxProblem extends Error {}

/** An object or list that is being scanned. */
class ScanFrame {
  /** `base` holds the document. `opaque` is a value that fits no field. */
  kind: 'base' | 'message' | 'list' | 'struct' | 'opaque' = 'base';
  isObject = false;
  /** True if it hangs on the root by single messages. */
  isRooted = false;
  /** Shape of a message; null for other kinds. */
  shape: MessageShape | null = null;
  /**
   * Field of the list, or of the current member of a message; null if the message has no such
   * field.
   */
  field: FieldShape | null = null;
  /**
   * State of a rooted list: its items so far, its start, and the counts before the list and before
   * the current item.
   */
  runs: ListRuns | null = null;
  from = 0;
  fieldsBefore = 0;
  valuesBefore = 0;
}

/**
 * Scans a body of JSON before anything is built from it. Counts the values that it would become,
 * and refuses it beyond the limits.
 *
 * Finds the items of rooted lists, which have only single messages between them and the root, so
 * that they can be read in slices. Checks the structure only: contents of strings and the grammar
 * of numbers are left to the parser. O(bytes); allocates nothing for values.
 * Errors of `steps`: FIELD_TOO_LARGE, BODY_MALFORMED, JsonSyntaxProblem.
 */
export class JsonScan {
  readonly lists: FoundList[] = [];
  readonly texts: FoundText[] = [];
  /** White space that need not be kept. */
  readonly spaces: { readonly from: number; readonly to: number }[] = [];
  /** Values of all kinds. */
  values = 0;
  readonly #tokens = new JsonTokens();
  readonly #root: MessageShape;
  readonly #path = new FieldPath();
  /** Frames by depth; each is reused for the next one at the same depth. */
  readonly #frames: ScanFrame[] = [new ScanFrame()];
  #frame = this.#frames[0] as ScanFrame;
  #state = VALUE;
  #unknown = 0;
  /** Start of the current field of the root, or of the current item of a list. */
  #itemAt = 0;
  #itemFields = 0;
  #structAt = 0;
  #structValues = 0;
  #valuesMax = STRUCT_VALUES_MAX;
  #structBytesMax = STRUCT_BYTES_MAX;

  constructor(bytes: Uint8Array, root: MessageShape) {
    this.#root = root;
    this.#tokens.open(bytes, 0, bytes.length);
    this.#tokens.skipMark();
  }

  /**
   * Checks JSON that no message type describes, in one go: at most `valuesMax` members and list
   * entries, `bytesMax` bytes, DEPTH_MAX levels.
   * Errors: FIELD_TOO_LARGE and BODY_MALFORMED without a field, JsonSyntaxProblem.
   */
  assertBounds(valuesMax: number, bytesMax: number): void {
    if (this.#tokens.end > bytesMax) throw fieldTooLarge('the text', bytesMax, 'bytes');
    this.#valuesMax = valuesMax;
    this.#structBytesMax = bytesMax;
    this.#frame.kind = 'struct';
    const steps = this.steps();
    while (steps.next().done !== true);
  }

  /** Short steps of the scan; the caller runs them to their end. */
  *steps(): Generator<void, void> {
    while (!this.#run()) yield;
  }

  /** Scans on for a short while. True if the end was reached. */
  #run(): boolean {
    const tokens = this.#tokens;
    const { bytes, end } = tokens;
    const last = tokens.at + STEP_BYTES;
    for (;;) {
      if (!this.#skipSpace()) return false;
      const { at } = tokens;
      if (this.#state === VALUE_ENDED && this.#path.depth === 0) break;
      if (at >= last) return false;
      this.#token(at < end ? (bytes[at] as number) : JSON_END);
    }
    if (tokens.at < end) throw this.#syntax();
    return true;
  }

  /**
   * Skips up to STEP_BYTES of white space. False: there may be more of it. A body may hold any
   * amount.
   */
  #skipSpace(): boolean {
    const tokens = this.#tokens;
    const from = tokens.at;
    if ((tokens.bytes[from] as number) > SPACE) return true;
    const end = Math.min(tokens.end, from + STEP_BYTES);
    const isOver = tokens.skipSpace(end) || end === tokens.end;
    if (tokens.at - from > LONG_SPACE_BYTES) this.spaces.push({ from, to: tokens.at });
    return isOver;
  }

  /**
   * Reads the token that begins with `byte`. A comma or colon is read together with the token that
   * touches it.
   */
  #token(byte: number): void {
    const { isObject } = this.#frame;
    const tokens = this.#tokens;
    switch (this.#state) {
      case NAME:
        return this.#name(byte);
      case COLON_NEXT:
        if (byte !== COLON) throw this.#syntax();
        tokens.at += 1;
        this.#state = VALUE;
        return;
      case VALUE:
        this.#state = VALUE_ENDED;
        this.#value(byte);
        if (this.#state === VALUE_ENDED) this.#ended();
        return;
      default: {
        if (byte === (isObject ? CLOSING_BRACE : CLOSING_BRACKET)) return this.#close();
        const isBegun = this.#state === BEGUN;
        this.#state = isObject ? NAME : VALUE;
        if (isBegun) return this.#token(byte);
        if (byte !== COMMA) throw this.#syntax();
        const next = tokens.bytes[(tokens.at += 1)] as number;
        if (next > SPACE) this.#token(next);
      }
    }
  }

  #name(byte: number): void {
    const frame = this.#frame;
    const tokens = this.#tokens;
    if (byte !== QUOTE) throw this.#syntax();
    this.#text(TEXT_BYTES_MAX, false);
    this.#state = COLON_NEXT;
    if (frame.shape !== null) {
      const field = frame.shape.names.read(tokens);
      if (field === false) throw this.#syntax();
      frame.field = field ?? null;
      if (frame.field !== null) this.#path.enter(frame.field);
    }
    if (tokens.bytes[tokens.at] === COLON) this.#token(COLON);
  }

  #value(byte: number): void {
    const frame = this.#frame;
    const { kind, field, isRooted } = frame;
    if (kind === 'struct') this.#structValue(byte);
    else if (kind === 'base' && byte === OPENING_BRACE) {
      this.#open('message', byte, true).shape = this.#root;
    } else if (field === null) this.#opaqueValue(byte);
    else if (kind === 'list' && isRooted) {
      this.#beginItem(frame);
      this.#fieldValue(field, byte);
    } else {
      if (isRooted) this.#itemAt = this.#tokens.at;
      this.#countField();
      if (kind === 'message') this.#member(field, byte, isRooted);
      else this.#fieldValue(field, byte);
    }
  }

  #member(field: FieldShape, byte: number, isRooted: boolean): void {
    if (field.isList) {
      if (byte !== OPENING_BRACKET) return this.#fieldValue(field, byte);
      const list = this.#open('list', byte, isRooted);
      list.field = field;
      list.from = this.#tokens.at;
      list.fieldsBefore = this.#itemFields;
      list.runs = isRooted ? new ListRuns(field.items.max, false) : null;
    } else if (isRooted && field.kind === 'message' && byte === OPENING_BRACE) {
      this.#open('message', byte, true).shape = field.message();
    } else {
      const from = this.#tokens.at;
      this.#fieldValue(field, byte);
      const isLong = byte === QUOTE && this.#tokens.at - from > LONG_TEXT_BYTES;
      if (isLong && isRooted && field.kind === 'text') {
        this.texts.push({ path: this.#path.fields(), from, to: this.#tokens.at });
      }
    }
  }

  #beginItem(list: ScanFrame): void {
    this.#itemAt = this.#tokens.at;
    this.#itemFields = 0;
    this.#path.index = list.runs?.count ?? 0;
    list.valuesBefore = this.values;
  }

  /** A value of a field, or an item of a list. */
  #fieldValue(field: FieldShape, byte: number): void {
    this.values += 1;
    if (byte === QUOTE) {
      const isStruct = field.kind === 'struct';
      this.#text(isStruct ? this.#structBytesMax : field.bytesMax, field.kind === 'token');
    } else if (byte !== OPENING_BRACE && byte !== OPENING_BRACKET) this.#word();
    else if (field.kind === 'struct') {
      this.#structValues = 0;
      this.#structAt = this.#tokens.at;
      this.#open('struct', byte, false);
    } else if (field.kind === 'message' && byte === OPENING_BRACE) {
      this.#open('message', byte, false).shape = field.message();
    } else this.#opaqueValue(byte);
  }

  #structValue(byte: number): void {
    if (this.#path.depth > 0) {
      this.values += 1;
      this.#structValues += 1;
      if (this.#structValues > this.#valuesMax) {
        throw fieldTooLarge(this.#path.text(), this.#valuesMax, 'values');
      }
      this.#countBytes(this.#structAt, this.#structBytesMax);
    }
    this.#plainValue(byte, 'struct', this.#structBytesMax);
  }

  /** Reads a value that fits no field; at most UNKNOWN_MAX of these are accepted. */
  #opaqueValue(byte: number): void {
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
    this.#plainValue(byte, 'opaque', TEXT_BYTES_MAX);
  }

  #plainValue(byte: number, kind: 'struct' | 'opaque', textBytesMax: number): void {
    if (byte === QUOTE) this.#text(textBytesMax, false);
    else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) this.#open(kind, byte, false);
    else this.#word();
  }

  /** Enters an object or list, whose frame the caller completes. */
  #open(kind: ScanFrame['kind'], byte: number, isRooted: boolean): ScanFrame {
    const depth = (this.#path.depth += 1);
    if (depth > DEPTH_MAX) {
      const field = this.#path.text();
      throw malformed(`${field}: nested deeper than ${DEPTH_MAX} levels`, field);
    }
    this.#tokens.at += 1;
    this.#state = BEGUN;
    const frame = (this.#frames[depth] ??= new ScanFrame());
    frame.kind = kind;
    frame.isObject = byte === OPENING_BRACE;
    frame.isRooted = isRooted;
    frame.shape = null;
    frame.field = null;
    this.#frame = frame;
    return frame;
  }

  #close(): void {
    const { kind, isRooted, runs, from, fieldsBefore } = this.#frame;
    const to = this.#tokens.at;
    this.#tokens.at += 1;
    this.#path.depth -= 1;
    this.#frame = this.#frames[this.#path.depth] as ScanFrame;
    this.#state = VALUE_ENDED;
    if (kind === 'list' && isRooted && runs !== null) {
      this.#path.index = -1;
      this.#itemFields = fieldsBefore;
      const { count } = runs;
      this.lists.push({ path: this.#path.fields(), from, to, count, runs: runs.finish() });
    } else if (kind === 'struct' && this.#frame.kind !== 'struct') {
      this.#countBytes(this.#structAt, this.#structBytesMax);
    }
    this.#ended();
  }

  /** Completes a value of the current object or list. */
  #ended(): void {
    const { kind, isRooted, field, runs, valuesBefore } = this.#frame;
    if (kind === 'message' && field !== null) this.#path.leave();
    if (kind === 'list' && isRooted) {
      runs?.add(this.#itemAt, this.#tokens.at, this.values - valuesBefore);
    }
  }

  #text(bytesMax: number, isToken: boolean): void {
    const tokens = this.#tokens;
    if (tokens.string(bytesMax)) return;
    throw tokens.to < tokens.end ? this.#tooLong(bytesMax, isToken) : this.#syntax();
  }

  #tooLong(bytesMax: number, isToken: boolean): Error {
    const field = this.#path.text();
    if (!isToken) return fieldTooLarge(field, bytesMax, 'bytes of text');
    return malformed(`${field}: a value of more than ${bytesMax} characters`, field);
  }

  /** Reads a number, true, false or null: any token that is not structure. */
  #word(): void {
    const tokens = this.#tokens;
    const from = tokens.at;
    if (tokens.word(TOKEN_BYTES_MAX)) return;
    throw tokens.at === from ? this.#syntax() : this.#tooLong(TOKEN_BYTES_MAX, true);
  }

  #countField(): void {
    this.#itemFields += 1;
    if (this.#itemFields > FIELDS_MAX) {
      throw fieldTooLarge(this.#path.text(), FIELDS_MAX, 'fields');
    }
    this.#countBytes(this.#itemAt, ITEM_BYTES_MAX);
  }

  #countBytes(from: number, bytesMax: number): void {
    if (this.#tokens.at - from > bytesMax) {
      throw fieldTooLarge(this.#path.text(), bytesMax, 'bytes');
    }
  }

  #syntax(): JsonSyntaxProblem {
    return new JsonSyntaxProblem(`not JSON at byte ${this.#tokens.at}`);
  }
}
