import { AppError } from '../../shared/app-error.ts';
import { evaluateText } from '../evaluation/evaluate.ts';
import { resolveDispatchInputs, type ResolvedInputs } from '../language/dispatch-inputs.ts';
import { scriptInjectionWarnings } from '../language/references.ts';
import type { StartRequest, WorkflowFile } from '../model/ports.ts';
import type { Annotation, JsonObject, Trigger } from '../model/run.ts';
import type { Workflow, WorkflowSource } from '../model/workflow.ts';
import { dispatchEvent, githubContext, identityOf } from './github-context.ts';
import { isoTime } from './run-recorder.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import type { RunHead, RunRecord, RunRequest } from './state/journal-records.ts';
import { planOf, shortName, TOP } from './state/run-plan.ts';

const DISPATCH_EVENT = 'workflow_dispatch';
const ACTOR_DEFAULT = 'local';
const INJECTION_WARNINGS_MAX = 50;

type QueuedRecord = Extract<RunRecord, { readonly type: 'run.queued' }>;

export type PreparedStart = {
  readonly workflow: Workflow;
  /** What it was read from. */
  readonly sources: readonly WorkflowSource[];
  readonly record: QueuedRecord;
  readonly warnings: readonly string[];
};

/** Errors: INVALID_WORKFLOW with the first problems of the file. */
export function mustBeValid(
  file: Pick<WorkflowFile, 'workflow' | 'problems' | 'fileName'>,
): Workflow {
  if (file.workflow !== undefined) return file.workflow;
  const texts = file.problems.map(
    ({ file: other, line, column, message }) =>
      `${other ?? file.fileName}:${line}:${column}: ${message}`,
  );
  const message = texts.slice(0, 5).join('; ');
  throw new AppError('INVALID_WORKFLOW', message === '' ? 'The file is empty' : message, {
    fileName: file.fileName,
  });
}

/**
 * Checks a request and works out what its run is recorded with. `nextRunNumber` is called last, with the name of the file.
 * Errors: those of RunService.start but QUEUE_FULL and SHUTTING_DOWN.
 */
export async function prepareStart(
  options: SchedulerOptions,
  request: StartRequest,
  nextRunNumber: (fileName: string) => number,
): Promise<PreparedStart> {
  const { at: found, fork } = request;
  const file = found?.file ?? (await options.catalog.find(request.workflow));
  const workflow = mustBeValid(file);
  const eventName = request.event ?? DISPATCH_EVENT;
  const isDispatch = eventName === DISPATCH_EVENT;
  const inputs = await inputsOf(options, workflow, request, isDispatch);
  const { ref, strategy, allowPush } = request.sandbox ?? {};
  const resolved = found?.commit ?? (await options.sandboxes.resolve(ref, strategy));
  const trigger: Trigger = { event: eventName, ref: resolved.ref, sha: resolved.sha };
  const actor = request.actor ?? ACTOR_DEFAULT;
  const event = isDispatch
    ? dispatchEvent(identityOf(options), workflow, trigger.ref, actor, inputs.texts)
    : payloadOf(request.payload);
  const runRequest: RunRequest = {
    strategy,
    hasExplicitRef: ref !== undefined || found !== undefined,
    ...(found === undefined ? {} : { isAdopted: true }),
    ...(fork === undefined ? {} : { fork }),
    ...(allowPush === true ? { allowPush } : {}),
    ...(request.env === undefined ? {} : { env: request.env }),
    actor,
    eventName,
    inputs: inputs.typed,
    event,
  };
  const jobs = planOf(workflow, TOP, options.limits.jobsPerRunMax);
  const variables = await options.secrets.variablesFor('');
  const warnings = warningsOf(workflow, isDispatch);
  const at = isoTime(options.clock);
  const head = {
    id: options.ids.uuid(),
    workflow: workflow.name ?? workflow.fileName,
    fileName: workflow.fileName,
    runNumber: nextRunNumber(workflow.fileName),
    createdAt: at,
    trigger,
    ...(workflow.dispatchInputs.size === 0 ? {} : { inputs: inputs.texts }),
  };
  const name = await runName(options, workflow, head, runRequest, variables);
  const annotations: readonly Annotation[] = [
    ...warnings.map((message): Annotation => ({ level: 'warning', message })),
    ...injectionWarnings(workflow, ''),
  ];
  const run = { ...head, name };
  return {
    workflow,
    sources: file.sources ?? [],
    warnings,
    record: { type: 'run.queued', at, run, request: runRequest, jobs, annotations },
  };
}

async function inputsOf(
  options: SchedulerOptions,
  workflow: Workflow,
  request: StartRequest,
  isDispatch: boolean,
): Promise<ResolvedInputs> {
  const given = request.inputs ?? {};
  if (!isDispatch && Object.keys(given).length === 0) return { typed: {}, texts: {} };
  return resolveDispatchInputs(workflow, given, await options.secrets.environments());
}

/** Source: GitHub's documentation, "Workflow syntax": run-name sees github, inputs and vars. */
async function runName(
  options: SchedulerOptions,
  workflow: Workflow,
  head: Omit<RunHead, 'name'>,
  request: RunRequest,
  vars: JsonObject,
): Promise<string> {
  if (workflow.runName === undefined) return head.workflow;
  const github = githubContext({
    id: head.id,
    runNumber: head.runNumber,
    attempt: 1,
    workflow: workflow.name ?? workflow.path,
    workflowPath: workflow.path,
    trigger: head.trigger,
    request,
    identity: identityOf(options),
    hasToken: false,
  });
  const contexts = { github, inputs: request.inputs, vars };
  const name = shortName(await evaluateText(workflow.runName, { contexts }));
  return name.trim() === '' ? head.workflow : name;
}

function payloadOf(payload: unknown): JsonObject {
  const isMapping = typeof payload === 'object' && payload !== null && !Array.isArray(payload);
  return isMapping ? (payload as JsonObject) : {};
}

/** The scripts of the workflow and of those it calls that put in what others may choose. */
function injectionWarnings(workflow: Workflow, prefix: string): readonly Annotation[] {
  return Array.from(workflow.jobs.values())
    .flatMap((job): readonly Annotation[] => {
      const jobId = prefix + job.key;
      if (job.kind === 'call') return injectionWarnings(job.called, `${jobId}/`);
      const { path: file } = workflow;
      return scriptInjectionWarnings(job).map((message) => ({
        level: 'warning',
        message,
        file,
        jobId,
      }));
    })
    .slice(0, INJECTION_WARNINGS_MAX);
}

/** A workflow without the trigger is started all the same: that is what a local runner is for (§2.1). */
function warningsOf(workflow: Workflow, isDispatch: boolean): readonly string[] {
  const hasTrigger = workflow.triggers.some(({ event }) => event === DISPATCH_EVENT);
  return isDispatch && !hasTrigger
    ? [`${workflow.fileName} has no trigger workflow_dispatch; it was started all the same`]
    : [];
}
