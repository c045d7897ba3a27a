import type { Position, Template } from '../model/workflow.ts';
import { type Availability, ExpressionSyntaxError, parseExpression } from './expression.ts';

/** The source of a key that puts the entries of its value in its place: `${{ insert }}`. */
export const INSERT = 'insert';

/** Whether a key of a mapping is `${{ insert }}`; no context has that name. */
export function isInsertKey(key: Template): boolean {
  return key.kind === 'expression' && key.source === INSERT;
}

const OPEN = '${{';
const EXPRESSION_CHARACTERS_MAX = 21_000;

/** A part of a text: itself or an expression. */
type Segment = { readonly isExpression: boolean; readonly text: string };

export type ScalarTemplate = Exclude<Template, { kind: 'sequence' | 'mapping' }>;

/**
 * The template of a text: a literal without `${{ }}`; the expression where it is all there is; else a
 * `format` of its parts. What is wrong goes to `report`, then the text counts as a literal.
 */
export function templateFromText(
  text: string,
  at: Position,
  available: Availability,
  report: (message: string) => void,
): ScalarTemplate {
  const literal: ScalarTemplate = { kind: 'literal', value: text, at };
  if (!text.includes(OPEN)) {
    return literal;
  }
  const segments = segmentsOf(text, report);
  if (segments === undefined) {
    return literal;
  }
  const isAlone = segments.length === 1;
  let isValid = true;
  for (const { isExpression, text: source } of segments) {
    const problem = isExpression ? problemOf(source, available, isAlone) : undefined;
    if (problem !== undefined) {
      report(problem);
      isValid = false;
    }
  }
  if (!isValid) {
    return literal;
  }
  const [only] = segments;
  if (isAlone && only !== undefined) {
    const plain = plainString(only.text);
    return plain === undefined
      ? { kind: 'expression', source: only.text, at }
      : { kind: 'literal', value: plain, at };
  }
  const source = formatOf(segments);
  if (source.length > EXPRESSION_CHARACTERS_MAX) {
    report(`Exceeded max expression length ${EXPRESSION_CHARACTERS_MAX}`);
    return literal;
  }
  return { kind: 'expression', source, at };
}

/** In source order, texts and expressions; undefined when one is not closed or empty. */
function segmentsOf(
  text: string,
  report: (message: string) => void,
): readonly Segment[] | undefined {
  const segments: Segment[] = [];
  let position = 0;
  let isComplete = true;
  while (position < text.length) {
    const start = text.indexOf(OPEN, position);
    if (start !== position) {
      const end = start < 0 ? text.length : start;
      segments.push({ isExpression: false, text: text.slice(position, end) });
      position = end;
      continue;
    }
    const end = closeOf(text, start + OPEN.length);
    if (end === undefined) {
      report(
        'The expression is not closed. An unescaped ${{ sequence was found, but the closing }} sequence was not found.',
      );
      return undefined;
    }
    const source = text.slice(start + OPEN.length, end - 2).trim();
    if (source === '') {
      report('An expression was expected');
      isComplete = false;
    }
    segments.push({ isExpression: true, text: source });
    position = end;
  }
  return isComplete ? segments : undefined;
}

/** After the `}}` that closes what was opened before `from`; quotes hide one. */
function closeOf(text: string, from: number): number | undefined {
  let isInString = false;
  for (let index = from; index < text.length; index += 1) {
    const char = text.charAt(index);
    if (char === "'") {
      isInString = !isInString;
    } else if (!isInString && char === '}' && text.charAt(index - 1) === '}') {
      return index + 1;
    }
  }
  return undefined;
}

function problemOf(source: string, available: Availability, isAlone: boolean): string | undefined {
  if (source === INSERT || /^insert\s/.test(source)) {
    if (source !== INSERT) {
      return `Exactly 0 parameter(s) were expected following the directive 'insert'`;
    }
    return isAlone
      ? undefined
      : "The directive 'insert' is not allowed in this context. Directives are not supported for expressions that are embedded within a string. Directives are only supported when the entire value is an expression.";
  }
  try {
    parseExpression(source, available);
    return undefined;
  } catch (error) {
    return error instanceof ExpressionSyntaxError ? error.message : 'Invalid expression';
  }
}

/** The text of an expression that is nothing but a string in quotes: a way to escape. */
function plainString(source: string): string | undefined {
  const match = /^'((?:[^']|'')*)'$/.exec(source);
  return match?.[1]?.replaceAll("''", "'");
}

function formatOf(segments: readonly Segment[]): string {
  let pattern = '';
  const args: string[] = [];
  for (const { isExpression, text } of segments) {
    if (isExpression) {
      pattern += `{${args.length}}`;
      args.push(`, ${text}`);
    } else {
      pattern += text.replaceAll("'", "''").replaceAll('{', '{{').replaceAll('}', '}}');
    }
  }
  return `format('${pattern}'${args.join('')})`;
}
