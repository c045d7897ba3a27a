import { readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { Repository } from './repository.ts';

// Sandboxes were linked work trees once; what is left of those is still cleaned up.

/**
 * What the repository remembers of linked work trees below `sandboxesDir`: the name of the sandbox and
 * the folder to delete with it. Work trees of the user, also those on a disk that is away, are not ours.
 */
export async function linkedSandboxes(
  repository: Repository,
  sandboxesDir: string,
): Promise<readonly { readonly name: string; readonly adminDir: string }[]> {
  const parent = join(repository.commonDir, 'worktrees');
  const found: { name: string; adminDir: string }[] = [];
  for (const entry of await readdir(parent).catch(() => [])) {
    const adminDir = join(parent, entry);
    const text = await readFile(join(adminDir, 'gitdir'), 'utf8').catch(() => '');
    const dir = dirname(resolve(adminDir, text.trim()));
    if (dir.startsWith(sandboxesDir + sep) && dirname(dir) === sandboxesDir) {
      found.push({ name: basename(dir), adminDir });
    }
  }
  return found;
}

/**
 * Git's folder for the sandbox `dir`, as far as it was made; undefined when it is none of ours. What the
 * sandbox says is believed only within the names that were given then: a step may have written it.
 */
export async function linkOfSandbox(
  repository: Repository,
  dir: string,
): Promise<string | undefined> {
  const text = await readFile(join(dir, '.git'), 'utf8').catch(() => '');
  const adminDir = text.replace(/^gitdir: /, '').trim();
  const isOurs =
    dirname(adminDir) === join(repository.commonDir, 'worktrees') &&
    basename(adminDir).startsWith(`${basename(dir)}-`);
  return isOurs ? adminDir : undefined;
}

export async function forgetWorktree(adminDir: string): Promise<void> {
  await rm(adminDir, { recursive: true, force: true });
}
