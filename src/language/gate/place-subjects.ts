import { type Comments, type Item, BARE } from './gate-tree.ts';
import type { Operand, RelationStatement, Rule, SubjectEntryList, Term } from './gate-tree.ts';

/**
 * The relation in the one form that its document has. The operands of the outermost operator are
 * those of the rule. Subjects without any other part are the whole rule. Otherwise they replace the
 * first `this` below an operator, or precede the colon if there is none.
 *
 * Keeps every comment, in its order if it stays on its item. O(size).
 */
export function placeSubjects(relation: RelationStatement): RelationStatement {
  const found = findList(relation);
  const list = relation.subjects ?? found;
  if (list === undefined) {
    return relation.rule === undefined ? relation : { ...relation, rule: flat(relation.rule) };
  }
  // Subjects alone are the whole rule: they are its only member.
  const isAlone = relation.rule?.operands[0]?.term.kind === 'subjects' && isSingle(relation.rule);
  if (isAlone || relation.rule === undefined) return relation;
  const rule = flat(withoutList(relation.rule));
  const place = { isFree: true, list };
  const operands = isSingle(rule) ? [] : rule.operands.map((operand) => placeIn(operand, place));
  if (!place.isFree) return { ...relation, subjects: undefined, rule: { ...rule, operands } };
  const leading = [...relation.leading, ...commentsOf(list)];
  return { ...relation, leading, subjects: bareList(list), rule };
}

function isSingle(rule: Rule): boolean {
  return rule.op === 'single';
}

/** Turns `(a or b)` alone into `a or b`. */
function flat(rule: Rule): Rule {
  const [operand] = rule.operands;
  if (rule.op !== 'single' || operand?.term.kind !== 'composite') return rule;
  const { op, terms } = operand.term;
  const operands = terms.map((term, index): Operand => {
    const leading = index === 0 ? operand.leading : [];
    const trailing = index === terms.length - 1 ? operand.trailing : undefined;
    return { term, leading, trailing, at: term.at };
  });
  return { op, operands };
}

function findList(relation: RelationStatement): SubjectEntryList | undefined {
  const inTerm = (term: Term): SubjectEntryList | undefined => {
    if (term.kind === 'subjects') return term.list;
    return term.kind === 'composite' ? firstOf(term.terms.map(inTerm)) : undefined;
  };
  return firstOf((relation.rule?.operands ?? []).map(({ term }) => inTerm(term)));
}

function firstOf<Value>(values: readonly (Value | undefined)[]): Value | undefined {
  return values.find((value) => value !== undefined);
}

function withoutList(rule: Rule): Rule {
  const inTerm = (term: Term): Term => {
    if (term.kind === 'subjects') return { kind: 'this', at: term.at };
    return term.kind === 'composite' ? { ...term, terms: term.terms.map(inTerm) } : term;
  };
  const operands = rule.operands.map((operand) => ({ ...operand, term: inTerm(operand.term) }));
  return { ...rule, operands };
}

type SubjectPlace = { isFree: boolean; readonly list: SubjectEntryList };

function placeIn(operand: Operand, place: SubjectPlace): Operand {
  if (!place.isFree) return operand;
  const { term } = operand;
  if (term.kind === 'this') {
    place.isFree = false;
    return { ...operand, term: { kind: 'subjects', at: term.at, list: place.list } };
  }
  const placed = placeInTerm(term, place);
  if (placed === term) return operand;
  return { ...operand, term: placed, leading: [...operand.leading, ...commentsOf(place.list)] };
}

/**
 * Places the list in a term. Below an operand, the entries of a list have no lines for comments.
 */
function placeInTerm(term: Term, place: SubjectPlace): Term {
  if (!place.isFree) return term;
  if (term.kind === 'this') {
    place.isFree = false;
    return { kind: 'subjects', at: term.at, list: bareList(place.list) };
  }
  if (term.kind !== 'composite') return term;
  const terms = term.terms.map((one) => placeInTerm(one, place));
  return place.isFree ? term : { ...term, terms };
}

function bareList(list: SubjectEntryList): SubjectEntryList {
  return { entries: list.entries.map((entry) => ({ ...entry, ...BARE })), dangling: [] };
}

function commentsOf(list: SubjectEntryList): Comments {
  return [...list.entries.flatMap(commentsOfItem), ...list.dangling];
}

function commentsOfItem({ leading, trailing }: Item): Comments {
  return trailing === undefined ? leading : [...leading, trailing];
}
