import { gateError } from './gate-error.ts';
import { placeSubjects } from './place-subjects.ts';
import { printGateTree } from './print-gate-tree.ts';
import { readGateTree } from './read-gate-tree.ts';
import { treeOfDocument } from './tree-of-document.ts';

/**
 * The readable form of a model's JSON form, as `formatGate` lays it out. `parseGate` gives the same
 * document back, member for member, whether or not its names and references are right.
 * Errors: MODEL_INVALID naming the JSON path, for what is no model document. O(size).
 */
export function printGate(document: unknown): string {
  return printGateTree(treeOfDocument(document));
}

/**
 * The text in its one layout: comments stay where they are, blank lines next to comments stay. A text
 * without comments comes out as `printGate` writes its document.
 * Errors: MODEL_INVALID, as `parseGate`. O(length).
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
