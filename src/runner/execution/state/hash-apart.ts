import { createHash } from 'node:crypto';
import { createReadStream, realpathSync } from 'node:fs';
import { sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../../shared/app-error.ts';
import { openApart } from '../../host/isolation/open-apart.ts';
import { globFiles } from '../../host/project/glob-files.ts';
import type { JobIsolation } from '../../model/isolation.ts';

/**
 * `hashFiles` for a job that is kept apart: the same digest over the same files as @actions/glob makes, but
 * of files that are the job's own alone. Errors: those of globFiles.
 */
export async function hashFilesApart(
  isolation: JobIsolation,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  const root = realpathSync(isolation.workspace);
  const patterns = args.filter((arg) => !arg.startsWith('--'));
  const options = { implicitDescendants: true, excludeHiddenFiles: false };
  const { files } = await globFiles(root, patterns, options, signal);
  const whole = createHash('sha256');
  let count = 0;
  for (const file of files) {
    if (!file.startsWith(root + sep)) continue;
    const digest = await digestOf(file, isolation);
    if (digest === undefined) continue;
    whole.update(digest);
    count += 1;
  }
  return count === 0 ? '' : whole.digest('hex');
}

/** Undefined for a folder and for what is not the job's. */
async function digestOf(file: string, isolation: JobIsolation): Promise<Buffer | undefined> {
  let fd: number;
  try {
    fd = openApart(file, isolation);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(file, { fd, autoClose: true }), hash);
  return hash.digest();
}
