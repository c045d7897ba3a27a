import type { AuthzReason } from '../../model/reasons.ts';
import { AppError } from '../../shared/app-error.ts';
import { endOfBlock } from '../cel-block.ts';

/** A token of `.gate` text. `end` follows the last one. */
export type Token = {
  readonly kind: 'name' | 'string' | 'number' | 'mark' | 'end' | 'unknown';
  /** The text as written; for a string, its value. */
  readonly text: string;
  readonly at: number;
  /** Comments on lines of their own before it; '' is a blank line. */
  readonly before: readonly string[];
};

const NAME = /[A-Za-z_](?:[A-Za-z0-9_]|-(?!>))*/y;
const NUMBER = /[0-9]+(?:\.[0-9]+)?/y;
const STRING = /"(?:[^"\\\n]|\\.)*"/y;
const MARK = /->|[{}()[\],:#*<>]/y;
/** A whole character, which may have two units: problems quote it. */
const UNKNOWN = /\/\*|[^]/uy;
const COMMENT = /\/\/[^\n]*/y;
const SPACE = /[ \t]*/y;
const GAP = /[ \t\n]*/y;

/** Reads tokens one at a time, so that the expression of a condition is read as a single text. */
export class GateLexer {
  readonly #text: string;
  #at = 0;

  /** `text` has lines that end in \n. */
  constructor(text: string) {
    this.#text = text;
  }

  /** The comment behind the token that was read last, on its line. */
  readTrailing(): string | undefined {
    this.#match(SPACE);
    return this.#match(COMMENT)?.trimEnd();
  }

  next(): Token {
    const before = this.#readLeading();
    const at = this.#at;
    if (at >= this.#text.length) return { kind: 'end', text: '', at, before };
    const mark = this.#match(MARK);
    if (mark !== undefined) return { kind: 'mark', text: mark, at, before };
    const name = this.#match(NAME);
    if (name !== undefined) return { kind: 'name', text: name, at, before };
    const number = this.#match(NUMBER);
    if (number !== undefined) return { kind: 'number', text: number, at, before };
    const string = this.#match(STRING);
    const value = string === undefined ? undefined : stringOf(string);
    if (value !== undefined) return { kind: 'string', text: value, at, before };
    return { kind: 'unknown', text: this.#match(UNKNOWN) ?? '', at, before };
  }

  /**
   * Reads the text up to the brace that closes the one that was read last, and that brace. Returns
   * undefined if there is no such brace.
   */
  readBlock(): { readonly text: string; readonly at: number } | undefined {
    const at = this.#at;
    const end = endOfBlock(this.#text, at);
    if (end === undefined) return undefined;
    this.#at = end + 1;
    return { text: this.#text.slice(at, end), at };
  }

  /** Continues at the next line that begins like a statement. */
  skipToStatement(): void {
    const statement = /^[ \t]*(?:relation|namespace|open|closed|condition)\b/gm;
    statement.lastIndex = this.#text.indexOf('\n', this.#at) + 1;
    const found = statement.lastIndex === 0 ? null : statement.exec(this.#text);
    this.#at = found === null ? this.#text.length : found.index;
  }

  #readLeading(): string[] {
    const before: string[] = [];
    for (;;) {
      const gap = this.#match(GAP) ?? '';
      if (gap.split('\n').length > 2) before.push('');
      const comment = this.#match(COMMENT);
      if (comment === undefined) return before;
      before.push(comment.trimEnd());
    }
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) return undefined;
    this.#at += found.length;
    return found;
  }
}

function stringOf(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** One problem of a `.gate` text. */
export type GateProblem = {
  readonly message: string;
  /** The likely intent, or '' if unknown. */
  readonly hint: string;
  /** Counted from 1. */
  readonly line: number;
  /** Counted from 1, in characters (code points). */
  readonly column: number;
};

/**
 * MODEL_INVALID for the first problem. Its metadata are `field`, `line`, `column`, `hint`, and
 * `problems`, the number of all problems.
 */
export function gateError(problems: readonly GateProblem[]): AppError<AuthzReason> {
  const [first] = problems;
  const { message, hint, line, column } = first ?? { message: '', hint: '', line: 0, column: 0 };
  const text = `gate: line ${line}, column ${column}: ${message}${hint === '' ? '' : ` (${hint})`}`;
  return new AppError<AuthzReason>('MODEL_INVALID', text, {
    field: 'gate',
    line: String(line),
    column: String(column),
    hint,
    problems: String(problems.length),
  });
}
