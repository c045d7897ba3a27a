import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import { evaluateTemplate, evaluateTexts } from '../../evaluation/evaluate.ts';
import { textOfValue } from '../../language/expression-data.ts';
import { scopeOf } from '../state/job-state.ts';
import type { StepRun } from '../state/step-run.ts';
import { createCommandFiles, takeCommandFiles } from '../steps/command-files.ts';
import { splitArguments } from '../steps/shells.ts';
import { inputOf } from '../steps/step-input.ts';
import { judgeExit, runStepProcess } from '../steps/step-process.ts';
import { inputVariables, processEnvironment } from '../steps/step-variables.ts';
import { type ActionUse, githubOf } from './run-javascript.ts';

const PROBE_TIMEOUT_MS = 10_000;
const REMOVE_TIMEOUT_MS = 60_000;
/** Where the folders of the job are within a container: as on GitHub. */
const WORKSPACE = '/github/workspace';
const HOME = '/github/home';
const TEMP = '/github/runner_temp';
const COMMANDS = '/github/file_commands';
const EVENT = '/github/workflow/event.json';
/** Variables of the host that mean nothing in a container, or something else. */
const HOST_ONLY: ReadonlySet<string> = new Set([
  'GIT_CONFIG_GLOBAL',
  'HOME',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TMPDIR',
  'USER',
]);

type Container = {
  readonly image: string;
  readonly entrypoint: string;
  readonly args: readonly string[];
  /** Beside those of the step. */
  readonly env: Readonly<Record<string, string>>;
};

/** Runs an image for a step: `uses: docker://…`. Inputs `entrypoint` and `args` are the program's. */
export async function runImage(use: ActionUse, run: StepRun, image: string): Promise<boolean> {
  const docker = await mustDocker(use, `docker://${image}`);
  return await runContainer(docker, use, run, {
    image,
    entrypoint: inputOf(use.inputs, 'entrypoint'),
    args: splitArguments(inputOf(use.inputs, 'args')),
    env: {},
  });
}

/** Runs a Docker action: its image is built from its Dockerfile, or pulled. */
export async function runDockerAction(use: ActionUse, run: StepRun): Promise<boolean> {
  const { runs, name } = use.action.definition;
  if (runs.kind !== 'docker') throw new AppError('INTERNAL', 'not a docker action');
  const docker = await mustDocker(use, name);
  const scope = scopeOf(use.frame, use.env, githubOf(use));
  const withInputs = { ...scope, contexts: { ...scope.contexts, inputs: use.inputs } };
  const args = runs.args === undefined ? [] : await evaluateTemplate(runs.args, withInputs);
  const image = runs.image.startsWith('docker://')
    ? runs.image.slice('docker://'.length)
    : await buildImage(docker, use, run, runs.image);
  if (image === undefined) return false;
  const given = inputOf(use.inputs, 'args');
  return await runContainer(docker, use, run, {
    image,
    entrypoint: inputOf(use.inputs, 'entrypoint', runs.entrypoint ?? ''),
    args: given === '' && Array.isArray(args) ? args.map(textOfValue) : splitArguments(given),
    env: await evaluateTexts(runs.env, withInputs),
  });
}

/**
 * The docker program, if its daemon answers; asked once for each job.
 * Errors: BACKEND_UNAVAILABLE.
 */
async function mustDocker(use: ActionUse, what: string): Promise<string> {
  const { job } = use.frame;
  if (job.request.isolation !== undefined) {
    const text = `'${what}' needs a container, which a job of a fork does not get`;
    throw new AppError('BACKEND_UNAVAILABLE', text, { field: 'uses' });
  }
  job.docker ??= findDocker(use);
  const docker = await job.docker;
  if (docker === undefined) {
    const text = `'${what}' needs a container, and docker does not answer on this host`;
    throw new AppError('BACKEND_UNAVAILABLE', text, { field: 'uses' });
  }
  return docker;
}

