import { Lexer } from 'yaml';
import type { Position } from '../model/workflow.ts';
import { DEPTH_MAX, YAML_TOKENS_MAX } from './limits.ts';

// Tokens of the lexer that are not in the text.
const DOCUMENT = '\u0002';
const FLOW_ERROR_END = '\u0018';
const SCALAR = '\u001f';

/** What must not reach the parser, and where. */
export type ScanProblem = { readonly at: Position; readonly message: string };

/**
 * Looks through a text before it is parsed. The parser recurses, and a stack that ends within a regular
 * expression ends the process; it also takes quadratic time on deep nesting. The lexer does neither.
 * Cost is linear.
 */
export function scanYaml(text: string): ScanProblem | undefined {
  const scan = new YamlScan();
  let offset = 0;
  for (const token of new Lexer().lex(text)) {
    const message = scan.take(token);
    if (message !== undefined) {
      return { at: positionAt(text, offset), message };
    }
    offset += isOutsideText(token) ? 0 : token.length;
  }
  return undefined;
}

function isOutsideText(token: string): boolean {
  return token === DOCUMENT || token === FLOW_ERROR_END || token === SCALAR;
}

class YamlScan {
  #tokens = 0;
  #flowDepth = 0;
  /** Columns at which what is open began; sequences may begin where their key does. */
  readonly #columns: number[] = [];
  #column = 0;
  #isAtStart = true;

  /** What is wrong, if the token makes it so. */
  take(token: string): string | undefined {
    this.#tokens += 1;
    if (this.#tokens > YAML_TOKENS_MAX) {
      return `More than ${YAML_TOKENS_MAX} tokens`;
    }
    if (isOutsideText(token)) {
      return undefined;
    }
    if (token === '[' || token === '{') {
      this.#flowDepth += 1;
    } else if (token === ']' || token === '}') {
      this.#flowDepth = Math.max(0, this.#flowDepth - 1);
    } else if (this.#flowDepth === 0 && this.#isAtStart && token.trim() !== '') {
      this.#open(token);
    }
    this.#move(token);
    return this.#columns.length + this.#flowDepth > DEPTH_MAX + 10
      ? 'Maximum object depth exceeded'
      : undefined;
  }

  #open(token: string): void {
    while ((this.#columns.at(-1) ?? -1) >= this.#column) {
      this.#columns.pop();
    }
    this.#columns.push(this.#column);
    // More may be opened on the same line after `- `, `? ` and `: `.
    this.#isAtStart = token === '-' || token === '?' || token === ':';
  }

  #move(token: string): void {
    const lineEnd = token.lastIndexOf('\n');
    if (lineEnd < 0) {
      this.#column += token.length;
    } else {
      this.#column = token.length - lineEnd - 1;
      this.#isAtStart = true;
    }
  }
}

function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: offset - lineStart + 1 };
}
