import { printGate } from '../../../language/gate/print-gate-tree.ts';
import type {
  ModelDocument,
  RelationDocument,
  RewriteDocument,
} from '../../../language/model-document.ts';
import { canonicalJson } from '../../../model/canonical-json.ts';
import type { JsonValue } from '../../../shared/json.ts';

/**
 * One part of a model: a namespace without its relations, a relation, a condition, or a statement
 * that occurs once.
 */
export type ModelStatement = {
  /** `namespace doc`, `doc#viewer`, `condition slow`. */
  readonly name: string;
  /** The statement in the readable form, on one line. */
  readonly text: string;
  /** Canonical form, equal for statements with the same meaning. */
  readonly meaning: string;
};

/**
 * The statements of a model by name: conditions before namespaces, each namespace before its
 * relations, sorted by name. Errors: MODEL_INVALID for a value that is not a model document.
 * O(size).
 */
export function modelStatements(document: ModelDocument): ReadonlyMap<string, ModelStatement> {
  // Prints the whole document, so that an error names its place.
  printGate(document);
  const { conditions, namespaces } = document;
  const statements: ModelStatement[] = [];
  const add = (name: string, text: string, meaning: unknown): void => {
    statements.push({ name, text, meaning: canonicalJson(meaning as JsonValue) });
  };
  const declared = sorted(conditions ?? {});
  if (conditions !== undefined && declared.length === 0) {
    add('conditions none', 'conditions none', true);
  }
  for (const [name, condition] of declared) {
    const { parameters = {}, expression } = condition;
    const text = printedLine({ conditions: { [name]: condition }, namespaces: {} }, 'built-in');
    add(`condition ${name}`, text, [Object.entries(parameters), expression]);
  }
  const all = sorted(namespaces);
  if (all.length === 0) add('built-in', 'built-in', true);
  for (const [name, { open = false, relations }] of all) {
    const bare = { namespaces: { [name]: { ...(open ? { open } : {}), relations: {} } } };
    add(`namespace ${name}`, printedLine(bare).replace(/ \{\}$/, ''), open);
    for (const [relation, rule] of sorted(relations)) {
      const alone = { namespaces: { [name]: { relations: { [relation]: rule } } } };
      const text = /\{ relation (.*) \}$/s.exec(printedLine(alone))?.[1] ?? relation;
      add(`${name}#${relation}`, `${name}#${text}`, meaningOf(rule));
    }
  }
  return new Map(statements.map((one) => [one.name, one]));
}

/**
 * A printed document on one line, without `besides`, which follows the part in the printed text.
 */
function printedLine(document: ModelDocument, besides = ''): string {
  const text = printGate(document).trimEnd();
  const lines = text
    .slice(0, text.length - besides.length)
    .trimEnd()
    .split('\n');
  return lines
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .reduce((before, line) => {
      if (before.endsWith('[')) return before + line;
      return line.startsWith(']') ? before.replace(/,$/, '') + line : `${before} ${line}`;
    });
}

function meaningOf({ subjects, ...rewrite }: RelationDocument): unknown {
  const admitted = subjects === undefined ? null : subjects.map(canonicalSubject).toSorted();
  return [admitted, meaningOfRewrite(rewrite)];
}

function canonicalSubject(subject: NonNullable<RelationDocument['subjects']>[number]): string {
  const isPlain = typeof subject !== 'string' && Object.keys(subject).length === 1;
  return canonicalJson(isPlain ? subject.type : subject);
}

/**
 * Canonical form of a rewrite: sorted operands of unions and intersections, and the operand alone
 * if there is only one.
 */
function meaningOfRewrite(rewrite: RewriteDocument): unknown {
  const { exclusion } = rewrite;
  if (exclusion !== undefined) {
    return ['but not', meaningOfRewrite(exclusion.include), meaningOfRewrite(exclusion.exclude)];
  }
  for (const member of ['union', 'intersection'] as const) {
    const operands = rewrite[member];
    if (operands === undefined) continue;
    const meanings = operands.map(meaningOfRewrite);
    if (meanings.length === 1) return meanings[0];
    return [member, meanings.map((one) => canonicalJson(one as JsonValue)).toSorted()];
  }
  return Object.keys(rewrite).length === 0 ? { this: {} } : rewrite;
}

function sorted<T>(members: Readonly<Record<string, T>>): readonly (readonly [string, T])[] {
  return Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1));
}
