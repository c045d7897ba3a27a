import type { ModelDocument } from '../model-document.ts';
import { documentOfTree } from './document-of-tree.ts';
import { gateError, type GateProblem } from './gate-lexer.ts';
import { readGateTree } from './read-gate-tree.ts';

/** A model that was read from its readable form. */
export type ParsedGate = {
  /** The JSON form, member for member as `printGate` takes it. */
  readonly document: ModelDocument;
  /** `document` as JSON text: the stored form, which `parseModel` takes. */
  readonly json: string;
  /**
   * Position in the text of the part of the document at a JSON path, such as those of MODEL_INVALID
   * and of warnings. A path that goes deeper than the parts of the text has the position of the
   * enclosing part.
   */
  readonly locate: (path: string) => { readonly line: number; readonly column: number };
};

/**
 * Reads a model in its readable form (`.gate`; docs/models.md has the grammar). Checks the form
 * only. `checkModelDocument(json)` checks the content, and `locate` finds its paths in the text.
 * Errors: MODEL_INVALID, whose message and metadata (`line`, `column`, `hint`) give the place of
 * the first problem and the likely intent. O(length).
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
 * All problems of a text's form in order, at most 100; empty if `parseGate` reads it.
 * Errors: MODEL_INVALID for a text longer than GATE_LENGTH_MAX. O(length).
 */
export function gateProblems(text: string): readonly GateProblem[] {
  return readGateTree(text).problems;
}
