import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { evaluateText } from '../evaluation/evaluate.ts';
import { resolveDispatchInputs, type ResolvedInputs } from '../language/dispatch-inputs.ts';
import { assertChoosable } from '../language/matrix-choice.ts';
import { scriptInjectionWarnings } from '../language/references.ts';
import type { SecretSource, StartRequest, WorkflowFile } from '../model/ports.ts';
import type { Annotation, Trigger } from '../model/run.ts';
import type { SandboxFactory } from '../model/storage.ts';
import type { Workflow, WorkflowSource } from '../model/workflow.ts';
import { withChosenJobs } from './chosen-jobs.ts';
import { dispatchEvent, githubContext, identityOf, runIdOf } from './github-context.ts';
import { checkedValues, sealedSecrets } from './given-values.ts';
import { isoTime } from './run-recorder.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import type { RunHead, RunRecord, RunRequest } from './state/journal-records.ts';
import { planOf, shortName, TOP } from './state/run-plan.ts';
import {
  checkedEvent,
  dispatchedRef,
  manualEvent,
  type ManualEvent,
} from './triggers/manual-event.ts';
import { inputTexts, objectOf, textAt } from './triggers/payload.ts';

const DISPATCH_EVENT = 'workflow_dispatch';
const ACTOR_DEFAULT = 'local';
const INJECTION_WARNINGS_MAX = 50;

type QueuedRecord = Extract<RunRecord, { readonly type: 'run.queued' }>;

/** What a start is checked with. */
export type StartOptions = Pick<
  SchedulerOptions,
  'catalog' | 'history' | 'clock' | 'ids' | 'limits' | 'projectDir' | 'identity' | 'sealer'
> & {
  readonly sandboxes: Pick<SandboxFactory, 'resolve'>;
  readonly secrets: Pick<SecretSource, 'environments' | 'variablesFor'>;
};

export type PreparedStart = {
  readonly workflow: Workflow;
  /** What it was read from. */
  readonly sources: readonly WorkflowSource[];
  readonly record: QueuedRecord;
  readonly warnings: readonly string[];
};

/** How a run is numbered: among those of its workflow, and among all of the project. */
export type RunNumbers = { readonly runNumber: number; readonly numericId: number };

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
 * Checks a request and works out what its run is recorded with. `nextNumbers` is called last, with the name of the file.
 * Errors: those of RunService.start but QUEUE_FULL and SHUTTING_DOWN.
 */
