/**
 * JSON whose objects keep the order of their keys, also of those that look like numbers (JSON.parse
 * moves these to the front): the MAC of a SOPS file covers the values in the order of the file. Nodes are
 * mutable: a vault is changed in place.
 */
export type JsonNode =
  | { readonly kind: 'object'; readonly entries: JsonEntry[] }
  | { readonly kind: 'array'; readonly items: JsonNode[] }
  | { readonly kind: 'string'; readonly value: string }
  /** `text` as written. */
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'null' };
export type JsonEntry = { readonly key: string; value: JsonNode };
export type JsonObjectNode = Extract<JsonNode, { readonly kind: 'object' }>;

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const BLANK = 0x20;
const BACKSLASH = 0x5c;

/** What of a text is not refused: levels of nesting, and keys that an object has twice. */
export type OrderedJsonOptions = { readonly depthMax: number; readonly mayRepeatKeys?: boolean };

/** Errors: SyntaxError, without the text; also for a key that an object has twice and for nesting above the limit. */
export function parseOrderedJson(text: string, options: OrderedJsonOptions): JsonNode {
  const reader = new OrderedReader(text, options);
  const node = reader.value(0);
  reader.end();
  return node;
}

/** The text as SOPS writes it: tabs, one value a line, a line break at the end. */
export function orderedJsonText(node: JsonNode): string {
  return `${textOf(node, '')}\n`;
}

export function entryOf(node: JsonNode | undefined, key: string): JsonNode | undefined {
  if (node?.kind !== 'object') return undefined;
  return node.entries.find((entry) => entry.key === key)?.value;
}

export function stringOf(node: JsonNode | undefined, key: string): string | undefined {
  const value = entryOf(node, key);
  return value?.kind === 'string' ? value.value : undefined;
}

/** Replaces or appends. */
export function setEntry(node: JsonObjectNode, key: string, value: JsonNode): void {
  const present = node.entries.find((entry) => entry.key === key);
  if (present === undefined) node.entries.push({ key, value });
  else present.value = value;
}

export function removeEntry(node: JsonObjectNode, key: string): boolean {
  const at = node.entries.findIndex((entry) => entry.key === key);
  if (at >= 0) node.entries.splice(at, 1);
  return at >= 0;
}

class OrderedReader {
  readonly #text: string;
  readonly #options: OrderedJsonOptions;
  #at = 0;

  constructor(text: string, options: OrderedJsonOptions) {
    this.#text = text;
    this.#options = options;
  }

  value(depth: number): JsonNode {
    const { depthMax } = this.#options;
    if (depth > depthMax) throw this.#error(`nested deeper than ${depthMax} levels`);
    this.#skipSpace();
    const next = this.#text.charAt(this.#at);
    if (next === '{') return this.#object(depth);
    if (next === '[') return this.#array(depth);
    if (next === '"') return { kind: 'string', value: this.#string() };
    const number = this.#match(NUMBER);
    if (number !== undefined) return { kind: 'number', text: number };
    const word = this.#match(WORD);
    if (word === undefined) throw this.#error('a value is missing');
    return word === 'null' ? { kind: 'null' } : { kind: 'boolean', value: word === 'true' };
  }

  end(): void {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#error('something follows the document');
  }

  #object(depth: number): JsonNode {
    const entries: JsonEntry[] = [];
    const keys = new Set<string>();
    this.#at++;
    if (this.#takes('}')) return { kind: 'object', entries };
    do {
      this.#skipSpace();
      const key = this.#string();
      if (keys.has(key) && this.#options.mayRepeatKeys !== true) {
        throw this.#error('a key stands there twice');
      }
      keys.add(key);
      if (!this.#takes(':')) throw this.#error('a : is missing');
      entries.push({ key, value: this.value(depth + 1) });
    } while (this.#takes(','));
    if (!this.#takes('}')) throw this.#error('a } is missing');
    return { kind: 'object', entries };
  }

  #array(depth: number): JsonNode {
    const items: JsonNode[] = [];
    this.#at++;
    if (this.#takes(']')) return { kind: 'array', items };
    do items.push(this.value(depth + 1));
    while (this.#takes(','));
    if (!this.#takes(']')) throw this.#error('a ] is missing');
    return { kind: 'array', items };
  }

  #string(): string {
    const from = this.#at;
    if (this.#text.charAt(from) !== '"') throw this.#error('a string is missing');
    let end = this.#text.indexOf('"', from + 1);
    while (end > 0 && this.#isEscaped(from, end)) end = this.#text.indexOf('"', end + 1);
    if (end < 0) throw this.#error('a string does not end');
    this.#at = end + 1;
    try {
      return JSON.parse(this.#text.slice(from, this.#at)) as string;
    } catch {
      // Its text quotes the string.
      throw this.#error('a string is wrong');
    }
  }

  /** By an odd number of backslashes in front of it; they are looked at once, since a quote stands behind them. */
  #isEscaped(from: number, quote: number): boolean {
    let start = quote;
    while (start - 1 > from && this.#text.charCodeAt(start - 1) === BACKSLASH) start--;
    return (quote - start) % 2 === 1;
  }

  #takes(mark: string): boolean {
    this.#skipSpace();
    if (this.#text.charAt(this.#at) !== mark) return false;
    this.#at++;
    return true;
  }

  #skipSpace(): void {
    // Most of what is read stands without any.
    if (this.#text.charCodeAt(this.#at) <= BLANK) this.#match(SPACE);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #error(problem: string): SyntaxError {
    const line = this.#text.slice(0, this.#at).split('\n').length;
    return new SyntaxError(`line ${line}: ${problem}`);
  }
}

function textOf(node: JsonNode, indent: string): string {
  const inner = `${indent}\t`;
  switch (node.kind) {
    case 'object': {
      if (node.entries.length === 0) return '{}';
      const lines = node.entries.map(
        ({ key, value }) => `${inner}${JSON.stringify(key)}: ${textOf(value, inner)}`,
      );
      return `{\n${lines.join(',\n')}\n${indent}}`;
    }
    case 'array': {
      if (node.items.length === 0) return '[]';
      const lines = node.items.map((item) => `${inner}${textOf(item, inner)}`);
      return `[\n${lines.join(',\n')}\n${indent}]`;
    }
    case 'string':
      return JSON.stringify(node.value);
    case 'number':
      return node.text;
    case 'boolean':
      return String(node.value);
    case 'null':
      return 'null';
  }
}
