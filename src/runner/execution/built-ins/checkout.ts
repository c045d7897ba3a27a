import { appendFileSync, existsSync, lstatSync, realpathSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { createGit, type Git, mustRef } from '../../host/git/run-git.ts';
import { checkOutLfs } from '../../host/sandbox/checkout-lfs.ts';
import { checkOutSubmodules } from '../../host/sandbox/checkout-submodules.ts';
import { GitSettings } from '../../host/sandbox/git-settings.ts';
import { narrowRepository } from '../../host/sandbox/narrow-repository.ts';
import { alternatesText } from '../../host/sandbox/object-stores.ts';
import { makeOwnRepository } from '../../host/sandbox/own-repository.ts';
import { findRepository, type Repository } from '../../host/sandbox/repository.ts';
import type { JobTree } from '../../model/execution.ts';
import { mustStayWithin } from '../../storage/contained-file.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, pathOf } from './built-in-call.ts';
import {
  type CheckoutInputs,
  checkoutInputs,
  refuseForFork,
  refusalOfRepository,
} from './checkout-inputs.ts';

/**
 * actions/checkout for the project's own repository, from what the project has, without network: the files of
 * the run, or another `ref`, in the workspace or a `path` of it, with the history, submodules and LFS files
 * that are asked for, and no more. Where jobs work in the project itself nothing of it is changed.
 * Errors: INVALID_VALUE for what this cannot do, INVALID_REF, GIT_FAILED, DISK_FULL, STORE_UNAVAILABLE.
 */
export async function runCheckout(call: BuiltInCall): Promise<boolean> {
  const { run, frame } = call;
  const { job } = frame;
  const { workspace } = job.folders;
  refuseOthers(call);
  const inputs = checkoutInputs(call);
  const { ref } = inputs;
  const target = pathOf(call, inputs.path === '' ? '.' : inputs.path);
  if (target !== workspace && !target.startsWith(workspace + sep)) {
    throw invalid('path', `Repository path '${inputs.path}' is not under the workspace`);
  }
  mustStayWithin(workspace, target);
  const sha = textOfGithub(call, 'sha');
  const isWorkspace = target === workspace;
  const isOwnRef = ref === '' || ref === sha || ref === textOfGithub(call, 'ref');
  if (job.request.isolation !== undefined) refuseForFork(inputs, isWorkspace, isOwnRef);
  const { tree } = job.request;
  const root = isWorkspace ? (tree?.root ?? workspace) : target;
  const isAsBegun = isWorkspace && tree?.isInWorkspace === true && !job.isTouched;
  const isKept = isAsBegun || (isWorkspace && !inputs.isClean && hasRepository(root));
  const isFilled = tree !== undefined && !isKept;
  if (isFilled) await fillFrom(tree, root);
  const isThere = isOwnRef && (isFilled || isWorkspace);
  const commit = isThere ? sha : await resolveRef(sourcesOf(call), isOwnRef ? sha : ref);
  if (isThere) {
    const what = isFilled ? 'The files of the run' : 'The workspace holds the repository already';
    run.log.say(`${what}${sha === '' ? '' : `, at ${sha}`}`);
    if (tree?.isCommit === false && !isNoCommit(sha) && (isFilled || isAsBegun)) {
      run.log.say(copyNotice(tree, sha));
    }
  } else {
    if (isFilled) borrowFromWorkspace(tree.root, root);
    await (isFilled || isWorkspace
      ? checkOutAt(call, root, commit)
      : checkOutInto(call, target, commit));
    run.log.say(`Checked out ${commit}`);
  }
  // A second one finds what this one leaves.
  job.isTouched = true;
  const isCopy = isOwnRef && tree?.isCommit === false;
  await finish(call, inputs, { root, commit, isOwnRef, isCopy });
  setOutputs(call, ref === '' ? textOfGithub(call, 'ref') : ref, commit);
  return true;
}

function isNoCommit(sha: string): boolean {
  return /^0*$/.test(sha);
}

/** How the files of the run differ from the commit that GITHUB_SHA names. */
function copyNotice({ changes }: JobTree, sha: string): string {
  const which =
    changes === undefined
      ? 'as it was when the run began, with what is not committed'
      : `with ${changes} changed or untracked ${changes === 1 ? 'file or folder' : 'files and folders'}`;
  return `The files are a copy of the project ${which}, not those of commit ${sha}`;
}

/** Of its own: a link that a step put there may lead to the user's. */
function hasRepository(root: string): boolean {
  const gitDir = join(root, '.git');
  const found = lstatSync(gitDir, { throwIfNoEntry: false });
  return found?.isDirectory() === true && existsSync(join(gitDir, 'HEAD'));
}

/** What steps have committed in the workspace can be checked out beside it. */
function borrowFromWorkspace(workspaceRoot: string, root: string): void {
  if (root === workspaceRoot || !hasRepository(workspaceRoot) || !hasRepository(root)) return;
  const line = alternatesText([join(workspaceRoot, '.git', 'objects')]);
  appendFileSync(join(root, '.git', 'objects', 'info', 'alternates'), line);
}

async function fillFrom(tree: JobTree, root: string): Promise<void> {
  await mkdir(root, { recursive: true });
  await tree.fill(root);
}

type Placed = {
  readonly root: string;
  readonly commit: string;
  readonly isOwnRef: boolean;
  /** The files are the user's own, not those of a commit. */
  readonly isCopy: boolean;
};

/** History, submodules and LFS files as they were asked for. */
async function finish(call: BuiltInCall, inputs: CheckoutInputs, placed: Placed): Promise<void> {
  const { root, commit, isOwnRef, isCopy } = placed;
  const { folders, request } = call.frame.job;
  // A job of a fork has what it gets; a project without git has nothing of this kind.
  if (request.isolation !== undefined || !hasRepository(root)) return;
  const project = await findRepository(folders.project);
  // The project itself is not ours to change.
  if (project !== undefined && realpathSync(root) === realpathSync(project.rootDir)) return;
  const git = createGit(root);
  const { depth, hasTags, hasLfs, submodules } = inputs;
  if (!isNoCommit(commit)) {
    const ref = await refOf(call, inputs.ref, isOwnRef);
    await narrowRepository(git, root, { sha: commit, ref, depth, hasTags });
  }
  await checkOutSubmodules({
    rootDir: root,
    projectRoot: project?.rootDir ?? folders.project,
    wanted: submodules,
    depth,
    isCopy,
    mayPush: request.mayPush === true,
    mustBeInside: (path) => mustStayWithin(root, path),
  });
  if (!isCopy || hasLfs) await checkOutLfs(git, root, hasLfs);
}

/** The full name of the branch or tag that is checked out; '' for a commit. */
async function refOf(call: BuiltInCall, ref: string, isOwnRef: boolean): Promise<string> {
  const own = textOfGithub(call, 'ref');
  if (isOwnRef) return ref === '' || ref === own ? own : '';
  return fullRef(sourcesOf(call), ref);
}

/** The branch or tag that a short name means: a branch first, as actions/checkout looks. */
async function fullRef(sources: readonly Git[], ref: string): Promise<string> {
  if (ref.startsWith('refs/')) return ref;
  const names = [`refs/remotes/origin/${ref}`, `refs/heads/${ref}`, `refs/tags/${ref}`];
  for (const git of sources) {
    const args = ['for-each-ref', '--format=%(refname)', '--', ...names];
    const found = (await git.tryRun(args)).stdout.toString('utf8').split('\n');
    const name = names.find((each) => found.includes(each));
    if (name !== undefined) return name.replace('refs/remotes/origin/', 'refs/heads/');
  }
  return '';
}

function refuseOthers(call: BuiltInCall): void {
  const wanted = inputOf(call.given, 'repository');
  const own = textOfGithub(call, 'repository');
  const refusal = refusalOfRepository(wanted, own);
  if (refusal !== undefined) throw invalid('repository', refusal);
}

/** What a step made in the workspace counts before what the project has. */
function sourcesOf({ frame }: BuiltInCall): readonly Git[] {
  const { folders, request } = frame.job;
  const root = request.tree?.root ?? folders.workspace;
  const own = hasRepository(root) ? [createGit(root)] : [];
  return [...own, createGit(folders.project)];
}

async function resolveRef(sources: readonly Git[], ref: string): Promise<string> {
  const name = mustRef(ref);
  for (const git of sources) {
    for (const candidate of [name, `refs/remotes/origin/${name}`]) {
      const revision = `${candidate}^{commit}`;
      const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', revision];
      const { exitCode, stdout } = await git.tryRun(args);
      if (exitCode === 0) return stdout.toString('utf8').trim();
    }
  }
  throw new AppError('INVALID_REF', `A branch, tag or commit '${ref}' could not be found`, {
    field: 'ref',
  });
}

/** Moves a work tree to another commit; the user's own checkout is never touched. */
async function checkOutAt(call: BuiltInCall, root: string, commit: string): Promise<void> {
  const { project } = call.frame.job.folders;
  if (realpathSync(root) === realpathSync(project)) {
    throw invalid(
      'ref',
      'The run works in the project itself (sandbox none): another ref would change its checkout',
    );
  }
  // It was copied without its repository.
  if (!hasRepository(root)) await giveRepository(call, project, root, commit);
  const git = createGit(root);
  await git.run(['checkout', '--quiet', '--force', '--detach', commit, '--']);
  await git.run(['clean', '-ffdxq', '--exclude=.runner']);
}

/** A checkout beside the workspace's own: what is pushed from there goes where that of the workspace goes. */
async function checkOutInto(call: BuiltInCall, target: string, commit: string): Promise<void> {
  const { workspace, project } = call.frame.job.folders;
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await giveRepository(call, hasRepository(workspace) ? workspace : project, target, commit);
  await createGit(target).run(['reset', '--hard', '--quiet', '--no-recurse-submodules']);
}

/** Makes `dir` a work tree of the repository around `source`, with a git directory of its own. */
async function giveRepository(
  call: BuiltInCall,
  source: string,
  dir: string,
  head: string,
): Promise<void> {
  const { project } = call.frame.job.folders;
  const { pushTarget } = call.frame.job.request;
  const repository = (await findRepository(source)) ?? (await mustRepository(project));
  const git = createGit(repository.rootDir);
  // In the project itself pushes go where the user's go.
  const isProject = repository.gitDir === (await findRepository(project))?.gitDir;
  const isInPlace = realpathSync(call.frame.job.folders.workspace) === realpathSync(project);
  const mayPush = call.frame.job.request.mayPush === true || (isProject && isInPlace);
  const settings = new GitSettings(git);
  await makeOwnRepository({ git, settings, repository, dir, head, mayPush, pushTarget });
}

async function mustRepository(project: string): Promise<Repository> {
  const repository = await findRepository(project);
  if (repository !== undefined) return repository;
  throw new AppError('GIT_FAILED', 'the project is not a git repository');
}

function setOutputs({ run }: BuiltInCall, ref: string, commit: string): void {
  run.outputs.set('ref', ref);
  run.outputs.set('commit', commit);
}

function textOfGithub(call: BuiltInCall, name: string): string {
  const value = call.step.github[name];
  return typeof value === 'string' ? value : '';
}

function invalid(field: string, text: string): AppError {
  return new AppError('INVALID_VALUE', text, { field });
}
