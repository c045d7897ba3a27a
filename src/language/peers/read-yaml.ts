import { type Document, LineCounter, parseDocument, visit } from 'yaml';
import { shapeError } from './json-shape.ts';

/** Characters at most of a file. */
const LENGTH_MAX = 8 * 1024 * 1024;
const ALIASES_MAX = 100;

/**
 * The value of a YAML text, as JSON has it. Errors: FIELD_INVALID naming the line of the first problem, and for
 * a text over 8 MiB. Aliases are bounded, so that a short text cannot become a large value. An integer beyond 2^53 is a bigint.
 */
export function readYaml(text: string, place: string): unknown {
  return yamlDocument(text, place, new LineCounter()).value;
}

/** Same as `readYaml`, with the nodes, whose places `lineCounter` knows. Errors: those of `readYaml`. */
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

/** Makes numbers of the integers that a number holds exactly. */
function keepUnsafeOnly(document: Document): void {
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value !== 'bigint') return;
      const number = Number(node.value);
      if (Number.isSafeInteger(number)) node.value = number;
    },
  });
}
