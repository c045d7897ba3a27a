import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { Repository } from './repository.ts';

/**
 * Makes `dir` (which exists) a linked work tree of the repository at `head` without touching its
 * files: `git status` there says what `dir` holds more or less than the commit. `head` is a sha, or
 * `ref: refs/heads/x` before the first commit. Files by hand, as gitrepository-layout(5) names them:
 * `git worktree add` starts three processes and needs a commit.
 */
export async function linkWorktree(
  repository: Repository,
  dir: string,
  head: string,
): Promise<string> {
  const name = `${basename(dir)}-${randomBytes(3).toString('hex')}`;
  const adminDir = join(repository.commonDir, 'worktrees', name);
  await mkdir(adminDir, { recursive: true });
  await Promise.all([
    writeFile(join(adminDir, 'HEAD'), `${head}\n`),
    writeFile(join(adminDir, 'commondir'), '../..\n'),
    writeFile(join(adminDir, 'gitdir'), `${join(await realpath(dir), '.git')}\n`),
    writeFile(join(dir, '.git'), `gitdir: ${adminDir}\n`),
  ]);
  return adminDir;
}

/** Gives a linked work tree the index of the project, so that what is staged there is staged here. */
export async function copyIndex(repository: Repository, adminDir: string): Promise<void> {
  const names = await readdir(repository.gitDir);
  const parts = names.filter((name) => name === 'index' || name.startsWith('sharedindex.'));
  await Promise.all(
    parts.map((name) => copyFile(join(repository.gitDir, name), join(adminDir, name))),
  );
}

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

export async function forgetWorktree(adminDir: string): Promise<void> {
  await rm(adminDir, { recursive: true, force: true });
}
