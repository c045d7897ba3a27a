import { readFileSync } from 'node:fs';

/** The names of all series in the tables of docs/observability.md, of all services. */
export function documentedSeries(): readonly string[] {
  let isSeries = false;
  const names: string[] = [];
  for (const line of readFileSync('docs/observability.md', 'utf8').split('\n')) {
    if (line.startsWith('#')) isSeries = /eries\b/.test(line);
    const [, name] = /^\| `([^`]+)` \|/.exec(line) ?? [];
    if (isSeries && name !== undefined) names.push(name);
  }
  return names;
}
