import {
  type Document,
  LineCounter,
  type Node,
  type Pair,
  Scalar,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
} from 'yaml';
import type { Position } from '../model/workflow.ts';
import { DEPTH_MAX, FILE_CHARACTERS_MAX, NODES_MAX, SCALAR_CHARACTERS_MAX } from './limits.ts';
import { numberFromText, numberText } from './number-text.ts';
import type { ProblemList } from './problems.ts';
import { scanYaml } from './yaml-scan.ts';
import { tagProblem, withStrictTags } from './yaml-tags.ts';

export type ScalarValue = string | number | boolean | null;
export type YamlScalar = {
  readonly kind: 'scalar';
  readonly value: ScalarValue;
  readonly at: Position;
};
export type YamlNode =
  | YamlScalar
  | { readonly kind: 'sequence'; readonly items: readonly YamlNode[]; readonly at: Position }
  | {
      readonly kind: 'mapping';
      readonly entries: readonly { readonly key: YamlScalar; readonly value: YamlNode }[];
      readonly at: Position;
    };

/** Limits of one file; those of limits.ts where absent. */
export type YamlLimits = {
  readonly charactersMax?: number | undefined;
  readonly depthMax?: number | undefined;
  readonly scalarCharactersMax?: number | undefined;
};

const TAG_CHARACTERS_MAX = 500;
const MERGE_KEY = '<<';
const MERGE_REFUSED =
  "Merge keys ('<<') are not supported: write the entries out, or take the whole mapping by an alias";
const START: Position = { line: 1, column: 1 };

/**
 * The tree of a YAML 1.2 (core schema) text, aliases expanded, without merge keys; undefined, with
 * problems, for what is no YAML or is too large. Never throws. Keys may repeat: who reads the tree
 * refuses them, as GitHub does, without regard to case.
 */
export function readYaml(
  text: string,
  problems: ProblemList,
  limits: YamlLimits = {},
): YamlNode | undefined {
  const charactersMax = limits.charactersMax ?? FILE_CHARACTERS_MAX;
  if (text.length > charactersMax) {
    problems.add(START, `The maximum file size of ${charactersMax} characters has been exceeded`);
    return undefined;
  }
  try {
    return parse(text, problems, limits);
  } catch (error) {
    problems.add(
      error instanceof TreeError ? error.at : START,
      error instanceof TreeError ? error.message : 'The file cannot be read as YAML',
    );
    return undefined;
  }
}

function parse(text: string, problems: ProblemList, limits: YamlLimits): YamlNode | undefined {
  const early = scanYaml(text);
  if (early !== undefined) {
    problems.add(early.at, early.message);
    return undefined;
  }
  const lines = new LineCounter();
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    customTags: withStrictTags,
    uniqueKeys: false,
    lineCounter: lines,
    prettyErrors: false,
    // With `silent` a second document would go unnoticed.
    logLevel: 'error',
  });
  // Warnings are about tags, which the tree is checked for.
  for (const problem of document.errors) {
    const { line, col } = lines.linePos(problem.pos[0]);
    problems.add(
      { line: Math.max(line, 1), column: Math.max(col, 1) },
      problem.code === 'MULTIPLE_DOCS' ? 'The file holds more than one document' : problem.message,
    );
  }
  if (!problems.isEmpty) {
    return undefined;
  }
  return new TreeBuilder(text, document, lines, limits).build();
}

/** Ends the reading of a file: what follows could not be trusted. */
class TreeError extends Error {
  readonly at: Position;

  constructor(at: Position, message: string) {
    super(message);
    this.at = at;
  }
}

class TreeBuilder {
  readonly #text: string;
  readonly #document: Document;
  readonly #lines: LineCounter;
  readonly #depthMax: number;
  readonly #charactersMax: number;
  readonly #open = new Set<Node>();
  #nodes = 0;
  #characters = 0;

  constructor(text: string, document: Document, lines: LineCounter, limits: YamlLimits) {
    this.#text = text;
    this.#document = document;
    this.#lines = lines;
    this.#depthMax = limits.depthMax ?? DEPTH_MAX;
    this.#charactersMax = limits.scalarCharactersMax ?? SCALAR_CHARACTERS_MAX;
  }

  build(): YamlNode {
    return this.#node(this.#document.contents, START, 1);
  }

