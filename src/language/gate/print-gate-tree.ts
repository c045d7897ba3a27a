import { blockOfExpression } from '../cel-block.ts';
import { gateError } from './gate-lexer.ts';
import {
  BARE,
  type Comments,
  type CompositeOperator,
  type ConditionStatement,
  type GateTree,
  type Item,
  type NamespaceStatement,
  type Parameter,
  type RelationStatement,
  type Rule,
  type SubjectEntry,
  type SubjectEntryList,
  type Term,
} from './gate-tree.ts';
import { RESERVED } from './gate-words.ts';
import { placeSubjects } from './place-subjects.ts';
import { readGateTree } from './read-gate-tree.ts';
import { treeOfDocument } from './tree-of-document.ts';

/** Longest line, in characters. The parts of a longer one get separate lines. */
const WIDTH_MAX = 100;
const NAME = /^[A-Za-z_](?:[A-Za-z0-9_]|-(?!>))*$/;
const TYPE = /^[a-z_]+(?:<[a-z_]+){0,8}>*$/;
const STEP = '  ';
const WORDS: Readonly<Record<CompositeOperator, string>> = {
  union: 'or',
  intersection: 'and',
  exclusion: 'but not',
};

/**
 * The one text of a tree. Statements are separated by blank lines, relations only next to a
 * comment. A rule is on one line if it fits and no comment is in the way. Ends with a line break.
 * O(size).
 */
export function printGateTree(tree: GateTree): string {
  const blocks: string[] = [];
  if (tree.schema !== undefined) blocks.push(statement(tree.schema, 'schema 1'));
  if (tree.noConditions !== undefined) blocks.push(statement(tree.noConditions, 'conditions none'));
  for (const condition of tree.conditions) blocks.push(printCondition(condition));
  if (tree.builtIn !== undefined) blocks.push(statement(tree.builtIn, 'built-in'));
  for (const namespace of tree.namespaces) blocks.push(printNamespace(namespace));
  const rest = spaced(tree.dangling, true);
  if (rest.length > 0) blocks.push(trimmedEnd(rest).join('\n'));
  return `${blocks.join('\n\n')}\n`;
}

/** A statement with its comments. The printer sets the blank lines before it. */
function statement(item: Item, text: string): string {
  return [...spaced(item.leading, true), text + behind(item)].join('\n');
}

function printCondition(condition: ConditionStatement): string {
  const { name, parameters, expression } = condition;
  const body = blockOfExpression(expression) ?? JSON.stringify(expression);
  const inner = parameters === undefined ? '' : `(${parameters.map(printParameter).join(', ')})`;
  const head = `condition ${nameText(name)}`;
  if (parameters?.some(hasComments) !== true && `${head}${inner} {`.length <= WIDTH_MAX) {
    return statement(condition, `${head}${inner} ${body}`);
  }
  const lines = (parameters ?? []).map((one) => commented(one, STEP, `${printParameter(one)},`));
  return statement(condition, `${head}(\n${lines.join('\n')}\n) ${body}`);
}

function printParameter({ name, type }: Parameter): string {
  const isBalanced = type.split('<').length === type.split('>').length;
  const isReserved = type.split(/[<>]/).some((word) => RESERVED.has(word));
  const isPlain = TYPE.test(type) && isBalanced && !isReserved;
  return `${nameText(name)}: ${isPlain ? type : JSON.stringify(type)}`;
}

function printNamespace(namespace: NamespaceStatement): string {
  const { name, open, relations } = namespace;
  const openText = open === undefined ? '' : open ? 'open ' : 'closed ';
  const opening = `{${namespace.headerTrailing === undefined ? '' : ` ${namespace.headerTrailing}`}`;
  const head = `${openText}namespace ${nameText(name)} `;
  const lines: string[] = relations.map((relation, index) => printRelation(relation, index === 0));
  const dangling = trimmedEnd(spaced(namespace.dangling, lines.length === 0));
  lines.push(...indented(dangling, STEP));
  const isEmpty = lines.length === 0 && namespace.headerTrailing === undefined;
  return statement(namespace, head + (isEmpty ? '{}' : [opening, ...lines, '}'].join('\n')));
}

function printRelation(relation: RelationStatement, isFirst: boolean): string {
  const { subjects, rule } = relation;
  const leading = indented(spaced(relation.leading, isFirst), STEP);
  const outer = subjects === undefined ? '' : ` ${printSubjects(subjects)}`;
  const head = `${STEP}relation ${nameText(relation.name)}${outer}`;
  if (rule === undefined) return [...leading, head + behind(relation)].join('\n');
  const line = `${head}: ${onOneLine(rule)}`;
  const last = rule.operands.at(-1) ?? BARE;
  if (fitsOneLine(rule) && line.length <= WIDTH_MAX) {
    return [...leading, line + behind(last)].join('\n');
  }
  return [...leading, `${head}:`, ...rule.operands.flatMap(operandLines(rule))].join('\n');
}

