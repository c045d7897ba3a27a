import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, realpathSync, rmSync, writeFileSync, mkdtempSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { JsonObject } from '../../shared/json.ts';
import { evaluateTexts } from '../evaluation/evaluate.ts';
import { ActionLibrary } from '../host/actions/action-library.ts';
import { makeProcessFolder, memoryFolder } from '../host/process/process-folder.ts';
import { type BaseEnvironment, baseEnvironment } from '../host/process/step-environment.ts';
import type { JobReport, JobRequest } from '../model/execution.ts';
import { createMasker } from '../step-output/masker.ts';
import { BackgroundSteps } from './state/background-steps.ts';
import { JobEnvironment } from './state/job-environment.ts';
import {
  type ExecutorDependencies,
  type JobFolders,
  JobState,
  scopeOf,
  type StepFrame,
} from './state/job-state.ts';
import { runnerContext } from './state/runner-context.ts';
import { runSteps } from './steps-runner.ts';
import { inputVariables } from './steps/step-variables.ts';

/** Command files hold at most some MiB; a step that writes more than it may must not fill the memory. */
const FREE_BYTES_MIN = 256 * 1024 * 1024;
const PREFIX = 'runner-commands-';

let ownFolder: string | undefined;

/**
 * A new folder for the command files of one job, in memory where there is room: five files a step, of
 * which most stay empty, and what they hold is often secret. Undefined: the job's own folder is to be
 * used. The caller removes it.
 */
function makeCommandFolder(): string | undefined {
  const parent = memoryFolder(FREE_BYTES_MIN);
  if (parent === undefined) return undefined;
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      ownFolder ??= makeProcessFolder(parent, PREFIX);
      return mkdtempSync(join(ownFolder, 'job-'));
    } catch {
      // Somebody cleaned up there: a second try makes it anew, then the disk will do.
      ownFolder = undefined;
    }
  }
  return undefined;
}

/**
 * The global configuration of git that a job begins with: the user's own, included, so that what a step
 * sets by `git config --global` is the job's alone. Files that are not there do no harm.
 * Places: git-config(1), FILES.
 */
function jobGitConfig(environment: Readonly<Record<string, string | undefined>>): string {
  const { HOME: home, XDG_CONFIG_HOME: configHome, GIT_CONFIG_GLOBAL: given } = environment;
  const folder = isGiven(configHome) ? configHome : isGiven(home) ? join(home, '.config') : '';
  const usual = [
    ...(folder === '' ? [] : [join(folder, 'git', 'config')]),
    ...(isGiven(home) ? [join(home, '.gitconfig')] : []),
  ];
  const paths = given === undefined ? usual : [given];
  return paths
    .filter((path) => !path.includes('\n'))
    .map((path) => `[include]\n\tpath = "${path.replaceAll(/["\\]/g, '\\$&')}"\n`)
    .join('');
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}

/** The state of a job that has not begun. Cannot fail. */
export function createState(
  request: JobRequest,
  report: JobReport,
  dependencies: ExecutorDependencies,
): JobState {
  const runnerDir = join(request.projectDir, '.runner');
  const folders: JobFolders = {
    workspace: request.workspaceDir,
    project: request.projectDir,
    temp: request.isolation?.temp ?? join(request.jobDir, 'temp'),
    scripts: request.jobDir,
    commands:
      request.isolation?.commands ?? makeCommandFolder() ?? join(request.jobDir, 'commands'),
  };
  const { vars, secrets } = request.contexts;
  const isDebug = [vars, secrets].some((values) => values['ACTIONS_STEP_DEBUG'] === 'true');
  const { variables, secrets: hidden } = baseVariablesOf(request, dependencies);
  return new JobState({
    request,
    report,
    dependencies,
    runSteps,
    masker: createMasker(),
    folders,
    actions: dependencies.actions ?? placedActions(runnerDir),
    isDebug,
    trackingId: request.trackingId ?? `github_${randomUUID()}`,
    baseVariables: variables,
    hidden,
    runner: runnerContext({
      temp: folders.temp,
      toolCache: toolCacheOf(request),
      workspace: dirname(request.workspaceDir),
      isDebug,
    }),
  });
}

