import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
} from 'yaml';
import type { JsonValue } from '../shared/json.ts';
import { nearestName } from '../shared/text/nearest-name.ts';

/** Problem of a file, with its line and column, both from 1. */
export type YamlProblem = {
  readonly line: number;
  readonly column: number;
  readonly message: string;
};

/** Members of a mapping by key, with the place of each. */
export type Fields = ReadonlyMap<string, Field>;
export type Field = { readonly key: string; readonly keyNode: Node; readonly value: Node | null };

const PROBLEMS_MAX = 20;
const DEPTH_MAX = 64;
const BRACKETS_MAX = 200;

/**
 * Reads a YAML 1.2 text (core schema) by its nodes, so that every problem has its line. Keys must be unique in a
 * mapping; anchors, aliases and tags are rejected. Collects at most 20 problems. A value that has a problem is replaced
 * by a placeholder, which must not be used.
 */
export class YamlReader {
  readonly problems: YamlProblem[] = [];
  readonly #lines = new LineCounter();
  readonly root: Node | null;

  constructor(text: string) {
    this.root = this.#parse(text);
  }

  /** Line of a node, from 1; 0 if there is no node. */
  lineOf(node: Node | null | undefined): number {
    const start = node?.range?.[0];
    return start === undefined ? 0 : this.#lines.linePos(start).line;
  }

  problem(node: Node | null | undefined, message: string): void {
    const { line, col } = this.#lines.linePos(node?.range?.[0] ?? 0);
    this.#add(Math.max(1, line), Math.max(1, col), message);
  }

  problemAt(line: number, message: string): void {
    this.#add(line, 1, message);
  }

  /** Members of a mapping. Reports each key that is not `known`. */
  fields(node: Node | null, what: string, known: readonly string[], at?: Node): Fields {
    const fields = this.anyFields(node, what, at);
    for (const { key, keyNode } of fields.values()) {
      if (known.includes(key)) continue;
      const near = nearestName(key, known);
      const hint =
        near === undefined ? `; ${what} has ${known.join(', ')}` : `; did you mean "${near}"?`;
      this.problem(keyNode, `"${key}" is not known here${hint}`);
    }
    return fields;
  }

  /** Members of a mapping, with any keys. */
  anyFields(node: Node | null, what: string, at?: Node): Fields {
    const fields = new Map<string, Field>();
    if (!isMap(node)) {
      this.problem(node ?? at, `${what} must be a mapping`);
      return fields;
    }
    for (const { key: keyNode, value } of node.items as Pair<Node, Node | null>[]) {
      if (!isScalar(keyNode) || this.#isMarked(keyNode)) {
        this.problem(keyNode, 'a key must be a plain text');
        continue;
      }
      const text = typeof keyNode.value === 'string' ? keyNode.value : (keyNode.source ?? '');
      if (fields.has(text)) this.problem(keyNode, `"${text}" stands twice in one mapping`);
      fields.set(text, { key: text, keyNode, value: value ?? null });
    }
    return fields;
  }

  /** Entries of a list; empty if the field is absent. */
  list(field: Field | undefined, what: string): readonly (Node | null)[] {
    if (field === undefined) return [];
    const { value, keyNode } = field;
    if (isSeq(value)) return value.items as (Node | null)[];
    if (!isEmpty(value)) this.problem(value ?? keyNode, `${what} must be a list`);
    return [];
  }

  /** Text of a scalar; '' if it has none, which is a problem. Numbers and booleans are read as written. */
  text(node: Node | null | undefined, what: string, at?: Node): string {
    if (!isScalar(node) || node.value === null || this.#isMarked(node)) {
      this.problem(node ?? at, `${what} must be a text`);
      return '';
    }
    return typeof node.value === 'string' ? node.value : (node.source ?? '');
  }

  /** Reads `true` or `false`. Anything else is a problem, and reads as false. */
  truth(node: Node | null | undefined, what: string, at?: Node): boolean {
    if (isScalar(node) && typeof node.value === 'boolean') return node.value;
    this.problem(node ?? at, `${what} must be true or false`);
    return false;
  }

  /** Converts any value to JSON. */
  json(node: Node | null, depth = 0): JsonValue {
    if (node === null) return null;
    if (depth > DEPTH_MAX) {
      this.problem(node, `is nested more than ${DEPTH_MAX} deep`);
      return null;
    }
    if (this.#isMarked(node)) {
      this.problem(node, 'anchors, aliases and tags are not taken');
      return null;
    }
    if (isSeq(node)) return node.items.map((item) => this.json(item as Node | null, depth + 1));
    if (isMap(node)) {
      const entries = [...this.anyFields(node, 'a value').values()];
      // Creates own members, also for names such as `__proto__`.
      return Object.fromEntries(
        entries.map(({ key, value }) => [key, this.json(value, depth + 1)]),
      );
    }
    const value = isScalar(node) ? node.value : undefined;
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    this.problem(node, 'is no value that JSON has');
    return null;
  }

  #parse(text: string): Node | null {
    if (isTooDeep(text)) {
      this.#add(1, 1, `is nested more than ${DEPTH_MAX} deep`);
      return null;
    }
    try {
      const document = parseDocument(text, {
        version: '1.2',
        schema: 'core',
        merge: false,
        // It compares each key with all before it; see anyFields.
        uniqueKeys: false,
        lineCounter: this.#lines,
        prettyErrors: false,
        logLevel: 'error',
      });
      for (const { pos, message, code } of [...document.errors, ...document.warnings]) {
        const { line, col } = this.#lines.linePos(pos[0]);
        const problem = code === 'MULTIPLE_DOCS' ? 'one file holds one document' : message;
        this.#add(Math.max(1, line), Math.max(1, col), problem);
      }
      return this.problems.length > 0 ? null : document.contents;
    } catch (error) {
      // Thrown by the parser, which recurses as deep as the text is nested.
      if (!(error instanceof RangeError)) throw error;
      this.#add(1, 1, 'is nested too deeply');
      return null;
    }
  }

  #isMarked(node: Node): boolean {
    return isAlias(node) || node.tag !== undefined || ('anchor' in node && Boolean(node.anchor));
  }

  #add(line: number, column: number, message: string): void {
    if (this.problems.length < PROBLEMS_MAX) this.problems.push({ line, column, message });
  }
}

/**
 * Whether a text has more open brackets, or more block markers at the start of a line, than a sane file needs. The
 * parser's time grows with the square of its depth. Brackets inside texts count, too, if far more of them open than
 * close. O(text).
 */
function isTooDeep(text: string): boolean {
  let open = 0;
  let indicators = 0;
  let isLineStart = true;
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (character === '\n') {
      isLineStart = true;
      indicators = 0;
    } else if (character === '[' || character === '{') open += 1;
    else if (character === ']' || character === '}') open = Math.max(0, open - 1);
    else if (isLineStart && (character === '-' || character === '?' || character === '&')) {
      indicators += 1;
    } else if (character !== ' ' && character !== '\t') isLineStart = false;
    if (open > BRACKETS_MAX || indicators > BRACKETS_MAX) return true;
  }
  return false;
}

/** Whether a key has no value. */
export function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null);
}