/** Puts each operand on a separate line, behind the operator except for the first one. */
function operandLines(rule: Rule) {
  return (operand: Rule['operands'][number], index: number): string[] => {
    const indent = STEP.repeat(2);
    const isPrefixed = index > 0 || (rule.operands.length === 1 && rule.op !== 'single');
    const word = isPrefixed && rule.op !== 'single' ? `${WORDS[rule.op]} ` : '';
    const { term } = operand;
    const line = `${indent}${word}${printTerm(term)}`;
    const comments = indented(unspaced(operand.leading), indent);
    if (term.kind !== 'subjects') return [...comments, line + behind(operand)];
    const { list } = term;
    const hasInner = list.entries.some(hasComments) || unspaced(list.dangling).length > 0;
    if (!hasInner && line.length <= WIDTH_MAX) return [...comments, line + behind(operand)];
    const entries = list.entries.map((entry) =>
      commented(entry, indent + STEP, `${printSubject(entry)},`),
    );
    const dangling = indented(unspaced(list.dangling), indent + STEP);
    const closing = `${indent}]${behind(operand)}`;
    return [...comments, `${indent}${word}[`, ...entries, ...dangling, closing];
  };
}

/** True if the rule has no comment except behind its end. */
function fitsOneLine(rule: Rule): boolean {
  return rule.operands.every((operand, index) => {
    if (unspaced(operand.leading).length > 0) return false;
    if (operand.trailing !== undefined && index < rule.operands.length - 1) return false;
    if (operand.term.kind !== 'subjects') return true;
    const { entries, dangling } = operand.term.list;
    return !entries.some(hasComments) && unspaced(dangling).length === 0;
  });
}

function onOneLine({ op, operands }: Rule): string {
  const terms = operands.map(({ term }) => term);
  const [only] = terms;
  return op === 'single' && only !== undefined ? printTerm(only) : joined(op, terms);
}

function joined(op: Rule['op'], terms: readonly Term[]): string {
  const word = op === 'single' ? '' : WORDS[op];
  const texts = terms.map(printTerm);
  return texts.length === 1 ? `${word} ${texts[0]}` : texts.join(` ${word} `);
}

function printTerm(term: Term): string {
  switch (term.kind) {
    case 'empty':
      return '()';
    case 'this':
      return 'this';
    case 'subjects':
      return printSubjects(term.list);
    case 'computed':
      return nameText(term.name);
    case 'walk':
      return `${nameText(term.computed)} from ${nameText(term.tupleset)}`;
    case 'composite':
      return `(${joined(term.op, term.terms)})`;
  }
}

function printSubjects({ entries }: SubjectEntryList): string {
  return `[${entries.map(printSubject).join(', ')}]`;
}

function printSubject({ type, isObject, condition, expires }: SubjectEntry): string {
  const text = subjectText(type);
  if (isObject) return `(${text})`;
  const demands = [
    ...(condition === undefined ? [] : [nameText(condition)]),
    ...(expires === true ? ['expiration'] : []),
  ];
  const withText = demands.length === 0 ? '' : ` with ${demands.join(' and ')}`;
  return text + withText + (expires === false ? ' without expiration' : '');
}

function subjectText(type: string): string {
  const [, name = '', rest = '', relation = ''] = /^([^:#]*)(:\*$|#(.*)$|$)/.exec(type) ?? [];
  const isPlain = isPlainName(name) && (!rest.startsWith('#') || isPlainName(relation));
  return isPlain ? type : JSON.stringify(type);
}

function nameText(name: string): string {
  return isPlainName(name) ? name : JSON.stringify(name);
}

function isPlainName(name: string): boolean {
  return NAME.test(name) && !RESERVED.has(name);
}

function hasComments({ leading, trailing }: Item): boolean {
  return trailing !== undefined || unspaced(leading).length > 0;
}

function commented(item: Item, indent: string, text: string): string {
  const leading = indented(unspaced(item.leading), indent);
  return [...leading, indent + text + behind(item)].join('\n');
}

function behind({ trailing }: Item): string {
  return trailing === undefined ? '' : ` ${trailing}`;
}

function indented(comments: Comments, indent: string): readonly string[] {
  return comments.map((comment) => (comment === '' ? '' : indent + comment));
}

function unspaced(comments: Comments): readonly string[] {
  return comments.filter((comment) => comment !== '');
}

/** Keeps blank lines next to comments, one at a time; none at the start of a block. */
function spaced(comments: Comments, isAtStart: boolean): readonly string[] {
  if (unspaced(comments).length === 0) return [];
  const kept = comments.filter((comment, at) => comment !== '' || comments[at - 1] !== '');
  return isAtStart && kept[0] === '' ? kept.slice(1) : kept;
}

function trimmedEnd(comments: readonly string[]): readonly string[] {
  return comments.at(-1) === '' ? comments.slice(0, -1) : comments;
}

/**
 * The readable form of a model's JSON form, in the layout of `formatGate`. `parseGate` returns the
 * same document, member for member, even if its names and references are wrong.
 * Errors: MODEL_INVALID naming the JSON path, if the value is not a model document. O(size).
 */
export function printGate(document: unknown): string {
  return printGateTree(treeOfDocument(document));
}

/**
 * The text in its one layout. Comments keep their places, and blank lines next to comments stay. A
 * text without comments becomes what `printGate` writes for its document.
 * Errors: MODEL_INVALID, like `parseGate`. O(length).
 */
export function formatGate(text: string): string {
  const { tree, problems } = readGateTree(text);
  if (problems.length > 0) throw gateError(problems);
  const namespaces = tree.namespaces.map((namespace) => ({
    ...namespace,
    relations: namespace.relations.map(placeSubjects),
  }));
  return printGateTree({ ...tree, namespaces });
}
