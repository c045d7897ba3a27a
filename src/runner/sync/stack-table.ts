/** Between these the text of a pull request is ours; what people write outside is kept. */
const BEGIN = '<!-- runner-stack:begin -->';
const END = '<!-- runner-stack:end -->';
const HEADING = /^### (Stack(?:: [^\r\n]*)?)\r?$/m;

/**
 * `body` with the table of the stack in it: in the place of an earlier one, else at its end.
 * `numbers` are bottom first; the table shows the top first, as it will stand on the base. Without a
 * title the heading stays what it was.
 */
export function withStackTable(
  body: string,
  numbers: readonly number[],
  current: number,
  base: string,
  title: string | undefined,
): string {
  const lines = numbers
    .toReversed()
    .map((number) => (number === current ? `* **#${number} ⬅ this one**` : `* #${number}`));
  const { before, table: old, after } = split(body);
  const known = HEADING.exec(old ?? '')?.[1] ?? 'Stack';
  const heading = title === undefined ? known : `Stack: ${plain(title)}`;
  const table = [BEGIN, `### ${heading}`, '', ...lines, `* \`${base}\``, END].join('\n');
  if (old !== undefined) return before + table + after;
  return before.trim() === '' ? `${table}\n` : `${before.trimEnd()}\n\n${table}\n`;
}

/** `body` without a table. */
export function withoutStackTable(body: string): string {
  const { before, table, after } = split(body);
  return table === undefined ? body : (before + after).trim();
}

function split(body: string): {
  readonly before: string;
  readonly table: string | undefined;
  readonly after: string;
} {
  const begin = body.indexOf(BEGIN);
  const end = body.indexOf(END, begin + BEGIN.length);
  if (begin < 0 || end < 0) return { before: body, table: undefined, after: '' };
  const next = end + END.length;
  return { before: body.slice(0, begin), table: body.slice(begin, next), after: body.slice(next) };
}

/** On one line, and unable to end the table. */
function plain(text: string): string {
  return text
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .replaceAll(/<!--|-->/g, '')
    .trim();
}
