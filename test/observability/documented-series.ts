import { readFileSync } from 'node:fs';

/** The names in the first cell of a row: one or several, each in backticks, separated by `, `. */
export function namesOf(line: string): readonly string[] {
  const [, cell = ''] = /^\| (`[^`]+`(?:, `[^`]+`)*) \|/.exec(line) ?? [];
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

/** The names of all series in the tables of docs/observability.md, of all services. */
export function documentedSeries(): readonly string[] {
  let isSeries = false;
  const names: string[] = [];
  for (const line of readFileSync('docs/observability.md', 'utf8').split('\n')) {
    if (line.startsWith('#')) isSeries = /eries\b/.test(line);
    if (isSeries) names.push(...namesOf(line));
  }
  return names;
}
