import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { AppError } from '../../../shared/app-error.ts';
import { ownProgramOptions } from '../../../shared/process/own-program.ts';

const CHILD = fileURLToPath(new URL('./glob-child.ts', import.meta.url));
const TIMEOUT_MS = 120_000;

export type GlobOptions = {
  /** Takes everything below a folder that matches. */
  readonly implicitDescendants: boolean;
  readonly excludeHiddenFiles: boolean;
};

export type GlobResult = {
  /** Absolute paths of files and folders. */
  readonly files: readonly string[];
  /** The folders, or files, in which patterns begin. */
  readonly searchPaths: readonly string[];
};

/** What the child answers: what it found, or a pattern that it refuses, and why. */
export type GlobAnswer = GlobResult | { readonly pattern: string; readonly reason: string };

/**
 * What the patterns (lines; `!` excludes, `~` is the home folder) match from `root`, exactly as actions
 * see it: through @actions/glob, in a process of its own. Cost: the start of a node, about 60 ms.
 * Errors: INVALID_VALUE for patterns that it refuses, DEADLINE_EXCEEDED, CANCELLED by `signal`.
 */
export async function globFiles(
  root: string,
  patterns: readonly string[],
  options: GlobOptions,
  signal: AbortSignal,
): Promise<GlobResult> {
  const { promise, resolve, reject } = Promise.withResolvers<GlobResult>();
  const child = fork(CHILD, [root, patterns.join('\n'), JSON.stringify(options)], {
    execArgv: [...ownProgramOptions()],
    env: { HOME: process.env['HOME'] ?? '', PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    signal,
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  let answer: GlobAnswer | undefined;
  child.once('message', (message) => {
    answer = message as GlobAnswer;
  });
  child.once('error', (error) => {
    const [reason, text] = signal.aborted
      ? (['CANCELLED', 'The search was stopped'] as const)
      : (['INTERNAL', 'Files could not be searched for'] as const);
    reject(new AppError(reason, text, {}, error));
  });
  child.once('close', (_code, ending) => {
    if (answer !== undefined && 'files' in answer) resolve(answer);
    else if (answer !== undefined) reject(refusal(answer.pattern, answer.reason));
    else if (ending !== null) reject(new AppError('DEADLINE_EXCEEDED', 'The search took too long'));
    else reject(refusal(patterns.join(' '), ''));
  });
  return await promise;
}

/** In the words of the package, which names the pattern with some reasons alone. */
function refusal(pattern: string, reason: string): AppError {
  const why = reason.replace(/^Invalid pattern '.*'\. /s, '');
  const text = `Invalid pattern '${pattern}'.${why === '' ? '' : ` ${why}`}`;
  return new AppError('INVALID_VALUE', text, { field: 'path' });
}