  #node(source: unknown, fallback: Position, depth: number): YamlNode {
    const node = source as Node | null | undefined;
    if (node === null || node === undefined) {
      return { kind: 'scalar', value: null, at: fallback };
    }
    const at = this.#position(node, fallback);
    this.#nodes += 1;
    if (this.#nodes > NODES_MAX) {
      throw new TreeError(at, `More than ${NODES_MAX} values, aliases expanded`);
    }
    const problem = tagProblem(node);
    if (problem !== undefined) {
      throw new TreeError(this.#tagPosition(node, at), problem);
    }
    if (isAlias(node)) {
      return this.#alias(node.resolve(this.#document), at, depth);
    }
    if (isScalar(node)) {
      return { kind: 'scalar', value: this.#scalar(node, at), at };
    }
    if (depth >= this.#depthMax) {
      throw new TreeError(at, 'Maximum object depth exceeded');
    }
    if (isSeq(node)) {
      return {
        kind: 'sequence',
        items: node.items.map((item) => this.#node(item, at, depth + 1)),
        at,
      };
    }
    if (isMap(node)) {
      return {
        kind: 'mapping',
        entries: node.items.map((pair) => this.#entry(pair, at, depth + 1)),
        at,
      };
    }
    throw new TreeError(at, 'Expected a scalar value, a sequence, or a mapping');
  }

  #entry(
    pair: Pair,
    at: Position,
    depth: number,
  ): { readonly key: YamlScalar; readonly value: YamlNode } {
    const key = this.#node(pair.key, at, depth);
    if (key.kind !== 'scalar') {
      throw new TreeError(key.at, 'A mapping key must be a scalar');
    }
    if (key.value === MERGE_KEY && isScalar(pair.key) && pair.key.type === Scalar.PLAIN) {
      throw new TreeError(key.at, MERGE_REFUSED);
    }
    return { key, value: this.#node(pair.value, key.at, depth) };
  }

  #alias(target: Node | undefined, at: Position, depth: number): YamlNode {
    if (target === undefined) {
      throw new TreeError(at, 'The alias has no anchor');
    }
    if (this.#open.has(target)) {
      throw new TreeError(at, 'The alias stands within its own anchor');
    }
    this.#open.add(target);
    const node = this.#node(target, at, depth);
    this.#open.delete(target);
    return node;
  }

  #scalar({ value, format, source = '' }: Scalar, at: Position): ScalarValue {
    if (value === undefined || value === null) {
      return null;
    }
    if (typeof value === 'string') {
      this.#characters += value.length;
      if (this.#characters > this.#charactersMax) {
        throw new TreeError(at, 'Maximum object size exceeded');
      }
      return value;
    }
    if (typeof value === 'number' && (format === 'HEX' || format === 'OCT')) {
      const number = numberFromText(source);
      if (!Number.isNaN(number)) return number;
      throw new TreeError(at, `The value '${source}' is more than 32 bits`);
    }
    if (typeof value === 'number' || typeof value === 'boolean') {
      return value;
    }
    throw new TreeError(at, `Unexpected value of type ${typeof value}`);
  }

  /** The tag stands before its node, with blanks and perhaps an anchor between. */
  #tagPosition(node: Node, at: Position): Position {
    const end = node.range?.[0] ?? 0;
    const before = this.#text.slice(Math.max(0, end - TAG_CHARACTERS_MAX), end);
    const match = /!\S*\s+(?:&\S+\s+)?$/.exec(before);
    if (match === null) {
      return at;
    }
    const { line, col } = this.#lines.linePos(end - match[0].length);
    return { line, column: col };
  }

  #position(node: Node, fallback: Position): Position {
    const offset = node.range?.[0];
    if (offset === undefined) {
      return fallback;
    }
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }
}

/** The tree as plain objects and arrays; of equal keys the last one counts. */
export function plainFromYaml(node: YamlNode): unknown {
  switch (node.kind) {
    case 'scalar':
      return node.value;
    case 'sequence':
      return node.items.map(plainFromYaml);
    case 'mapping':
      return Object.fromEntries(
        node.entries.map(({ key, value }) => [scalarText(key.value), plainFromYaml(value)]),
      );
  }
}

/** A scalar where a text is wanted: '' for null, as GitHub writes numbers (3.10 becomes 3.1). */
export function scalarText(value: ScalarValue): string {
  if (value === null) {
    return '';
  }
  return typeof value === 'number' ? numberText(value) : String(value);
}
