import { endOfBlock, expressionOfBlock } from '../cel-block.ts';
import { shapeError } from '../peers/json-shape.ts';
import { TextLines } from '../text-lines.ts';

/** A token of a SpiceDB schema; `end` follows the last one. */
export type SchemaToken = {
  readonly kind: 'name' | 'mark' | 'string' | 'end';
  readonly text: string;
  readonly at: number;
};

/** White space, semicolons and both kinds of comments. */
const SKIPPED = /(?:[\s;]|\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\/)*/y;
const TOKEN = /([A-Za-z_][A-Za-z0-9_]*)|(\.\.\.|->|[{}()|:*#=+&<>,./-])|("[^"\n]*"|'[^'\n]*')/y;

/**
 * Reads a schema token by token, with one token of look-ahead. Line breaks are white space. SpiceDB
 * ends statements with them, but no text has one meaning with them and another without.
 * Errors: FIELD_INVALID naming line and column.
 */
export class SchemaLexer {
  readonly #lines: TextLines;
  #at = 0;
  #token: SchemaToken;

  constructor(text: string) {
    this.#lines = new TextLines(text);
    this.#token = this.#next();
  }

  get token(): SchemaToken {
    return this.#token;
  }

  advance(): SchemaToken {
    const token = this.#token;
    this.#token = this.#next();
    return token;
  }

  is(text: string): boolean {
    return this.#token.kind !== 'string' && this.#token.text === text;
  }

  try(text: string): boolean {
    if (!this.is(text)) return false;
    this.advance();
    return true;
  }

  expect(text: string): void {
    if (!this.try(text)) throw this.expected(`"${text}"`);
  }

  name(what: string): string {
    if (this.#token.kind !== 'name') throw this.expected(what);
    return this.advance().text;
  }

  /** Reads `org/user`. */
  path(what: string): string {
    const names = [this.name(what)];
    while (this.try('/')) names.push(this.name(what));
    return names.join('/');
  }

  /**
   * Reads the expression between the brace ahead and its closing brace, without the indentation of
   * its lines. A text with a multi-line string keeps the indentation, which may be part of the
   * string.
   */
  block(): string {
    if (!this.is('{')) throw this.expected('"{"');
    const end = endOfBlock(this.#lines.text, this.#token.at + 1);
    if (end === undefined) throw this.problem('the expression does not end');
    const text = this.#lines.text.slice(this.#token.at + 1, end);
    this.#at = end + 1;
    this.#token = this.#next();
    return /"""|'''/.test(text) ? text.trim() : expressionOfBlock(text).trim();
  }

  /** The line of an offset, as `line 3`. */
  line(at: number): string {
    return `line ${this.#lines.position(at).line}`;
  }

  expected(what: string): Error {
    const { kind, text } = this.#token;
    return this.problem(`expected ${what} but found ${kind === 'end' ? 'the end' : text}`);
  }

  problem(text: string): Error {
    const { line, column } = this.#lines.position(this.#token.at);
    return shapeError(`line ${line}, column ${column}`, text);
  }

  #next(): SchemaToken {
    const { text } = this.#lines;
    SKIPPED.lastIndex = this.#at;
    const at = this.#at + (SKIPPED.exec(text)?.[0].length ?? 0);
    if (at >= text.length) return { kind: 'end', text: '', at };
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    if (found === null) {
      const { line, column } = this.#lines.position(at);
      throw shapeError(
        `line ${line}, column ${column}`,
        `${JSON.stringify(String.fromCodePoint(text.codePointAt(at) ?? 0))} means nothing`,
      );
    }
    this.#at = at + found[0].length;
    const kind = found[1] === undefined ? (found[2] === undefined ? 'string' : 'mark') : 'name';
    return { kind, text: found[0], at };
  }
}
