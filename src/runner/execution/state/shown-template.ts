import type { Template } from '../../model/workflow.ts';

/**
 * A template as it stands in the file, for people: texts with `${{ }}` are kept as calls of format(),
 * which this takes apart again. '' for sequences and mappings.
 */
export function shownTemplate(template: Template): string {
  if (template.kind === 'literal') return String(template.value ?? '');
  if (template.kind !== 'expression') return '';
  const { source } = template;
  const [, quoted, rest] = /^format\('((?:[^']|'')*)'((?:,.*)?)\)$/s.exec(source) ?? [];
  if (quoted === undefined || rest === undefined) return `\${{ ${source} }}`;
  const values = splitArguments(rest);
  return quoted
    .replaceAll("''", "'")
    .replaceAll(/\{\{|\}\}|\{(\d+)\}/g, (part: string, index: string | undefined) =>
      index === undefined ? part.slice(1) : `\${{ ${values[Number(index)] ?? ''} }}`,
    );
}

/** The parts of `, a, f(b, 'c,d')`, at commas that stand in no call, index or text. */
function splitArguments(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let isQuoted = false;
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === "'") isQuoted = !isQuoted;
    else if (isQuoted) continue;
    else if (character === '(' || character === '[') depth += 1;
    else if (character === ')' || character === ']') depth -= 1;
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(start, at).trim());
      start = at + 1;
    }
  }
  parts.push(text.slice(start).trim());
  return parts.slice(1);
}
