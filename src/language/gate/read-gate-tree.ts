import { MODEL_NESTING_MAX } from '../../model/namespace/model-document.ts';
import { assert } from '../../shared/assert.ts';
import { TextLines } from '../text-lines.ts';
import { gateError, type GateProblem } from './gate-lexer.ts';
import { GateParser, shortened } from './gate-parser.ts';
import type {
  CompositeOperator,
  ConditionStatement,
  GateTree,
  Item,
  NamespaceStatement,
  Operand,
  RelationStatement,
  Rule,
  SchemaStatement,
  SubjectEntryList,
  Term,
} from './gate-tree.ts';

/** Longest text, in characters (UTF-16 units). */
export const GATE_LENGTH_MAX = 8 * 1024 * 1024;

const STATEMENTS = ['schema', 'built-in', 'condition', 'namespace', 'open', 'closed'];
const NESTED = 'one operator at a level: put the others into parentheses';

/** Result of reading a text: the tree is complete if there are no problems. */
export type GateReading = {
  readonly tree: GateTree;
  readonly problems: readonly GateProblem[];
  readonly lines: TextLines;
};

/**
 * Reads `.gate` text. After a problem it continues at the next statement, so that up to 100
 * problems are reported at once.
 * Errors: MODEL_INVALID for a text that is too long. O(length).
 */
export function readGateTree(text: string): GateReading {
  if (text.length > GATE_LENGTH_MAX) {
    const message = `the text is longer than ${GATE_LENGTH_MAX} characters`;
    throw gateError([{ message, hint: '', line: 1, column: 1 }]);
  }
  const lines = new TextLines(text);
  const reader = new GateReader(new GateParser(lines));
  return { ...reader.file(), lines };
}

/** The grammar of docs/models.md, with one method for each rule. */
class GateReader {
  readonly #parser: GateParser;
  #schema: SchemaStatement | undefined;
  #builtIn: Item | undefined;
  #noConditions: Item | undefined;
  readonly #conditions: ConditionStatement[] = [];
  readonly #namespaces: NamespaceStatement[] = [];
  readonly #names = new Set<string>();

  constructor(parser: GateParser) {
    this.#parser = parser;
  }