function toolCacheOf({ isolation, toolCacheDir, projectDir }: JobRequest): string {
  if (isolation === undefined && toolCacheDir !== undefined) return toolCacheDir;
  return join(isolation?.home ?? join(projectDir, '.runner'), 'tool-cache');
}

/** Actions that somebody put there; none is fetched. */
function placedActions(stateDir: string): ActionLibrary {
  const origin = { url: '' };
  return new ActionLibrary({ stateDir, origin, fetchesInRuns: false, isBuiltIn: () => false });
}

/** Makes the folders of a job and its event file. Errors: those of the file system. */
export function makeFolders(job: JobState): void {
  const { temp, commands, workspace } = job.folders;
  for (const folder of [temp, commands]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  job.realFolders = [commands, temp, workspace].map((folder) => realpathSync(folder));
  const { isolation, jobDir, event } = job.request;
  const mode = isolation === undefined ? 0o600 : 0o644;
  writeFileSync(join(jobDir, 'event.json'), JSON.stringify(event), { mode });
  if (isolation === undefined) {
    const text = jobGitConfig(job.dependencies.environment);
    writeFileSync(gitConfigPath(job.request), text, { mode });
    return;
  }
  // The job may enter it, and change nothing there.
  chmodSync(jobDir, 0o755);
}

/** A job that is kept apart has a home of its own, and with that settings of its own. */
function baseVariablesOf(
  request: JobRequest,
  { environment, stepVariables }: ExecutorDependencies,
): BaseEnvironment {
  const { isolation, tree } = request;
  const base = baseEnvironment(environment, stepVariables);
  if (isolation === undefined) {
    // Git must not take what is the job's for a part of a repository further up.
    const ceiling =
      tree === undefined
        ? {}
        : { GIT_CEILING_DIRECTORIES: `${dirname(tree.root)}:${request.jobDir}` };
    const variables = {
      ...base.variables,
      ...ceiling,
      GIT_CONFIG_GLOBAL: gitConfigPath(request),
    };
    return { ...base, variables };
  }
  const { USER: _user, LOGNAME: _name, SHELL: _shell, ...rest } = base.harmless;
  return { ...base, variables: { ...rest, HOME: isolation.home, TMPDIR: isolation.temp } };
}

/** What `git config --global` of a step changes. */
function gitConfigPath(request: JobRequest): string {
  return join(request.jobDir, 'gitconfig');
}

/** The command files, which may lie elsewhere than the folder that the caller removes. Cannot fail. */
export function removeCommandFiles(job: JobState): void {
  try {
    rmSync(job.folders.commands, { recursive: true, force: true });
  } catch {
    // A step made files there that cannot be removed; they go when the memory does, or with the job.
  }
}

/** The frame of the job itself: workflow `env` below job `env`, both evaluated now. */
export async function createFrame(job: JobState): Promise<StepFrame> {
  const { request } = job;
  const { contexts, workflow } = request;
  const github: JsonObject = {
    ...contexts.github,
    job: request.job.key,
    event: request.event,
    workspace: request.workspaceDir,
    event_path: join(request.jobDir, 'event.json'),
  };
  const base: Omit<StepFrame, 'environment'> = {
    job,
    depth: 0,
    path: '',
    repositoryRoot: request.workspaceDir,
    overrides: {},
    github,
    contexts: {
      inputs: contexts.inputs,
      needs: contexts.needs,
      strategy: contexts.strategy,
      matrix: contexts.matrix,
      vars: contexts.vars,
      secrets: contexts.secrets,
    },
    defaults: [request.job.defaults, workflow.defaults],
    inputVariables: inputVariables(contexts.inputs),
    steps: {},
    actionNames: new Map(),
    background: new BackgroundSteps(),
    hasFailure: false,
  };
  const empty: StepFrame = { ...base, environment: new JobEnvironment({}) };
  const given = await evaluateTexts(workflow.env, scopeOf(empty, {}));
  const outer = { ...request.env, ...given };
  const inner = await evaluateTexts(request.job.env, scopeOf(empty, outer));
  return { ...base, environment: new JobEnvironment({ ...outer, ...inner }) };
}
