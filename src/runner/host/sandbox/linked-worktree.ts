import { randomBytes } from 'node:crypto';
import {
  copyFile,
  mkdir,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import type { Git } from '../git/run-git.ts';
import type { Repository } from './repository.ts';

/**
 * Makes the empty folder `dir` a linked work tree of the repository at `head` without checking files
 * out. `head` is a sha, or `ref: refs/…` before the first commit. Answers with git's folder for it.
 * The files are written by hand, as gitrepository-layout(5) names them: `git worktree add` starts
 * three processes and needs a commit. It is used where refs are not kept as files.
 */
export async function linkWorktree(
  git: Git,
  repository: Repository,
  dir: string,
  head: string,
): Promise<string> {
  const refTables = await stat(join(repository.commonDir, 'reftable')).catch(() => undefined);
  if (refTables !== undefined && !head.startsWith('ref: ')) {
    await git.run(['worktree', 'add', '--quiet', '--detach', '--no-checkout', dir, head]);
    return (await readFile(join(dir, '.git'), 'utf8')).replace(/^gitdir: /, '').trim();
  }
  const name = `${basename(dir)}-${randomBytes(3).toString('hex')}`;
  const adminDir = join(repository.commonDir, 'worktrees', name);
  // First: after a kill in between, only this tells whose a folder without `gitdir` is.
  await writeFile(join(dir, '.git'), `gitdir: ${adminDir}\n`);
  await mkdir(adminDir, { recursive: true });
  await Promise.all([
    writeFile(join(adminDir, 'HEAD'), `${head}\n`),
    writeFile(join(adminDir, 'commondir'), '../..\n'),
    writeFile(join(adminDir, 'gitdir'), `${join(await realpath(dir), '.git')}\n`),
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

/**
 * Git's folder for the sandbox `dir`, as far as it was made; undefined when it is none of ours. What the
 * sandbox says is believed only within the names that `linkWorktree` gives: a step may have written it.
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
