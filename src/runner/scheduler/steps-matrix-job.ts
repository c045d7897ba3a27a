import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import { assert } from '../../shared/assert.ts';
import type { JsonObject } from '../../shared/json.ts';
import { removeSmallTree } from '../../shared/small-tree.ts';
import { secretsReferencedBy } from '../language/references.ts';
import { literalText, valueOf } from '../language/template-access.ts';
import type { JobExecution, JobOutcome, JobRequest } from '../model/execution.ts';
import type { JobIsolation } from '../model/isolation.ts';
import type { TextMask } from '../model/ports.ts';
import type { Conclusion } from '../model/run.ts';
import type { JobWorkspace } from '../model/storage.ts';
import type { StepsJobDefinition } from '../model/workflow.ts';
import { checkoutUse } from './checkout-use.ts';
import { enterGroup } from './enter-group.ts';
import { githubContext, jobWorkflowContext } from './github-context.ts';
import { architectureNotice, foreignLabel } from './host-labels.ts';
import { JOBS_FOLDER, trackingIdOf } from './job-leftovers.ts';
import { JobReporter } from './job-report.ts';
import { evaluateConcurrency, evaluateJobSettings, type JobSettings } from './job-settings.ts';
import type { JobResult, NodeJob, MatrixJobContexts, RunContext } from './run-context.ts';
import { runView } from './state/run-state.ts';

/** More branches and tags than that are counted in the annotation that reports them. */
const PUSHED_NAMES_MAX = 20;

/**
 * One job with steps, from its turn to its end: its settings, the operating system it asks for, its
 * concurrency group, a permit of the machine, then the executor. Errors, all before the job started: INVALID_WORKFLOW.
 */
export async function runStepsMatrixJob(
  context: RunContext,
  matrixJob: NodeJob,
  definition: StepsJobDefinition,
): Promise<JobResult> {
  const contexts = await matrixJobContexts(context, matrixJob, definition);
  const settings = await evaluateJobSettings(definition, contexts);
  const { options, recorder } = context;
  const foreign = foreignLabel(settings.labels, options.platform ?? process.platform);
  if (foreign !== undefined && options.runsOn !== 'any') {
    const message = `Skipped: the job asks for '${foreign}', which is another operating system than this one`;
    context.annotate({ level: 'warning', message, jobId: matrixJob.jobId });
    context.omissions.leftOut();
    return completeUnstarted(context, matrixJob, 'skipped');
  }
  const message = architectureNotice(settings.labels, options.architecture ?? process.arch);
  if (message !== undefined && options.runsOn !== 'any') {
    context.annotate({ level: 'warning', message, jobId: matrixJob.jobId });
  }
  const concurrency = await evaluateConcurrency(definition.concurrency, { contexts });
  const leave = await enterGroup(context, matrixJob, concurrency);
  if (leave === undefined) return completeUnstarted(context, matrixJob, 'cancelled');
  const releases = [leave];
  try {
    // In this order everywhere: who waits for the project holds no permit that others need.
    const isInProject = context.sandbox.sandbox.strategy === 'none';
    for (const permits of [...(isInProject ? [context.projectJobs] : []), context.slots]) {
      const release = await permits.acquire(recorder.runId, matrixJob.cancellation);
      if (release === undefined) return completeUnstarted(context, matrixJob, 'cancelled');
      releases.push(release);
    }
    return await startJob(context, matrixJob, definition, settings, contexts);
  } finally {
    for (const release of releases.toReversed()) release();
  }
}

export async function matrixJobContexts(
  context: RunContext,
  matrixJob: NodeJob,
  definition: NodeJob['definition'],
): Promise<MatrixJobContexts> {
  const hasToken = matrixJob.scope.hasToken || definition.permissions !== undefined;
  return {
    github: githubContext({ ...context.facts, hasToken }),
    needs: matrixJob.needs,
    strategy: matrixJob.strategy,
    matrix: matrixJob.matrix,
    vars: await context.variablesOf(''),
    inputs: matrixJob.scope.inputs,
  };
}

/** `secrets.GITHUB_TOKEN` is there when `github.token` is. */
export function withToken(
  secrets: Readonly<Record<string, string>>,
  github: JsonObject,
): JsonObject {
  const token = github['token'];
  return typeof token === 'string' && token !== '' ? { ...secrets, GITHUB_TOKEN: token } : secrets;
}

