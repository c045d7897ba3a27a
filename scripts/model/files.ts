import { readFileSync, writeFileSync } from 'node:fs';
import { UsageError } from './subcommand.ts';

/** The text of a file; `-` is the standard input. Errors: UsageError naming the file. */
export function readText(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw new UsageError(`${path}: ${reasonOf(error)}`);
  }
}

/** Writes a file, or the standard output for `-`. Errors: UsageError naming the file. */
export function writeText(path: string, text: string): void {
  if (path === '-') {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new UsageError(`${path}: ${reasonOf(error)}`);
  }
}

/** A line on the standard error: the standard output is for results. */
export function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Whether a text is JSON, by its name or else by its first character. */
export function isJson(path: string, text: string): boolean {
  if (path.endsWith('.json')) return true;
  return !path.endsWith('.gate') && text.trimStart().startsWith('{');
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
