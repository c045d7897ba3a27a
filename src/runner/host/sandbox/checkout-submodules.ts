import { mkdir, readdir } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { createGit } from '../git/run-git.ts';
import { removeTree } from './copy-tree.ts';
import { GitSettings } from './git-settings.ts';
import { narrowRepository } from './narrow-repository.ts';
import { makeOwnRepository } from './own-repository.ts';
import { findRepository, type Repository } from './repository.ts';
import { lookAt } from './small-file.ts';

const CHECKOUT_TIMEOUT_MS = 10 * 60_000;
const LEVELS_MAX = 32;

type SubmodulesRequest = {
  /** The root of the work tree whose submodules are meant. */
  readonly rootDir: string;
  /** The root of the project's work tree, where the user has them. */
  readonly projectRoot: string;
  readonly wanted: 'none' | 'direct' | 'recursive';
  /** Commits of history that each gets; 0: all. */
  readonly depth: number;
  /** Files that are there already are the user's, not those of a commit: they stay. */
  readonly isCopy: boolean;
  readonly mayPush: boolean;
  /** Errors when a path leads out of the workspace. */
  readonly mustBeInside: (path: string) => void;
};

/**
 * Brings the submodules of a work tree to the commits that it names, from what the project has of them; or
 * empties their folders, as a checkout without submodules leaves them.
 * Errors: INVALID_VALUE for one that the project does not have, GIT_FAILED. Cost: nothing without
 * `.gitmodules`, else a process, and two for each submodule.
 */
export async function checkOutSubmodules(request: SubmodulesRequest, level = 0): Promise<void> {
  const { rootDir, wanted } = request;
  if (level > LEVELS_MAX || lookAt(join(rootDir, '.gitmodules')) === undefined) return;
  const git = createGit(rootDir);
  const found = await submodulesOf(rootDir);
  for (const submodule of found) await checkOutOne(request, submodule, level);
  // What `git submodule` commands of steps look at; relative addresses may lead nowhere, which is no fault.
  if (wanted !== 'none' && found.length > 0) await git.tryRun(['submodule', '--quiet', 'init']);
}

async function checkOutOne(
  request: SubmodulesRequest,
  { path, sha }: Submodule,
  level: number,
): Promise<void> {
  const { rootDir, projectRoot, wanted, isCopy, mayPush, mustBeInside, depth } = request;
  const dir = join(rootDir, path);
  mustBeInside(dir);
  const hasFiles = (await readdir(dir).catch(() => [])).length > 0;
  const isTaken = isCopy && hasFiles && wanted !== 'none';
  if (!isTaken) await removeTree(dir);
  await mkdir(dir, { recursive: true });
  if (wanted === 'none') return;
  const repository = await sourceOf(projectRoot, path);
  if (repository === undefined) throw missing(path, sha);
  const source = createGit(repository.commonDir);
  const settings = new GitSettings(source);
  await makeOwnRepository({ git: source, settings, repository, dir, head: sha, mayPush });
  const git = createGit(dir);
  const args = isTaken ? ['reset', '--quiet'] : ['reset', '--hard', '--quiet'];
  const reset = await git.tryRun([...args, '--no-recurse-submodules'], {
    timeoutMs: CHECKOUT_TIMEOUT_MS,
  });
  if (reset.exitCode !== 0) throw missing(path, sha);
  await narrowRepository(git, dir, { sha, ref: '', depth, hasTags: false });
  const inner = wanted === 'recursive' ? wanted : 'none';
  const place = { rootDir: dir, projectRoot: join(projectRoot, path) };
  await checkOutSubmodules({ ...request, ...place, wanted: inner }, level + 1);
}

type Submodule = { readonly path: string; readonly sha: string };

async function submodulesOf(rootDir: string): Promise<readonly Submodule[]> {
  const text = await createGit(rootDir).run(['ls-files', '-z', '--stage']);
  return text.split('\0').flatMap((line) => {
    const [, sha = '', path = ''] = /^160000 ([0-9a-f]+) \d\t(.+)$/s.exec(line) ?? [];
    return path === '' ? [] : [{ path, sha }];
  });
}

/** Where the project has a submodule: checked out, or as git keeps it for when it will be. */
async function sourceOf(projectRoot: string, path: string): Promise<Repository | undefined> {
  const dir = join(projectRoot, path);
  const checkedOut = await findRepository(dir);
  if (checkedOut?.prefix === '' && checkedOut.rootDir !== projectRoot) return checkedOut;
  const around = await findRepository(projectRoot);
  if (around === undefined) return undefined;
  const gitDir = join(around.commonDir, 'modules', path.replaceAll(sep, '/'));
  if (lookAt(join(gitDir, 'HEAD')) === undefined) return undefined;
  return { rootDir: dir, prefix: '', gitDir, commonDir: gitDir };
}

function missing(path: string, sha: string): AppError {
  const text = `submodules: the project does not have '${path}' at ${sha}; git submodule update --init --recursive gets it`;
  return new AppError('INVALID_VALUE', text, { field: 'submodules' });
}
