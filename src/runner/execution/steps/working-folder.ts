import { type Stats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { JobState } from '../state/job-state.ts';

/**
 * The folder that a program of a step is to start in: `written`, from the workspace. What a job that is kept
 * apart names is not looked at: it starts there with its own rights. Errors: NOT_FOUND, which names it.
 */
export function mustWorkingFolder(
  { folders, request }: Pick<JobState, 'folders' | 'request'>,
  written: string,
): string {
  const dir = resolve(folders.workspace, written);
  if (request.isolation !== undefined) return dir;
  const found = look(dir);
  if (typeof found === 'object' && found.isDirectory()) return dir;
  const problem =
    typeof found === 'object'
      ? 'is no folder'
      : found === undefined
        ? 'does not exist'
        : `cannot be looked at (${found})`;
  const place = written === dir ? '' : `: it was looked for at ${dir}`;
  const what = written === '' ? 'of the job' : `'${written}'`;
  throw new AppError('NOT_FOUND', `The working directory ${what} ${problem}${place}`, {
    field: 'working-directory',
  });
}

function look(dir: string): Stats | string | undefined {
  try {
    return statSync(dir, { throwIfNoEntry: false });
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'an internal error';
  }
}
