import { closeSync, constants, openSync, readSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { Git } from '../git/run-git.ts';

const TRANSFER_TIMEOUT_MS = 30 * 60_000;
/** How a file begins that stands for another one. Source: git-lfs, docs/spec.md, "The Pointer". */
const POINTER = Buffer.from('version https://git-lfs.github.com/spec/v1\n');

/**
 * Makes the files that Git LFS keeps elsewhere what a checkout with or without `lfs` leaves: whole, or
 * pointers to them. Errors: INVALID_VALUE for those that cannot be had, GIT_FAILED.
 * Cost: one process without such files, O(files).
 */
export async function checkOutLfs(git: Git, rootDir: string, isWanted: boolean): Promise<void> {
  const text = await git.run(['ls-files', '-z', '--', ':(attr:filter=lfs)']);
  const files = text.split('\0').filter((name) => name !== '');
  if (files.length === 0) return;
  if (!isWanted) return leavePointers(git, rootDir, files);
  const isMissing = (): string | undefined => files.find((name) => isPointer(join(rootDir, name)));
  if (isMissing() === undefined) return;
  await git.tryRun(['lfs', 'pull'], { timeoutMs: TRANSFER_TIMEOUT_MS });
  const missing = isMissing();
  if (missing === undefined) return;
  const why = `lfs: '${missing}' is not in the project's LFS store, and git lfs could not get it`;
  throw new AppError('INVALID_VALUE', why, { field: 'lfs' });
}

/** Written again from the commit, by a git-lfs that is notified to leave them. */
async function leavePointers(git: Git, rootDir: string, files: readonly string[]): Promise<void> {
  const whole = files.filter((name) => !isPointer(join(rootDir, name)));
  if (whole.length === 0) return;
  for (const name of whole) await rm(join(rootDir, name), { force: true });
  await git.run(['checkout-index', '--force', '--index', '-z', '--stdin'], {
    input: whole.map((name) => `${name}\0`).join(''),
    timeoutMs: TRANSFER_TIMEOUT_MS,
    env: { GIT_LFS_SKIP_SMUDGE: '1' },
  });
}

function isPointer(path: string): boolean {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    // Deleted in the user's copy, or a link.
    return false;
  }
  try {
    const head = Buffer.alloc(POINTER.length);
    return readSync(file, head, 0, head.length, 0) === head.length && head.equals(POINTER);
  } finally {
    closeSync(file);
  }
}