export async function prepareStart(
  options: StartOptions,
  request: StartRequest,
  nextNumbers: (fileName: string) => RunNumbers,
): Promise<PreparedStart> {
  const { at: found, fork } = request;
  const file = found?.file ?? (await options.catalog.find(request.workflow));
  const workflow = withChosenJobs(mustBeValid(file), request.jobs);
  assertChoosable(workflow, request.matrix);
  const { event: eventName, payload } =
    request.isSelected === true ? selectedEvent(request) : checkedEvent(request);
  const isDispatch = eventName === DISPATCH_EVENT;
  const inputs = await inputsOf(options, workflow, request, isDispatch, payload);
  const { ref, strategy, allowPush } = request.sandbox ?? {};
  const resolved = found?.commit ?? (await options.sandboxes.resolve(ref, strategy));
  const actor = request.actor ?? textAt(payload ?? {}, 'sender', 'login') ?? ACTOR_DEFAULT;
  const made = await eventOf(options, workflow, request, { payload, resolved, actor, inputs });
  const trigger: Trigger = { event: eventName, ref: made.ref, sha: resolved.sha };
  const event = made.document;
  const id = options.ids.uuid();
  const given = checkedValues('variables', request.variables);
  const sealed = await sealedSecrets(options.sealer, id, request.secrets);
  const runRequest: RunRequest = {
    strategy,
    hasExplicitRef: ref !== undefined || found !== undefined,
    ...(found === undefined ? {} : { isAdopted: true }),
    ...(fork === undefined ? {} : { fork }),
    ...(allowPush === true ? { allowPush } : {}),
    ...(request.jobs === undefined ? {} : { jobs: request.jobs }),
    ...(request.matrix === undefined ? {} : { matrix: request.matrix }),
    ...(sealed === undefined ? {} : { sealed }),
    ...(request.variables === undefined ? {} : { variables: given }),
    ...(request.env === undefined ? {} : { env: request.env }),
    actor,
    eventName,
    inputs: inputs.typed,
    event,
  };
  const jobs = planOf(workflow, TOP, options.limits.jobsPerRunMax, request.matrix);
  const variables = { ...(await options.secrets.variablesFor('')), ...given };
  const warnings = [...warningsOf(workflow, isDispatch), ...made.warnings];
  const at = isoTime(options.clock);
  const head = {
    id,
    workflow: workflow.name ?? workflow.fileName,
    fileName: workflow.fileName,
    ...nextNumbers(workflow.fileName),
    createdAt: at,
    trigger,
    ...(workflow.dispatchInputs.size === 0 ? {} : { inputs: inputs.texts }),
  };
  const name = await runName(options, workflow, head, runRequest, variables);
  const annotations: readonly Annotation[] = [
    ...warnings.map((message): Annotation => ({ level: 'warning', message })),
    ...injectionWarnings(workflow),
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
  options: StartOptions,
  workflow: Workflow,
  request: StartRequest,
  isDispatch: boolean,
  payload: JsonObject | undefined,
): Promise<ResolvedInputs> {
  const named = isDispatch && request.isSelected !== true ? inputTexts(payload?.['inputs']) : {};
  const given = { ...named, ...request.inputs };
  if (!isDispatch && Object.keys(given).length === 0) return { typed: {}, texts: {} };
  return resolveDispatchInputs(workflow, given, await options.secrets.environments());
}

/** Source: GitHub's documentation, "Workflow syntax": run-name sees github, inputs and vars. */
async function runName(
  options: StartOptions,
  workflow: Workflow,
  head: Omit<RunHead, 'name'>,
  request: RunRequest,
  vars: JsonObject,
): Promise<string> {
  if (workflow.runName === undefined) return head.workflow;
  const github = githubContext({
    runId: runIdOf(head),
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

/** What the inbox and the schedule start: their documents are whole. */
function selectedEvent({ event = DISPATCH_EVENT, payload }: StartRequest): {
  readonly event: string;
  readonly payload: JsonObject;
} {
  return { event, payload: objectOf(payload as JsonValue) ?? {} };
}

/** The event as the run is recorded with it. Errors: those of manualEvent. */
async function eventOf(
  options: StartOptions,
  workflow: Workflow,
  request: StartRequest,
  given: {
    readonly payload: JsonObject | undefined;
    readonly resolved: { readonly ref: string; readonly sha: string };
    readonly actor: string;
    readonly inputs: ResolvedInputs;
  },
): Promise<ManualEvent> {
  const { payload, resolved, actor, inputs } = given;
  const isSelected = request.isSelected === true;
  if ((request.event ?? DISPATCH_EVENT) !== DISPATCH_EVENT) {
    if (!isSelected)
      return manualEvent(
        { ...options, identity: identityOf(options) },
        workflow,
        request,
        resolved,
        actor,
      );
    return { ref: resolved.ref, document: payload ?? {}, warnings: [] };
  }
  const ref = (isSelected ? undefined : dispatchedRef(payload)) ?? resolved.ref;
  const document = dispatchEvent(identityOf(options), workflow, ref, actor, inputs.texts);
  if (isSelected || payload === undefined) return { ref, document, warnings: [] };
  const warnings =
    request.event === undefined && !('inputs' in payload)
      ? [`A payload was given without an event: the run is one of ${DISPATCH_EVENT}`]
      : [];
  return {
    ref,
    document: { ...document, ...payload, inputs: document['inputs'] ?? null },
    warnings,
  };
}

/** The scripts of the workflow and of those it calls that put in what others may choose. */
function injectionWarnings(workflow: Workflow): readonly Annotation[] {
  // Of a workflow that several jobs call, those of the first.
  const found = new Map<string, Annotation>();
  const add = (current: Workflow, prefix: string): void => {
    for (const job of current.jobs.values()) {
      const jobId = prefix + job.key;
      if (job.kind === 'call') {
        add(job.called, `${jobId}/`);
        continue;
      }
      const { path: file } = current;
      for (const message of scriptInjectionWarnings(current, job)) {
        const key = `${file}\n${message}`;
        if (!found.has(key)) found.set(key, { level: 'warning', message, file, jobId });
      }
    }
  };
  add(workflow, '');
  return [...found.values()].slice(0, INJECTION_WARNINGS_MAX);
}

/** A workflow without the trigger is started all the same: that is what a local runner is for (§2.1). */
function warningsOf(workflow: Workflow, isDispatch: boolean): readonly string[] {
  const hasTrigger = workflow.triggers.some(({ event }) => event === DISPATCH_EVENT);
  return isDispatch && !hasTrigger
    ? [`${workflow.fileName} has no trigger workflow_dispatch; it was started all the same`]
    : [];
}
