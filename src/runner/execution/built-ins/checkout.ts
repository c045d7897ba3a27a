import { existsSync, realpathSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { createGit, type Git, mustRef } from '../../host/git/run-git.ts';
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
  const project = createGit(call.frame.job.folders.project);
  const commit = await resolveRef(project, isOwnRef ? sha : ref);
  await (isWorkspace
    ? checkOutWorkspace(call, project, commit)
    : cloneInto(project, target, commit));
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

async function resolveRef(git: Git, ref: string): Promise<string> {
  const name = mustRef(ref);
  for (const candidate of [name, `refs/remotes/origin/${name}`]) {
    const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${candidate}^{commit}`];
    const { exitCode, stdout } = await git.tryRun(args);
    if (exitCode === 0) return stdout.toString('utf8').trim();
  }
  throw new AppError('INVALID_REF', `A branch, tag or commit '${ref}' could not be found`, {
    field: 'ref',
  });
}

/** Moves the sandbox to another commit; the user's own checkout is never touched. */
async function checkOutWorkspace(call: BuiltInCall, project: Git, commit: string): Promise<void> {
  const { workspace } = call.frame.job.folders;
  if (realpathSync(workspace) === realpathSync(project.dir)) {
    throw invalid(
      'ref',
      'The run works in the project itself (sandbox none): another ref would change its checkout',
    );
  }
  const git = createGit(workspace);
  if (!existsSync(join(workspace, '.git'))) await giveRepository(project, workspace);
  await git.run(['checkout', '--quiet', '--force', '--detach', commit, '--']);
  await git.run(['clean', '-ffdxq', '--exclude=.runner']);
}

/** A workspace that was copied without its repository gets one that borrows the project's objects. */
async function giveRepository(project: Git, workspace: string): Promise<void> {
  const folder = await mkdtemp(join(dirname(workspace), '.checkout-'));
  try {
    const clone = join(folder, 'clone');
    await project.run(['clone', '--quiet', '--shared', '--no-checkout', '--', project.dir, clone]);
    await rename(join(clone, '.git'), join(workspace, '.git'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function cloneInto(project: Git, target: string, commit: string): Promise<void> {
  await rm(target, { recursive: true, force: true });
  await mkdir(dirname(target), { recursive: true });
  await project.run(['clone', '--quiet', '--shared', '--no-checkout', '--', project.dir, target]);
  await createGit(target).run(['checkout', '--quiet', '--detach', commit, '--']);
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