  file(): { readonly tree: GateTree; readonly problems: readonly GateProblem[] } {
    const parser = this.#parser;
    let goesOn = true;
    while (goesOn && parser.token.kind !== 'end') goesOn = this.#guarded(() => this.#statement());
    const dangling = parser.takeLeading();
    if (parser.problems.length === 0) {
      goesOn = this.#guarded(() => {
        if (this.#namespaces.length > 0 || this.#builtIn !== undefined) return;
        throw parser.expected('a namespace', 'the built-in model alone is written as "built-in"');
      });
    }
    const tree: GateTree = {
      schema: this.#schema,
      builtIn: this.#builtIn,
      noConditions: this.#noConditions,
      conditions: this.#conditions,
      namespaces: this.#namespaces,
      dangling,
    };
    return { tree, problems: parser.problems };
  }

  #guarded(read: () => void): boolean {
    try {
      read();
      return true;
    } catch (error) {
      return this.#parser.recover(error);
    }
  }

  #statement(): void {
    const parser = this.#parser;
    switch (parser.token.kind === 'name' ? parser.token.text : '') {
      case 'schema':
        this.#readSchema();
        return;
      case 'built-in':
        this.#refuseAfter(this.#builtIn ?? this.#namespaces[0], '"built-in" stands alone');
        this.#builtIn = parser.item(() => ({ word: parser.advance().text }));
        return;
      case 'conditions':
        this.#refuseAfter(
          this.#builtIn ?? this.#noConditions ?? this.#conditions[0] ?? this.#namespaces[0],
          '"conditions none" stands before all but the schema',
        );
        this.#noConditions = parser.item(() => {
          parser.advance();
          if (!parser.tryWord('none'))
            throw parser.expected('"none"', 'each has its own statement');
          return {};
        });
        return;
      case 'condition':
        this.#refuseAfter(this.#noConditions, 'there are no conditions, it is said above');
        this.#refuseAfter(
          this.#builtIn ?? this.#namespaces[0],
          'conditions stand before namespaces',
        );
        this.#conditions.push(this.#condition());
        return;
      case 'namespace':
      case 'open':
      case 'closed':
        this.#refuseAfter(this.#builtIn, '"built-in" stands alone');
        this.#namespaces.push(this.#namespace());
        return;
      case 'relation':
        if (parser.problems.length === 0) {
          throw parser.expected('a namespace', 'a relation stands in the braces of its namespace');
        }
        // Its namespace has a head that was not understood, which is reported once.
        this.#relation(`at ${parser.token.at}`);
        return;
      default:
        if (parser.problems.length > 0 && parser.tryMark('}')) return;
        throw parser.expected('a namespace or a condition', undefined, STATEMENTS);
    }
  }

  #refuseAfter(earlier: unknown, message: string): void {
    if (earlier !== undefined) throw this.#parser.problemAt(this.#parser.token.at, message);
  }

  #readSchema(): void {
    const parser = this.#parser;
    this.#refuseAfter(
      this.#schema ?? this.#builtIn ?? this.#conditions[0] ?? this.#namespaces[0],
      'the schema is the first statement, and there is one',
    );
    this.#schema = parser.item(() => {
      parser.advance();
      const { kind, text } = parser.token;
      if (kind !== 'number' || text !== '1') throw parser.expected('1', 'the schema is 1');
      parser.advance();
      return { version: 1 };
    });
  }

  #condition(): ConditionStatement {
    const parser = this.#parser;
    return parser.item(() => {
      parser.advance();
      const name = this.#newName('condition', '$');
      const parameters = parser.isMark('(') ? parser.parameters() : undefined;
      return { name, parameters, ...parser.block() };
    });
  }

  #namespace(): NamespaceStatement {
    const parser = this.#parser;
    const { at } = parser.token;
    const leading = parser.takeLeading();
    const isOpen = parser.tryWord('open') ? true : parser.tryWord('closed') ? false : undefined;
    if (!parser.tryWord('namespace')) throw parser.expected('"namespace"');
    const name = this.#newName('namespace', '$');
    if (!parser.isMark('{')) throw parser.expected('"{" before the relations');
    const inside = parser.takeLeading().filter((comment) => comment !== '');
    parser.advance();
    const headerTrailing = parser.takeTrailing();
    const relations: RelationStatement[] = [];
    while (!parser.isMark('}')) {
      const goesOn = this.#guarded(() => {
        if (!parser.isWord('relation')) {
          throw parser.expected('a relation or "}"', undefined, ['relation']);
        }
        relations.push(this.#relation(name));
      });
      // After a problem the next statement may well belong to another namespace.
      if (!goesOn || !(parser.isWord('relation') || parser.isMark('}'))) {
        if (parser.problems.length > 0) break;
      }
    }
    const dangling = parser.takeLeading();
    parser.tryMark('}');
    const trailing = parser.takeTrailing();
    return {
      name,
      open: isOpen,
      headerTrailing,
      relations,
      dangling,
      leading: [...leading, ...inside],
      trailing,
      at,
    };
  }

  #relation(namespace: string): RelationStatement {
    const parser = this.#parser;
    const { at } = parser.token;
    const leading = parser.takeLeading();
    parser.advance();
    const name = this.#newName('relation', namespace);
    const subjects = parser.isMark('[') ? parser.subjects(false) : undefined;
    const hasRule = parser.isMark(':');
    if (subjects !== undefined && !hasRule) throw parser.expected('":" after the subjects');
    if (!hasRule) {
      const isOver =
        parser.isMark('}') || parser.token.kind === 'name' || parser.token.kind === 'end';
      if (!isOver) throw parser.expected('":" and a rule');
      const trailing = parser.takeTrailing();
      return { name, subjects, rule: undefined, leading, trailing, at };
    }
    const rule = this.#rule(subjects);
    return { name, subjects, rule, leading, trailing: undefined, at };
  }

  #rule(outer: SubjectEntryList | undefined): Rule {
    const parser = this.#parser;
    const lists = { count: outer === undefined ? 0 : 1 };
    parser.advance();
    const operands: Operand[] = [];
    const op = this.#operands(() => {
      operands.push(parser.item(() => ({ term: this.#term(1, lists, true) })));
    });
    return { op, operands };
  }

  /** Reads `a or b or c`, `a and b`, `a but not b`, `or a` (a union of one), or just `a`. */
  #operands(operand: () => void): CompositeOperator | 'single' {
    const parser = this.#parser;
    const prefix = this.#tryOperator();
    if (prefix === 'exclusion') throw parser.expected('what the exclusion is taken from');
    operand();
    const { at: firstAt } = parser.token;
    const first = this.#tryOperator();
    if (prefix !== undefined && first !== undefined && prefix !== first) {
      throw parser.problemAt(firstAt, 'operators are mixed', NESTED);
    }
    if (first === undefined) return prefix ?? 'single';
    operand();
    for (;;) {
      const { at } = parser.token;
      const next = this.#tryOperator();
      if (next === undefined) return first;
      if (next !== first || next === 'exclusion') {
        throw parser.problemAt(at, 'operators are mixed', NESTED);
      }
      operand();
    }
  }

  #tryOperator(): CompositeOperator | undefined {
    const parser = this.#parser;
    if (parser.tryWord('or')) return 'union';
    if (parser.tryWord('and')) return 'intersection';
    if (!parser.tryWord('but')) return undefined;
    if (!parser.tryWord('not')) throw parser.expected('"not" after "but"');
    return 'exclusion';
  }

  #term(nesting: number, lists: { count: number }, isRoot: boolean): Term {
    const parser = this.#parser;
    const { at } = parser.token;
    if (parser.isMark('[')) {
      lists.count += 1;
      if (lists.count > 1) {
        throw parser.expected(
          'another operand',
          'a relation lists its subjects once; beyond, "this"',
        );
      }
      return { kind: 'subjects', at, list: parser.subjects(isRoot) };
    }
    if (parser.tryWord('this')) return { kind: 'this', at };
    if (parser.tryMark('(')) {
      if (parser.tryMark(')')) return { kind: 'empty', at };
      if (nesting >= MODEL_NESTING_MAX) {
        throw parser.problemAt(at, `it is nested more than ${MODEL_NESTING_MAX} deep`);
      }
      const terms: Term[] = [];
      const op = this.#operands(() => {
        terms.push(this.#term(nesting + 1, lists, false));
      });
      parser.mark(')', 'or an operator');
      const [only] = terms;
      if (op !== 'single') return { kind: 'composite', at, op, terms };
      assert(only !== undefined, 'one operand was read');
      return only;
    }
    const name = parser.name('a relation, subjects in brackets, or "this"');
    if (parser.tryWord('from')) {
      return { kind: 'walk', at, computed: name, tupleset: parser.name('a relation after "from"') };
    }
    return { kind: 'computed', at, name };
  }

  /** Reads a name that no other item of its kind has in `scope` yet. */
  #newName(kind: string, scope: string): string {
    const parser = this.#parser;
    const { at } = parser.token;
    const name = parser.name(`the name of a ${kind}`);
    const key = JSON.stringify([kind, scope, name]);
    if (this.#names.has(key)) {
      throw parser.problemAt(at, `the ${kind} ${shortened(name)} is there already`);
    }
    this.#names.add(key);
    return name;
  }
}
