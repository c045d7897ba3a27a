import { AppError } from '../../shared/app-error.ts';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { resolveCallInputs } from '../evaluation/call-inputs.ts';
import { evaluateTemplate, evaluateText } from '../evaluation/evaluate.ts';
import { textOfValue } from '../language/expression-data.ts';
import { secretsNamedIn } from '../language/references.ts';
import type { CallJobDefinition } from '../model/workflow.ts';
import { groupKey } from './concurrency-groups.ts';
import { enterGroup } from './enter-group.ts';
import { evaluateConcurrency } from './job-settings.ts';
import {
  NO_SECRETS,
  type JobResult,
  type MatrixJobContexts,
  type NodeJob,
  type RunContext,
  type SecretProvider,
  type WorkflowScope,
} from './run-context.ts';
import { placeBelow } from './state/run-plan.ts';
import { concludeRun } from './state/run-state.ts';
import { matrixJobContexts, withToken } from './steps-matrix-job.ts';

type RunWorkflow = (
  context: RunContext,
  scope: WorkflowScope,
) => Promise<ReadonlyMap<string, JobResult>>;

/**
 * A job that calls a workflow: its jobs run as jobs of this run, with inputs and secrets of the call.
 * Errors: INVALID_WORKFLOW, INVALID_INPUTS before the first of them; a job of the call that the run
 * was to show is replaced by the caller's own.
 */
export async function runCallMatrixJob(
  context: RunContext,
  matrixJob: NodeJob,
  definition: CallJobDefinition,
  runWorkflow: RunWorkflow,
): Promise<JobResult> {
  if (definition.missing !== undefined) {
    throw new AppError('INVALID_WORKFLOW', definition.missing, { field: 'uses' });
  }
  const contexts = await matrixJobContexts(context, matrixJob, definition);
  const { github, vars } = contexts;
  const inputs = await resolveCallInputs(definition, { contexts }, { contexts: { github, vars } });
  const held = new Set(matrixJob.scope.heldGroups);
  const leaves: (() => void)[] = [];
  try {
    const { called } = definition;
    const settings = [
      await evaluateConcurrency(definition.concurrency, { contexts }),
      await evaluateConcurrency(called.concurrency, { contexts: { github, vars, inputs } }),
    ];
    for (const setting of settings) {
      if (setting === undefined) continue;
      const leave = await enterGroup(
        context,
        { ...matrixJob, scope: { ...matrixJob.scope, heldGroups: held } },
        setting,
      );
      if (leave === undefined) return completeCaller(context, matrixJob);
      leaves.push(leave);
      held.add(groupKey(setting.group));
    }
    const results = await runWorkflow(context, {
      workflow: called,
      place: placeBelow(matrixJob.jobId, matrixJob.name),
      inputs,
      secrets: secretsOfCall(matrixJob, definition, contexts),
      cancellation: matrixJob.cancellation,
      hasToken: contexts.github['token'] !== '' || called.permissions !== undefined,
      heldGroups: held,
    });
    const ended = [...results.values()];
    return {
      result: concludeRun(
        ended.map((each) => each.result),
        false,
      ),
      hasTimedOut: ended.some((each) => each.hasTimedOut === true),
      outputs: await outputsOf(context, matrixJob, definition, results, { github, vars, inputs }),
    };
  } finally {
    for (const leave of leaves.toReversed()) leave();
  }
}

/** The caller was cancelled before its jobs began: it stands for them. */
function completeCaller(context: RunContext, matrixJob: NodeJob): JobResult {
  const { jobId, name } = matrixJob;
  const { recorder } = context;
  const needs = matrixJob.definition.needs.map((key) => matrixJob.scope.place.idPrefix + key);
  const jobs = [{ id: jobId, name, needs, node: jobId }];
  recorder.record({ type: 'jobs.planned', node: jobId, jobs });
  const outputs = {};
  recorder.record({
    type: 'job.completed',
    jobId,
    conclusion: 'cancelled',
    result: 'cancelled',
    outputs,
  });
  return { result: 'cancelled', outputs };
}

/**
 * `inherit`: the caller's own. A mapping: its values, which see the caller's secrets; each job of the call
 * hides them all, with the secrets they are made of. None: none.
 */
function secretsOfCall(
  matrixJob: NodeJob,
  definition: CallJobDefinition,
  contexts: MatrixJobContexts,
): SecretProvider {
  const { secrets: template } = definition;
  if (template === 'inherit') return matrixJob.scope.secrets;
  if (template === undefined) return () => Promise.resolve(NO_SECRETS);
  return async ({ jobId }) => {
    const names = secretsNamedIn([template]);
    const own = await matrixJob.scope.secrets({ jobId, environment: '', names });
    const secrets = withToken(own.byName, contexts.github);
    const value = await evaluateTemplate(template, { contexts: { ...contexts, secrets } });
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw new AppError('INVALID_WORKFLOW', 'secrets: a mapping was expected');
    }
    const mapping: JsonObject = value as JsonObject;
    const texts = Object.entries(mapping).map(([name, each]) => [name, textOf(name, each)]);
    const byName = Object.fromEntries(texts) as Record<string, string>;
    return { byName, masks: [...own.masks, ...Object.values(own.byName)] };
  };
}

function textOf(name: string, value: JsonValue): string {
  if (typeof value === 'object' && value !== null) {
    throw new AppError('INVALID_WORKFLOW', `secrets: ${name} must be a text`);
  }
  return textOfValue(value);
}

/**
 * Source: GitHub's documentation, "Contexts": on.workflow_call.outputs sees github, jobs, vars, inputs. An
 * output that cannot be evaluated is left out, with an annotation: its jobs have ended already.
 */
async function outputsOf(
  context: RunContext,
  matrixJob: NodeJob,
  definition: CallJobDefinition,
  results: ReadonlyMap<string, JobResult>,
  contexts: Readonly<Record<string, JsonValue>>,
): Promise<Readonly<Record<string, string>>> {
  const jobs: JsonObject = Object.fromEntries(
    Array.from(results, ([key, { result, outputs }]) => [key, { result, outputs }]),
  );
  const outputs: [string, string][] = [];
  for (const [name, template] of definition.called.call?.outputs ?? []) {
    try {
      outputs.push([name, await evaluateText(template, { contexts: { ...contexts, jobs } })]);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const message = `Output '${name}' of the called workflow: ${error.message}`;
      context.annotate({ level: 'error', message, jobId: matrixJob.jobId });
    }
  }
  return Object.fromEntries(outputs);
}
