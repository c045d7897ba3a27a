import { shapeError } from '../../../language/peers/json-shape.ts';

/** Most characters of one object, or of the text around a list of objects. */
const OBJECT_MAX = 1 << 20;
const [LIST_OPEN, LIST_CLOSE, OPEN, CLOSE, QUOTE, ESCAPE, COMMA, NEWLINE] = Buffer.from(
  '[]{}"\\,\n',
) as unknown as readonly number[];
/** Name of a list of tuples in an object. */
const LIST_NAME = /"(?:tuples|tuple_keys)"\s*:\s*$/;

/**
 * The text of one object and the line where it begins. `isAround`: it is the text around a list,
 * whose objects came before.
 */
export type JsonText = { readonly text: string; readonly line: number; readonly isAround: boolean };

type ScanState = 'top' | 'list' | 'object' | 'around';

/**
 * Splits a chunked JSON text into objects: those of a list, of lists called `tuples` or
 * `tuple_keys` in an object, and consecutive objects. Reads only brackets and strings; the caller
 * parses each object. Memory: one object.
 */
export class JsonValues {
  line = 1;
  #state: ScanState = 'top';
  /** Text of the object, or around a list. */
  #text = '';
  #textLine = 1;
  #around = '';
  #aroundLine = 1;
  #hasList = false;
  #depth = 0;
  #isString = false;
  #isEscaped = false;
  #needsComma = false;
  #needsObject = false;

  /**
   * The objects that end in `chunk`. Errors: FIELD_INVALID naming the line, after the objects
   * before it.
   */
  *feed(chunk: string): Generator<JsonText> {
    let start = 0;
    for (let i = 0; i < chunk.length; i++) {
      const c = chunk.charCodeAt(i);
      if (c === NEWLINE) this.line += 1;
      if (this.#state === 'top' || this.#state === 'list') {
        if (c <= 32) continue;
        start = this.#between(c, chunk[i] ?? '') ? i + 1 : i;
        continue;
      }
      if (this.#inString(c) || (c !== OPEN && c !== CLOSE && c !== LIST_OPEN && c !== LIST_CLOSE)) {
        continue;
      }
      this.#depth += c === OPEN || c === LIST_OPEN ? 1 : -1;
      if (this.#state === 'around' && c === LIST_OPEN && this.#depth === 2) {
        this.#append(chunk.slice(start, i));
        start = i;
        if (LIST_NAME.test(this.#text)) {
          this.#beginList();
          continue;
        }
      }
      if (this.#depth > 0) continue;
      this.#append(chunk.slice(start, i + 1));
      yield this.#ended();
    }
    if (this.#state === 'object' || this.#state === 'around') this.#append(chunk.slice(start));
  }

  /** Ends the text. Errors: FIELD_INVALID if a list or an object is not closed. */
  finish(): void {
    if (this.#state !== 'top') throw this.#error('the text ends within a list or an object');
  }

  #inString(c: number): boolean {
    if (!this.#isString) {
      this.#isString = c === QUOTE;
      return this.#isString;
    }
    if (this.#isEscaped) this.#isEscaped = false;
    else if (c === ESCAPE) this.#isEscaped = true;
    else if (c === QUOTE) this.#isString = false;
    return true;
  }

  /**
   * Handles a character between objects. True: a list within an object has ended, and the object
   * continues behind it.
   */
  #between(c: number, shown: string): boolean {
    const isList = this.#state === 'list';
    if (c === OPEN && !(isList && this.#needsComma)) {
      this.#text = '';
      this.#textLine = this.line;
      this.#depth = 1;
      this.#hasList = isList && this.#hasList;
      this.#state = isList ? 'object' : 'around';
      return false;
    }
    if (!isList && c === LIST_OPEN) {
      this.#around = '';
      this.#state = 'list';
      this.#needsComma = false;
      this.#needsObject = false;
      return false;
    }
    if (isList && c === COMMA && this.#needsComma) {
      this.#needsComma = false;
      this.#needsObject = true;
      return false;
    }
    if (isList && c === LIST_CLOSE && !this.#needsObject) {
      this.#state = this.#around === '' ? 'top' : 'around';
      this.#text = `${this.#around}]`;
      this.#depth = 1;
      this.#textLine = this.#aroundLine;
      return this.#around !== '';
    }
    throw this.#error(
      `${JSON.stringify(shown)} stands where ${isList ? 'a tuple' : 'a list or a tuple'} is expected`,
    );
  }

  #beginList(): void {
    this.#around = `${this.#text}[`;
    this.#aroundLine = this.#textLine;
    this.#hasList = true;
    this.#needsComma = false;
    this.#needsObject = false;
    this.#state = 'list';
  }

  #ended(): JsonText {
    const text = this.#text;
    const line = this.#textLine;
    this.#text = '';
    if (this.#state === 'object') {
      this.#state = 'list';
      this.#needsComma = true;
      this.#needsObject = false;
      return { text, line, isAround: false };
    }
    const isAround = this.#hasList;
    this.#state = 'top';
    this.#around = '';
    this.#hasList = false;
    return { text, line, isAround };
  }

  #append(part: string): void {
    this.#text += part;
    if (this.#text.length > OBJECT_MAX) throw this.#error(`an object is longer than ${OBJECT_MAX}`);
  }

  #error(problem: string): Error {
    return shapeError(`line ${this.line}`, problem);
  }
}