async function findDocker(use: ActionUse): Promise<string | undefined> {
  const { job } = use.frame;
  const docker = job.finder.find('docker', job.baseVariables['PATH'] ?? '');
  if (docker === undefined) return undefined;
  const args = ['version', '--format', '{{.Server.Version}}'];
  return (await succeeds(docker, args, cliEnvironment(use), PROBE_TIMEOUT_MS)) ? docker : undefined;
}

async function succeeds(
  docker: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  execFile(docker, [...args], { env: { ...env }, timeout: timeoutMs }, (error) =>
    resolve(error === null),
  );
  return await promise;
}

/** The command line tool finds its daemon and credentials as the user's own would. */
function cliEnvironment(use: ActionUse): Record<string, string> {
  const { job } = use.frame;
  const env: Record<string, string> = { ...job.baseVariables };
  for (const [name, value] of Object.entries(job.dependencies.environment)) {
    if (name.startsWith('DOCKER_') && value !== undefined) env[name] = value;
  }
  return env;
}

async function buildImage(
  docker: string,
  use: ActionUse,
  run: StepRun,
  file: string,
): Promise<string | undefined> {
  const { dir } = use.action;
  const tag = `runner-action:${createHash('sha256').update(join(dir, file)).digest('hex').slice(0, 24)}`;
  const exit = await runStepProcess(use.frame.job, run, {
    file: docker,
    args: ['build', '--tag', tag, '--file', join(dir, file), dir],
    cwd: dir,
    env: cliEnvironment(use),
  });
  return judgeExit(run, docker, exit) ? tag : undefined;
}

async function runContainer(
  docker: string,
  use: ActionUse,
  run: StepRun,
  container: Container,
): Promise<boolean> {
  const { job } = use.frame;
  const files = createCommandFiles(job);
  const host = processEnvironment(job, run.environment, use.env, githubOf(use), {
    ...inputVariables(use.inputs),
    ...container.env,
    ...files.variables,
  });
  const inside: Record<string, string> = {};
  for (const [name, value] of Object.entries(host)) {
    if (!HOST_ONLY.has(name)) inside[name] = value;
  }
  for (const [name, path] of Object.entries(files.variables)) {
    inside[name] = `${COMMANDS}/${basename(path)}`;
  }
  const places = { GITHUB_WORKSPACE: WORKSPACE, RUNNER_TEMP: TEMP, GITHUB_EVENT_PATH: EVENT };
  Object.assign(inside, places, { RUNNER_TRACKING_ID: job.trackingId });
  const name = `runner_${randomUUID()}`;
  const exit = await runStepProcess(job, run, {
    file: docker,
    args: [...runArguments(use, name, Object.keys(inside), container), ...container.args],
    cwd: job.folders.workspace,
    // Values go by the environment: arguments can be read by everybody on the host.
    env: { ...cliEnvironment(use), ...inside },
  });
  if (run.stop.kind !== undefined) {
    // The tool may have gone without its container.
    await succeeds(docker, ['rm', '--force', name], cliEnvironment(use), REMOVE_TIMEOUT_MS);
  }
  const isFine = await takeCommandFiles(job, run, files);
  return judgeExit(run, docker, exit) && isFine;
}

function runArguments(
  use: ActionUse,
  name: string,
  variables: readonly string[],
  { image, entrypoint }: Container,
): string[] {
  const { folders, request } = use.frame.job;
  const home = join(request.jobDir, 'home');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const volumes = [
    [folders.workspace, WORKSPACE],
    [home, HOME],
    [folders.temp, TEMP],
    [folders.commands, COMMANDS],
    [join(request.jobDir, 'event.json'), EVENT],
  ] as const;
  return [
    'run',
    '--rm',
    '--init',
    '--name',
    name,
    '--workdir',
    WORKSPACE,
    '--env',
    `HOME=${HOME}`,
    ...variables.flatMap((variable) => ['--env', variable]),
    ...volumes.flatMap(([from, to]) => ['--volume', `${from}:${to}`]),
    ...(entrypoint === '' ? [] : ['--entrypoint', entrypoint]),
    image,
  ];
}
