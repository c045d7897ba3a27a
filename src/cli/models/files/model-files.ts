import { usage } from '../../../command-line/parse-words.ts';
import { AppError } from '../../../shared/app-error.ts';
import type { CliLine } from '../../core/command.ts';
import type { CliReason } from '../../core/exit-codes.ts';

/** True if a text is JSON, by its name or else by its first character. */
export function isJson(path: string, text: string): boolean {
  if (path.endsWith('.json')) return true;
  return !path.endsWith('.gate') && text.trimStart().startsWith('{');
}

/** Prints a note next to the results, which may have several lines and may come from a file. */
export function say({ screens }: CliLine, text: string): void {
  for (const one of text.split('\n')) screens.notes.line(screens.notes.foreign(one));
}

/** The files that a command names. Errors: INVALID_REQUEST if it names none. */
export function filesOf({ words }: CliLine): readonly string[] {
  if (words.length === 0) throw usage('which files?');
  return words;
}

/** The only file that a command names. Errors: INVALID_REQUEST. */
export function fileOf({ words }: CliLine): string {
  const [path, ...others] = words;
  if (path === undefined || others.length > 0) throw usage('one file, please');
  return path;
}

/** True if an error is about the model or tuples in a file, not about the file or the command. */
export function isOfContent(error: unknown): error is AppError {
  return error instanceof AppError && !ITS_OWN.includes(error.reason);
}

const ITS_OWN: readonly string[] = [
  'INVALID_REQUEST',
  'FILE_INVALID',
  'REFUSED',
  'UNAVAILABLE',
] satisfies readonly CliReason[];
