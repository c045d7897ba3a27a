import type { ModelDocument } from '../model-document.ts';
import { documentOfTree } from './document-of-tree.ts';
import { gateError, type GateProblem } from './gate-lexer.ts';
import { readGateTree } from './read-gate-tree.ts';

/** A model that was read from its readable form. */
export type ParsedGate = {
  /** The JSON form, member for member as `printGate` takes it. */
  readonly document: ModelDocument;
  /** `document` as JSON text: what is stored, and what `parseModel` takes. */
  readonly json: string;
  /**
   * Position in the text of the part that a JSON path names, as in paths of MODEL_INVALID and of warnings.
   * A path deeper than the text's parts gets the part around it.
   */
  readonly locate: (path: string) => { readonly line: number; readonly column: number };
};

/**
 * Reads a model in its readable form (`.gate`; docs/models.md has the grammar). Only its form is looked
 * at: what it says is for `checkModelDocument(json)`, whose paths `locate` finds in the text.
 * Errors: MODEL_INVALID, whose message and metadata (`line`, `column`, `hint`) say where the first
 * problem is and what was likely meant. O(length).
 */
export function parseGate(text: string): ParsedGate {
  const { tree, problems, lines } = readGateTree(text);
  if (problems.length > 0) throw gateError(problems);
  const { document, places } = documentOfTree(tree);
  const locate: ParsedGate['locate'] = (path) => {
    let prefix = path;
    while (prefix !== '$' && !places.has(prefix)) {
      const cut = Math.max(prefix.lastIndexOf('.'), prefix.lastIndexOf('['));
      prefix = cut <= 0 ? '$' : prefix.slice(0, cut);
    }
    return lines.position(places.get(prefix) ?? 0);
  };
  return { document, json: JSON.stringify(document), locate };
}

/**
 * All problems of a text's form in order, at most 100; none if `parseGate` reads it.
 * Errors: MODEL_INVALID for a text longer than GATE_LENGTH_MAX. O(length).
 */
export function gateProblems(text: string): readonly GateProblem[] {
  return readGateTree(text).problems;
}
