/** Between these the text of a pull request is ours; what people write outside is kept. */
const BEGIN = '<!-- runner-stack:begin -->';
const END = '<!-- runner-stack:end -->';

export type StackRow = { readonly number: number; readonly subject: string };

/**
 * `body` with the table of the stack in it: in the place of an earlier one, else at its end.
 * `rows` are bottom first; the table shows the top first, as it will stand on the base.
 */
export function withStackTable(
  body: string,
  rows: readonly StackRow[],
  current: number,
  base: string,
  title: string | undefined,
): string {
  const lines = rows
    .toReversed()
    .map(({ number }) => (number === current ? `* **#${number} ⬅ this one**` : `* #${number}`));
  const heading = title === undefined ? 'Stack' : `Stack: ${plain(title)}`;
  const table = [BEGIN, `### ${heading}`, '', ...lines, `* \`${base}\``, END].join('\n');
  const begin = body.indexOf(BEGIN);
  const end = body.indexOf(END, begin + 1);
  if (begin >= 0 && end > begin) {
    return body.slice(0, begin) + table + body.slice(end + END.length);
  }
  return body.trim() === '' ? `${table}\n` : `${body.trimEnd()}\n\n${table}\n`;
}

/** `body` without a table; what is compared to know whether people changed it. */
export function withoutStackTable(body: string): string {
  const begin = body.indexOf(BEGIN);
  const end = body.indexOf(END, begin + 1);
  if (begin < 0 || end < begin) return body;
  return (body.slice(0, begin) + body.slice(end + END.length)).trim();
}

function plain(text: string): string {
  return text.replaceAll(/[\p{C}\s]+/gu, ' ').trim();
}