function completeUnstarted(
  context: RunContext,
  matrixJob: NodeJob,
  conclusion: Conclusion,
): JobResult {
  const outputs = {};
  const { jobId } = matrixJob;
  context.recorder.record({
    type: 'job.completed',
    jobId,
    conclusion,
    result: conclusion,
    outputs,
  });
  return { result: conclusion, outputs };
}

async function startJob(
  context: RunContext,
  matrixJob: NodeJob,
  definition: StepsJobDefinition,
  settings: JobSettings,
  contexts: MatrixJobContexts,
): Promise<JobResult> {
  const environment = settings.environment?.name ?? '';
  const names = secretsReferencedBy(matrixJob.scope.workflow, definition);
  const given = await matrixJob.scope.secrets({ jobId: matrixJob.jobId, environment, names });
  const secrets = withToken(given.byName, contexts.github);
  const kept = (await context.options.secrets.masksFor?.(environment, names)) ?? [];
  const masks = [...Object.values(secrets).map(String), ...given.masks, ...kept];
  context.masks.add(masks);
  const vars = environment === '' ? contexts.vars : await context.variablesOf(environment);
  const isolation = await isolationFor(context);
  let workspace: JobWorkspace | undefined;
  let isKept = false;
  try {
    if (isolation === undefined) workspace = await openWorkspace(context, matrixJob, definition);
    const parts = { contexts, vars, secrets, masks, isolation, workspace };
    const result = await startIn(context, matrixJob, definition, settings, parts);
    const { keepWorkspaces } = context.options;
    isKept =
      keepWorkspaces === 'all' || (keepWorkspaces === 'failed' && hasFailed(context, matrixJob));
    return result;
  } finally {
    await isolation?.end();
    await endWorkspace(context, workspace, isKept);
  }
}

function hasFailed({ recorder }: RunContext, { jobId }: NodeJob): boolean {
  const ended = recorder.live.jobs.get(jobId);
  return ended?.job.conclusion === 'failure' || ended?.hasTimedOut === true;
}

function openWorkspace(
  { options, recorder, sandbox }: RunContext,
  { jobId }: NodeJob,
  { steps }: StepsJobDefinition,
): Promise<JobWorkspace> {
  const use = checkoutUse(steps);
  return sandbox.openWorkspace({
    jobId,
    isEmpty: options.strictCheckout === true || use.isElsewhere,
    mayFill: options.strictCheckout === true || use.mayComeLate,
    // Those in progress have theirs already.
    isLast: recorder.live.jobs
      .values()
      .every(({ job }) => job.id === jobId || job.status !== 'queued'),
  });
}

/** What cannot be removed goes with the run, or at the next start. */
async function endWorkspace(
  { options }: RunContext,
  workspace: JobWorkspace | undefined,
  isKept: boolean,
): Promise<void> {
  try {
    await workspace?.end(isKept);
  } catch (error) {
    const text = 'a workspace was not removed';
    const problem = new AppError('STORE_UNAVAILABLE', text, {}, error);
    options.report('runner.workspace', problem);
  }
}

/** A job of a fork gets a place of its own, or does not run. Errors: FORKS_REFUSED. */
async function isolationFor(context: RunContext): Promise<JobIsolation | undefined> {
  if (context.facts.request.fork === undefined) return undefined;
  const { isolation } = context.options;
  if (isolation !== undefined) return isolation.begin(context.sandbox.source);
  throw new AppError('FORKS_REFUSED', 'this runner does not keep jobs of forks apart');
}

type JobParts = {
  readonly contexts: MatrixJobContexts;
  readonly vars: JsonObject;
  readonly secrets: JsonObject;
  readonly masks: readonly string[];
  readonly isolation: JobIsolation | undefined;
  /** Undefined for a job that is kept apart, which has its own. */
  readonly workspace: JobWorkspace | undefined;
};

