import { existsSync, realpathSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { createGit, type Git, mustRef } from '../../host/git/run-git.ts';
import { GitSettings } from '../../host/sandbox/git-settings.ts';
import { makeOwnRepository } from '../../host/sandbox/own-repository.ts';
import { pushTargetOf } from '../../host/sandbox/push-target.ts';
import { findRepository, type Repository } from '../../host/sandbox/repository.ts';
import { mustStayWithin } from '../../storage/contained-file.ts';
import { inputOf } from '../steps/step-input.ts';
import { type BuiltInCall, pathOf } from './built-in-call.ts';

/**
 * actions/checkout for the project's own repository: the workspace holds it already. Another `ref` is
 * checked out there, a `path` gets a checkout of its own, both from the project, without network.
 * Errors: INVALID_VALUE for what this cannot do, INVALID_REF, GIT_FAILED.
 */
export async function runCheckout(call: BuiltInCall): Promise<boolean> {
  const { run, given } = call;
  const { workspace } = call.frame.job.folders;
  refuseOthers(call);
  const ref = inputOf(given, 'ref');
  const target = pathOf(call, inputOf(given, 'path', '.'));
  if (target !== workspace && !target.startsWith(workspace + sep)) {
    throw invalid('path', `Repository path '${inputOf(given, 'path')}' is not under the workspace`);
  }
  mustStayWithin(workspace, target);
  const sha = textOfGithub(call, 'sha');
  const isWorkspace = target === workspace;
  const isOwnRef = ref === '' || ref === sha || ref === textOfGithub(call, 'ref');
  if (isWorkspace && isOwnRef) {
    run.log.say(`The workspace holds the repository already${sha === '' ? '' : `, at ${sha}`}`);
    setOutputs(call, ref === '' ? textOfGithub(call, 'ref') : ref, sha);
    return true;
  }
  if (call.frame.job.request.isolation !== undefined) {
    const text = 'A job of a fork has the commit of its run alone: no other ref, no other path';
    throw invalid(isWorkspace ? 'ref' : 'path', text);
  }
  const commit = await resolveRef(sourcesOf(call), isOwnRef ? sha : ref);
  await (isWorkspace ? checkOutWorkspace(call, commit) : checkOutInto(call, target, commit));
  run.log.say(`Checked out ${commit}`);
  setOutputs(call, ref, commit);
  return true;
}

function refuseOthers(call: BuiltInCall): void {
  const wanted = inputOf(call.given, 'repository');
  const own = textOfGithub(call, 'repository');
  if (wanted === '' || wanted.toLowerCase() === own.toLowerCase()) return;
  const text = `'${wanted}' cannot be checked out: without network there is only the project's own repository`;
  throw invalid('repository', `${text}${own === '' ? '' : `, '${own}'`}`);
}

/** What a step made in the workspace counts before what the project has. */
function sourcesOf({ frame }: BuiltInCall): readonly Git[] {
  const { workspace, project } = frame.job.folders;
  const own = existsSync(workspace) ? [createGit(workspace)] : [];
  return [...own, createGit(project)];
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

/** Moves the sandbox to another commit; the user's own checkout is never touched. */
async function checkOutWorkspace(call: BuiltInCall, commit: string): Promise<void> {
  const { workspace, project } = call.frame.job.folders;
  if (realpathSync(workspace) === realpathSync(project)) {
    throw invalid(
      'ref',
      'The run works in the project itself (sandbox none): another ref would change its checkout',
    );
  }
  const own = await findRepository(workspace);
  if (own === undefined || own.rootDir === (await findRepository(project))?.rootDir) {
    // It was copied without its repository.
    await giveRepository(call, project, workspace, commit);
  }
  const git = createGit(workspace);
  await git.run(['checkout', '--quiet', '--force', '--detach', commit, '--']);
  await git.run(['clean', '-ffdxq', '--exclude=.runner']);
}

/** A checkout beside the workspace's own: what is pushed from there goes where that of the workspace goes. */
async function checkOutInto(call: BuiltInCall, target: string, commit: string): Promise<void> {
  const { workspace, project } = call.frame.job.folders;
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  await giveRepository(call, existsSync(workspace) ? workspace : project, target, commit);
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
  const repository = (await findRepository(source)) ?? (await mustRepository(project));
  const git = createGit(repository.rootDir);
  const pushTarget = pushTargetOf(repository.gitDir);
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
