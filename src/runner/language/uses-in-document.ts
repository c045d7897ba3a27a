import { parse } from 'yaml';

/**
 * Every `uses` of a workflow or an action as YAML reads it, each once: of jobs, steps, and steps within
 * `parallel`; whatever else is wrong with the file. None for what is no such document.
 */
export function usesInDocument(document: unknown): string[] {
  const found = new Set<string>();
  for (const job of Object.values(mapOf(mapOf(document)['jobs']))) {
    add(mapOf(job)['uses'], found);
    addSteps(mapOf(job)['steps'], found);
  }
  addSteps(mapOf(mapOf(document)['runs'])['steps'], found);
  return [...found];
}

/** The same of a file's text; none where it is no YAML, which whoever runs it is reported. */
export function usesInText(text: string): string[] {
  try {
    return usesInDocument(parse(text, { maxAliasCount: 100 }));
  } catch {
    // The reader of workflows and actions says what is wrong.
    return [];
  }
}

function addSteps(steps: unknown, found: Set<string>): void {
  if (!Array.isArray(steps)) return;
  for (const step of steps as unknown[]) {
    add(mapOf(step)['uses'], found);
    addSteps(mapOf(step)['parallel'], found);
  }
}

function add(uses: unknown, found: Set<string>): void {
  if (typeof uses === 'string') found.add(uses.trim());
}

function mapOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
