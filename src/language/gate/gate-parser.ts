import type { AppError } from '../../shared/app-error.ts';
import { nearestName } from '../../shared/text/nearest-name.ts';
import { expressionOfBlock } from '../cel-block.ts';
import type { TextLines } from '../text-lines.ts';
import { gateError, GateLexer, type GateProblem, type Token } from './gate-lexer.ts';
import type { Item, Parameter, SubjectEntry, SubjectEntryList } from './gate-tree.ts';
import { hintFor, RESERVED } from './gate-words.ts';

/** Problems after which the rest of a text is not read. */
const PROBLEMS_MAX = 100;
/** Characters of a token that a message shows. */
const SHOWN_MAX = 64;

/**
 * The reader that all parts of the grammar share. It has one token of look-ahead, holds comments
 * for the item that they hang on, and reads small forms that occur in many places.
 */
export class GateParser {
  readonly problems: GateProblem[] = [];
  readonly #lines: TextLines;
  readonly #lexer: GateLexer;
  #token: Token;
  /** Comments already read that no item has taken yet. */
  #carried: string[] = [];
  /** The comment behind the last token that was read, and the comments before the token ahead. */
  #behind: string | undefined;
  #ahead: readonly string[];
  /** The latest error, which `recover` recognizes. */
  #raised: { readonly error: AppError; readonly problem: GateProblem } | undefined;

  constructor(lines: TextLines) {
    this.#lines = lines;
    this.#lexer = new GateLexer(lines.text);
    this.#token = this.#lexer.next();
    this.#ahead = this.#token.before;
  }

  get token(): Token {
    return this.#token;
  }

  advance(): Token {
    const token = this.#token;
    this.#carryOn();
    this.#behind = this.#lexer.readTrailing();
    this.#read();
    return token;
  }

  /** Takes the comments before the token ahead, and earlier ones that no item has taken. */
  takeLeading(): string[] {
    this.#carryOn();
    this.#ahead = [];
    const taken = this.#carried;
    this.#carried = [];
    return taken;
  }

  /** Takes the comment behind the token that was read last. */
  takeTrailing(): string | undefined {
    const taken = this.#behind;
    this.#behind = undefined;
    return taken;
  }

  /**
   * Reads an item, whose first token is ahead, by `read`. Comments inside of it become leading
   * comments.
   */
  item<Part>(read: () => Part): Part & Item {
    const at = this.#token.at;
    const leading = this.takeLeading();
    const part = read();
    const inside = this.#carried.filter((comment) => comment !== '');
    this.#carried = [];
    return { ...part, leading: [...leading, ...inside], trailing: this.takeTrailing(), at };
  }

  isMark(text: string): boolean {
    return this.#token.kind === 'mark' && this.#token.text === text;
  }

  isWord(text: string): boolean {
    return this.#token.kind === 'name' && this.#token.text === text;
  }

  tryMark(text: string): boolean {
    if (!this.isMark(text)) return false;
    this.advance();
    return true;
  }

  tryWord(text: string): boolean {
    if (!this.isWord(text)) return false;
    this.advance();
    return true;
  }

  mark(text: string, where: string): void {
    if (!this.tryMark(text)) throw this.expected(`"${text}" ${where}`);
  }

  /** Reads a name, or a string for a name that is a reserved word or has other characters. */
  name(what: string): string {
    const { kind, text } = this.#token;
    if (kind === 'string') return this.advance().text;
    if (kind !== 'name') throw this.expected(what);
    if (RESERVED.has(text)) {
      throw this.expected(
        what,
        `a name that is a word of the language stands in quotes: "${text}"`,
      );
    }
    return this.advance().text;
  }

  /**
   * Reads the block behind the brace ahead, an expression, with its offset. An expression that no
   * block can hold is a string.
   */
  block(): { readonly expression: string; readonly expressionAt: number } {
    if (this.#token.kind === 'string') {
      const expressionAt = this.#token.at;
      return { expression: this.advance().text, expressionAt };
    }
    if (!this.isMark('{')) throw this.expected('"{" before the expression');
    const opening = this.#token;
    this.#carryOn();
    const block = this.#lexer.readBlock();
    if (block === undefined) {
      throw this.problemAt(opening.at, 'the expression does not end', 'it ends at its own "}"');
    }
    this.#behind = this.#lexer.readTrailing();
    this.#read();
    const lead = /^\s*/.exec(block.text)?.[0].length ?? 0;
    return { expression: expressionOfBlock(block.text), expressionAt: block.at + lead };
  }