async function startIn(
  context: RunContext,
  matrixJob: NodeJob,
  definition: StepsJobDefinition,
  settings: JobSettings,
  { contexts, vars, secrets, masks, isolation, workspace }: JobParts,
): Promise<JobResult> {
  const path = isolation?.workspace ?? workspace?.path;
  assert(path !== undefined, 'a job has a workspace');
  const jobContexts = {
    ...contexts,
    github: { ...contexts.github, job: definition.key, workspace: path },
    vars,
    secrets,
  };
  const folder = context.options.ids.uuid();
  const mark = join(context.options.projectDir, '.runner', JOBS_FOLDER, folder);
  const jobDir =
    isolation === undefined ? (workspace?.jobDir ?? mark) : join(isolation.shared, folder);
  const request = requestOf(context, matrixJob, definition, settings, {
    contexts: jobContexts,
    masks,
    isolation,
    workspaceDir: path,
    tree: treeOf(context, definition, workspace),
    jobDir,
    trackingId: trackingIdOf(folder),
  });
  if (matrixJob.cancellation.isCancelled) return completeUnstarted(context, matrixJob, 'cancelled');
  try {
    // Short calls; the way through the thread pool takes ten times as long.
    for (const dir of [isolation === undefined ? mark : jobDir, jobDir]) {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
    }
  } catch (error) {
    throw new AppError('STORE_UNAVAILABLE', "The job's folder could not be made", {}, error);
  }
  try {
    return await execute(context, matrixJob, settings, request);
  } finally {
    // What a job kept apart has goes with all else of it.
    if (isolation === undefined) removeJobDir(context, mark);
  }
}

function requestOf(
  context: RunContext,
  matrixJob: NodeJob,
  definition: StepsJobDefinition,
  settings: JobSettings,
  parts: Pick<
    JobRequest,
    'contexts' | 'masks' | 'isolation' | 'workspaceDir' | 'tree' | 'jobDir' | 'trackingId'
  >,
): JobRequest {
  const { options, facts, recorder, sandbox } = context;
  return {
    runId: recorder.runId,
    idOfRun: (text) => idOfRun(context, text),
    runNumber: facts.runNumber,
    attempt: facts.attempt,
    jobId: matrixJob.jobId,
    jobName: matrixJob.name,
    workflow: matrixJob.scope.workflow,
    job: definition,
    workflowContext: jobWorkflowContext(
      parts.contexts.github,
      matrixJob.scope.workflow.path,
      recorder.live.run.actions ?? [],
    ),
    ...parts,
    pushTarget: sandbox.pushTarget,
    env: facts.request.env,
    projectDir: options.projectDir,
    toolCacheDir: sandbox.toolCache,
    mayPush: options.allowPush === true || facts.request.allowPush === true,
    event: facts.request.event,
    timeoutMs: settings.timeoutMs,
    logBytesMax: options.limits.jobLogBytesMax,
  };
}

/** A job of a fork knows its own run alone by its number: those of others can be guessed. */
function idOfRun({ facts, recorder, idOfRun: find }: RunContext, text: string): string {
  if (text === facts.runId) return recorder.runId;
  return facts.request.fork === undefined ? (find(text) ?? text) : text;
}

function treeOf(
  { options, sandbox }: RunContext,
  { steps }: StepsJobDefinition,
  workspace: JobWorkspace | undefined,
): JobRequest['tree'] {
  if (workspace?.fill === undefined) return undefined;
  const { root, fill } = workspace;
  return {
    root,
    isInWorkspace: options.strictCheckout !== true && !checkoutUse(steps).isElsewhere,
    isCommit: sandbox.sandbox.strategy === 'worktree',
    changes: sandbox.changes,
    fill,
  };
}

/** On GitHub such a job has nothing to work on. */
function warnWithoutCheckout(context: RunContext, { job, tree }: JobRequest): void {
  if (tree?.isInWorkspace !== true || checkoutUse(job.steps).isThere) return;
  const message = context.checkoutNotice.onStart(context.recorder.live.jobs.values());
  if (message !== undefined) context.annotate({ level: 'warning', message });
}

