import { usage } from '../../command-line/parse-words.ts';
import { AppError } from '../../shared/app-error.ts';
import type { CliLine } from '../core/command.ts';
import type { CliReason } from '../core/exit-codes.ts';

/** Refuses words for a command that takes only options. Errors: INVALID_REQUEST. */
export function assertNoWords({ words }: CliLine): void {
  const [word] = words;
  if (word !== undefined) throw usage(`there is nothing to do with ${word}`);
}

/** The words of a command, exactly one for each of `names`. Errors: INVALID_REQUEST. */
export function wordsOf({ words }: CliLine, names: readonly string[]): readonly string[] {
  const missing = names[words.length];
  if (missing !== undefined) throw usage(`name ${missing}`);
  const more = words[names.length];
  if (more !== undefined) throw usage(`there is nothing to do with ${more}`);
  return words;
}

/**
 * The result of `work`. A missing answer of a service is an ordinary error here (exit code 2), for
 * commands whose exit codes are older than EXIT_UNAVAILABLE. Errors: those of `work`, REFUSED in
 * place of UNAVAILABLE.
 */
export async function answered<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof AppError) || error.reason !== 'UNAVAILABLE') throw error;
    throw new AppError<CliReason>('REFUSED', error.message, error.metadata, error);
  }
}
