import { type Document, LineCounter, parseDocument, visit } from 'yaml';
import { shapeError } from './json-shape.ts';

/** Characters at most of a file. */
const LENGTH_MAX = 8 * 1024 * 1024;
const ALIASES_MAX = 100;

/**
 * The value of a YAML text, in terms of JSON. Aliases are bounded, so that a short text cannot
 * become a large value. An integer beyond 2^53 is a bigint.
 * Errors: FIELD_INVALID naming the line of the first problem, and for a text over 8 MiB.
 */
export function readYaml(text: string, place: string): unknown {
  return yamlDocument(text, place, new LineCounter()).value;
}

/**
 * Reads like `readYaml`, and returns the nodes too; `lineCounter` has their places. Errors: as
 * there.
 */
export function yamlDocument(
  text: string,
  place: string,
  lineCounter: LineCounter,
): { readonly document: Document; readonly value: unknown } {
  if (text.length > LENGTH_MAX) throw shapeError(place, `is longer than ${LENGTH_MAX} characters`);
  try {
    const document = parseDocument(text, {
      version: '1.2',
      lineCounter,
      prettyErrors: false,
      intAsBigInt: true,
    });
    const [problem] = document.errors;
    if (problem === undefined) {
      keepUnsafeOnly(document);
      return { document, value: document.toJS({ maxAliasCount: ALIASES_MAX }) as unknown };
    }
    const { line, col } = lineCounter.linePos(problem.pos[0]);
    throw shapeError(`${place}, line ${line}, column ${col}`, problem.message);
  } catch (error) {
    // Nested too deep for the stack, or with too many aliases.
    if (!(error instanceof RangeError) && !(error instanceof ReferenceError)) throw error;
    throw shapeError(place, error.message);
  }
}

/** Converts integers that a number holds exactly into numbers. */
function keepUnsafeOnly(document: Document): void {
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value !== 'bigint') return;
      const number = Number(node.value);
      if (Number.isSafeInteger(number)) node.value = number;
    },
  });
}