  /** Reads `(name: type, …)`. */
  parameters(): Parameter[] {
    this.mark('(', 'before the parameters');
    const parameters: Parameter[] = [];
    const names = new Set<string>();
    while (!this.isMark(')')) {
      const at = this.#token.at;
      const parameter = this.item(() => {
        const name = this.name('the name of a parameter');
        this.mark(':', 'and the type of the parameter');
        return { name, type: this.#parameterType(1) };
      });
      if (names.has(parameter.name)) {
        throw this.problemAt(at, `the parameter ${shortened(parameter.name)} is there already`);
      }
      names.add(parameter.name);
      if (!this.isMark(')')) this.mark(',', 'or ")" after a parameter');
      parameters.push(withTrailing(parameter, this.takeTrailing()));
    }
    this.advance();
    return parameters;
  }

  /**
   * Reads `[user, group#member, …]`. With `isOfItems` its entries are items and keep their
   * comments.
   */
  subjects(isOfItems: boolean): SubjectEntryList {
    this.mark('[', 'before the subjects');
    const entries: SubjectEntry[] = [];
    while (!this.isMark(']')) {
      const at = this.#token.at;
      const entry = isOfItems
        ? this.item(() => this.#subject())
        : { ...this.#subject(), leading: [], trailing: undefined, at };
      if (!this.isMark(']')) this.mark(',', 'or "]" after a subject');
      entries.push(isOfItems ? withTrailing(entry, this.takeTrailing()) : entry);
    }
    const dangling = isOfItems ? this.takeLeading().filter((comment) => comment !== '') : [];
    this.advance();
    return { entries, dangling };
  }

  #subject(): Omit<SubjectEntry, keyof Item> {
    if (this.tryMark('(')) {
      const type = this.#subjectType();
      this.mark(')', 'after the subject');
      return { type, isObject: true, condition: undefined, expires: undefined };
    }
    const type = this.#subjectType();
    let condition: string | undefined;
    let expires: boolean | undefined;
    if (this.tryWord('with')) {
      if (this.tryWord('expiration')) expires = true;
      else {
        condition = this.name('the name of a condition, or "expiration",');
        if (this.tryWord('and')) {
          if (!this.tryWord('expiration')) {
            throw this.expected('"expiration"', 'a subject has one condition; several are entries');
          }
          expires = true;
        }
      }
    }
    if (expires === undefined && this.tryWord('without')) {
      if (!this.tryWord('expiration')) throw this.expected('"expiration"');
      expires = false;
    }
    return { type, isObject: false, condition, expires };
  }

  #subjectType(): string {
    const type = this.name('a subject');
    if (this.tryMark('#')) return `${type}#${this.name('a relation')}`;
    if (!this.tryMark(':')) return type;
    this.mark('*', 'after ":"');
    return `${type}:*`;
  }

  #parameterType(nesting: number): string {
    if (this.#token.kind === 'string' && nesting === 1) return this.advance().text;
    const type = this.name('a type');
    if (!this.tryMark('<')) return type;
    if (nesting > 8) throw this.problemAt(this.#token.at, 'the type is nested too deep');
    const inner = this.#parameterType(nesting + 1);
    this.mark('>', 'after the inner type');
    return `${type}<${inner}>`;
  }

  /** The error for a token other than `what`. `words` are candidates for the likely intent. */
  expected(what: string, hint?: string, words: readonly string[] = []): AppError {
    const { kind, text, at } = this.#token;
    const found = kind === 'end' ? 'the end' : JSON.stringify(shortened(text));
    const isShort = text.length <= SHOWN_MAX;
    const nearest = kind === 'name' && isShort ? nearestName(text, words) : undefined;
    const meant =
      nearest !== undefined && nearest[0] === text[0] ? `did you mean "${nearest}"?` : '';
    return this.problemAt(at, `expected ${what} but found ${found}`, hint ?? hintFor(text, meant));
  }

  /** An error that `recover` recognizes. */
  problemAt(at: number, message: string, hint = ''): AppError {
    const problem = { message, hint, ...this.#lines.position(at) };
    const error = gateError([problem]);
    this.#raised = { error, problem };
    return error;
  }

  /**
   * Notes the problem of a statement and continues at the next one. False: there is nothing more to
   * read. Rethrows any other error.
   */
  recover(error: unknown): boolean {
    const raised = this.#raised;
    if (raised === undefined || raised.error !== error) throw error;
    this.problems.push(raised.problem);
    this.#carried = [];
    this.#behind = undefined;
    if (this.#token.kind === 'end' || this.problems.length >= PROBLEMS_MAX) return false;
    if (this.isWord('relation')) return true;
    this.#lexer.skipToStatement();
    this.#read();
    return this.token.kind !== 'end';
  }

  #read(): void {
    this.#token = this.#lexer.next();
    this.#ahead = this.#token.before;
  }

  #carryOn(): void {
    if (this.#behind !== undefined) this.#carried.push(this.#behind);
    this.#behind = undefined;
    this.#carried.push(...this.#ahead);
    this.#ahead = [];
  }
}

/** The part of a token that a message shows. */
export function shortened(text: string): string {
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;
}

/** Attaches a comment behind the comma to the item before the comma. */
function withTrailing<Part extends Item>(item: Part, trailing: string | undefined): Part {
  if (trailing === undefined) return item;
  if (item.trailing === undefined) return { ...item, trailing };
  return { ...item, leading: [...item.leading, item.trailing], trailing };
}