async function execute(
  context: RunContext,
  matrixJob: NodeJob,
  settings: JobSettings,
  request: JobRequest,
): Promise<JobResult> {
  const { recorder, options } = context;
  const { environment } = settings;
  const { jobId, name } = matrixJob;
  recorder.record({
    type: 'job.started',
    jobId,
    name,
    environment: environment?.name,
    sandbox: { path: request.workspaceDir },
  });
  warnWithoutCheckout(context, request);
  if (isRecorded(context, jobId, environment)) {
    const mask = await maskOf(context, request.job);
    options.deployments.deploymentStarted(runView(recorder.live), jobId, environment.name, mask);
  }
  const reporter = new JobReporter(context, jobId, matrixJob.scope.workflow.path);
  const execution = options.executor.execute(request, reporter);
  const stop = stopWith(matrixJob, settings, execution);
  let outcome: JobOutcome;
  try {
    outcome = await execution.outcome;
  } catch (error) {
    options.report('runner.execute', error instanceof Error ? error : new Error(String(error)));
    outcome = { conclusion: 'failure', outputs: {} };
  } finally {
    stop();
  }
  await reporter.close();
  await notifyPushed(context, jobId);
  const { isLogLost } = reporter;
  const conclusion = isLogLost && outcome.conclusion === 'success' ? 'failure' : outcome.conclusion;
  const isForgiven = conclusion === 'failure' && settings.isContinuingOnError && !isLogLost;
  const result = isForgiven ? 'success' : conclusion;
  const { outputs, environmentUrl, hasTimedOut } = outcome;
  const ended = { conclusion, result, hasTimedOut, outputs, environmentUrl };
  recorder.record({ type: 'job.completed', jobId, ...ended });
  if (isRecorded(context, jobId, environment)) {
    const mask = await maskOf(context, request.job);
    const run = runView(recorder.live);
    options.deployments.deploymentEnded(run, jobId, environment.name, environmentUrl, mask);
  }
  assert(recorder.live.jobs.get(jobId)?.result === result, 'the job is completed');
  return { result, outputs, hasTimedOut };
}

/** Whether the job is a deployment that the ledger records. */
function isRecorded(
  { options, recorder }: RunContext,
  jobId: string,
  environment: JobSettings['environment'],
): environment is NonNullable<JobSettings['environment']> {
  if (environment?.isDeployment !== true) return false;
  return options.deployments.isRecorded(runView(recorder.live), jobId, environment.name);
}

/**
 * Hides the secrets of the run; where there are too many of them, the whole text. The name of the environment
 * is shown where it stands in the file as it is: `production` is none for being the value of some secret.
 */
async function maskOf(
  { masks, options }: RunContext,
  { environment }: StepsJobDefinition,
): Promise<TextMask> {
  const written = literalText(valueOf(environment, 'name') ?? environment);
  try {
    const masker = await masks.masker();
    return (text) => (text === written ? text : masker.mask(text));
  } catch (error) {
    options.report('runner.masks', error instanceof Error ? error : new Error(String(error)));
    return () => '***';
  }
}

/** What steps pushed stands in the project's repository before the job is seen to have ended. */
async function notifyPushed(context: RunContext, jobId: string): Promise<void> {
  try {
    const names = (await context.sandbox.takePushed()).map(({ name }) => name);
    if (names.length === 0) return;
    const shown = names.slice(0, PUSHED_NAMES_MAX).join(', ');
    const more =
      names.length > PUSHED_NAMES_MAX ? ` and ${names.length - PUSHED_NAMES_MAX} more` : '';
    const place = `refs/runner/${context.recorder.runId}/`;
    const message = `Pushed to ${place} of the project, not to its remote: ${shown}${more}`;
    context.annotate({ level: 'notice', message, jobId });
  } catch (error) {
    context.options.report(
      'runner.push',
      error instanceof Error ? error : new Error(String(error)),
    );
    const text = error instanceof AppError ? error.message : 'an internal error';
    const message = `What was pushed did not arrive in the project: ${text}`;
    context.annotate({ level: 'error', message, jobId });
  }
}

/**
 * Hands cancels on to the execution; a job that a cancelled run waits for is killed after its
 * cancel-timeout-minutes, also when its `if` resists.
 */
function stopWith(matrixJob: NodeJob, settings: JobSettings, execution: JobExecution): () => void {
  let timer: NodeJS.Timeout | undefined;
  const kill = (): void => execution.cancel('force');
  const startTimer = (): void => {
    timer ??= setTimeout(kill, settings.cancelTimeoutMs);
  };
  const leaveScope = matrixJob.scope.cancellation.onCancel(startTimer);
  const leaveMatrixJob = matrixJob.cancellation.onCancel((kind) => {
    startTimer();
    execution.cancel(kind);
  });
  return () => {
    clearTimeout(timer);
    leaveScope();
    leaveMatrixJob();
  };
}

/** Nobody waits for it; what stays is removed at the next start. */
function removeJobDir(context: RunContext, jobDir: string): void {
  // It mostly holds a script or two. The thread pool is for what takes its time.
  if (removeSmallTree(jobDir)) return;
  rm(jobDir, { recursive: true, force: true, maxRetries: 3 }).catch((error: unknown) => {
    const cause = new AppError('STORE_UNAVAILABLE', "a job's folder was not removed", {}, error);
    context.options.report('runner.job-folder', cause);
  });
}
