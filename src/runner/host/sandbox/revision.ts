import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { type Git, mustRef } from '../git/run-git.ts';
import type { Repository } from './repository.ts';

/** Of the request that names the revision. */
const FIELD = 'sandbox.ref';

export type ProjectRevision = { readonly ref: string; readonly sha: string };

export const NO_SHA = '0'.repeat(40);
const SHA = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const BRANCH_HEAD = /^ref: (refs\/heads\/\S+)$/;
const SHA_PREFIX = /^[0-9a-f]{4,64}$/i;

/**
 * The commit that `ref` names and the full name of the branch or tag; one process. A remote-tracking
 * branch counts as the branch that it tracks; any other revision is named by its id.
 * Errors: INVALID_REF.
 */
export async function resolveRef(git: Git, ref: string): Promise<ProjectRevision> {
  mustRef(ref, FIELD);
  // Behind the closing `--` nothing is taken for the name of a file; `mustRef` refused options.
  const { stdout } = await git.tryRun([
    'rev-parse',
    '--revs-only',
    `${ref}^{commit}`,
    '--symbolic-full-name',
    ref,
    '--',
  ]);
  const [sha = '', name = ''] = stdout.toString('utf8').split('\n');
  if (!SHA.test(sha)) {
    throw new AppError('INVALID_REF', 'no branch, tag or commit of the project has this name', {
      field: FIELD,
    });
  }
  if (SHA_PREFIX.test(ref)) return { ref: shownName(name, ref), sha };
  return { ref: shownName(name === '' ? await ambiguousName(git, ref) : name, sha), sha };
}

/** The full name when a tag and a branch share it: git means the tag. '' for what is neither. */
async function ambiguousName(git: Git, ref: string): Promise<string> {
  const names = [`refs/tags/${ref}`, `refs/heads/${ref}`];
  const args = ['for-each-ref', '--format=%(refname)', '--', ...names];
  const found = (await git.tryRun(args)).stdout.toString('utf8').split('\n');
  return names.find((name) => found.includes(name)) ?? '';
}

/**
 * Where the project stands; the sha is all zero before the first commit. Undefined when git refuses
 * the repository (broken, or owned by somebody else). Cost: two small files; git is asked only about
 * what they do not say (packed or other ref storage, no commit yet).
 */
export async function resolveHead(
  git: Git,
  repository: Repository,
): Promise<ProjectRevision | undefined> {
  const written = await readHead(repository);
  if (written !== undefined) return written;
  const { exitCode, stdout } = await git.tryRun([
    'rev-parse',
    'HEAD^{commit}',
    '--symbolic-full-name',
    'HEAD',
  ]);
  const [sha = '', name = ''] = stdout.toString('utf8').split('\n');
  if (exitCode === 0 && SHA.test(sha)) return { ref: shownName(name, sha), sha };
  const unborn = await git.tryRun(['symbolic-ref', '-q', 'HEAD']);
  if (unborn.exitCode !== 0) return undefined;
  return { ref: unborn.stdout.toString('utf8').trim(), sha: NO_SHA };
}

/** HEAD as gitrepository-layout(5) keeps it in plain files: an id, or a branch whose file holds one. */
async function readHead({ gitDir, commonDir }: Repository): Promise<ProjectRevision | undefined> {
  const head = (await readSmall(join(gitDir, 'HEAD'))) ?? '';
  if (SHA.test(head)) return { ref: head, sha: head };
  const branch = BRANCH_HEAD.exec(head)?.[1];
  if (branch === undefined || branch.includes('..')) return undefined;
  const sha = (await readSmall(join(commonDir, branch))) ?? '';
  return SHA.test(sha) ? { ref: branch, sha } : undefined;
}

async function readSmall(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text?.trim();
}

function shownName(name: string, otherwise: string): string {
  const remote = /^refs\/remotes\/[^/]+\/(?!HEAD$)(.+)$/.exec(name)?.[1];
  if (remote !== undefined) return `refs/heads/${remote}`;
  return name.startsWith('refs/') ? name : otherwise;
}
