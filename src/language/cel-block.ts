/**
 * The block form of a condition's expression, between braces. The text itself belongs to CEL. Only
 * its end is found here, which takes its strings, comments and braces.
 */
const INDENT = '  ';
const IDENTIFIER_BEFORE = /[A-Za-z0-9_]*$/;
const RAW_PREFIX = /^(?:[rR][bB]?|[bB][rR])$/;

/**
 * Offset of the brace that closes a block whose text begins at `start`; undefined if none does.
 * Braces in strings and in comments do not count. O(length).
 */
export function endOfBlock(text: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    switch (text.charAt(at)) {
      case '{':
        depth += 1;
        break;
      case '}':
        if (depth === 0) return at;
        depth -= 1;
        break;
      case '/':
        if (text.charAt(at + 1) === '/') at = endOfLine(text, at) - 1;
        break;
      case '"':
      case "'":
        at = endOfString(text, at, isRaw(text, at, start)) - 1;
    }
  }
  return undefined;
}

function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end === -1 ? text.length : end;
}

/**
 * True if the letters before a quote make its string a raw one, in which a backslash is literal.
 */
function isRaw(text: string, quote: number, start: number): boolean {
  const before = text.slice(Math.max(start, quote - 3), quote);
  return RAW_PREFIX.test(IDENTIFIER_BEFORE.exec(before)?.[0] ?? '');
}

/**
 * Offset behind the string whose quote is at `at`. A one-line string ends with its line at the
 * latest.
 */
function endOfString(text: string, at: number, isRawString: boolean): number {
  const quote = text.charAt(at);
  const isLong = text.startsWith(quote.repeat(3), at);
  const closing = isLong ? quote.repeat(3) : quote;
  let end = at + closing.length;
  while (end < text.length && !text.startsWith(closing, end)) {
    if (!isLong && text.charAt(end) === '\n') return end;
    end += !isRawString && text.charAt(end) === '\\' ? 2 : 1;
  }
  return Math.min(end + closing.length, text.length);
}

/**
 * The expression in the text of a block, without the line breaks next to its braces and without the
 * indentation that all lines share. A text of one line is trimmed.
 */
export function expressionOfBlock(block: string): string {
  const lines = block.split('\n');
  if (lines.length === 1) return block.trim();
  const first = lines[0] ?? '';
  const last = lines.at(-1) ?? '';
  const isHanging = first.trim() !== '';
  const body = lines.slice(1, last.trim() === '' ? -1 : undefined);
  const shared = sharedIndent(body);
  const rest = body.map((line) => (line.startsWith(shared) ? line.slice(shared.length) : ''));
  return (isHanging ? [first.trimStart(), ...rest] : rest).join('\n');
}

function sharedIndent(lines: readonly string[]): string {
  let shared: string | undefined;
  for (const line of lines) {
    if (line.trim() === '') continue;
    const indent = /^[ \t]*/.exec(line)?.[0] ?? '';
    if (shared === undefined) shared = indent;
    while (!indent.startsWith(shared)) shared = shared.slice(0, -1);
  }
  return shared ?? '';
}

/** The block of `expression` with its braces, or undefined if no block means exactly that. */
export function blockOfExpression(expression: string): string | undefined {
  const lines = expression.split('\n').map((line) => (line === '' ? '' : INDENT + line));
  const inner = `\n${lines.join('\n')}\n`;
  const isExact =
    expression !== '' &&
    !expression.includes('\r') &&
    endOfBlock(`${inner}}`, 0) === inner.length &&
    expressionOfBlock(inner) === expression;
  return isExact ? `{${inner}}` : undefined;
}
