import { AppError } from '../../shared/app-error.ts';
import {
  evaluateBoolean,
  evaluateNumber,
  evaluateTemplate,
  evaluateText,
} from '../evaluation/evaluate.ts';
import type { ExpressionScope } from '../model/execution.ts';
import type { StepsJobDefinition, Template } from '../model/workflow.ts';
import { concurrencySetting, type ConcurrencySetting } from './concurrency-groups.ts';
import { labelsOf } from './host-labels.ts';
import type { MatrixJobContexts } from './run-context.ts';

const TIMEOUT_MINUTES_DEFAULT = 360;
/** Source: GitHub's documentation, "Workflow cancellation reference": 5 minutes. */
const CANCEL_TIMEOUT_MINUTES_DEFAULT = 5;
const MINUTE_MS = 60_000;
/** What a timer of Node can wait. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** What the keys of a job come to before it starts. */
export type JobSettings = {
  readonly labels: readonly string[];
  readonly timeoutMs: number;
  readonly cancelTimeoutMs: number;
  readonly isContinuingOnError: boolean;
  readonly environment: { readonly name: string; readonly isDeployment: boolean } | undefined;
};

/** Errors: INVALID_WORKFLOW. */
export async function evaluateJobSettings(
  job: StepsJobDefinition,
  contexts: MatrixJobContexts,
): Promise<JobSettings> {
  const scope = { contexts };
  return {
    labels: labelsOf(await evaluateTemplate(job.runsOn, scope)),
    timeoutMs: await minutes(job.timeoutMinutes, TIMEOUT_MINUTES_DEFAULT, scope),
    cancelTimeoutMs: await minutes(job.cancelTimeoutMinutes, CANCEL_TIMEOUT_MINUTES_DEFAULT, scope),
    isContinuingOnError:
      job.continueOnError !== undefined && (await evaluateBoolean(job.continueOnError, scope)),
    environment: await environmentOf(job.environment, scope),
  };
}

/** Errors: INVALID_WORKFLOW. */
export async function evaluateConcurrency(
  template: Template | undefined,
  scope: ExpressionScope,
): Promise<ConcurrencySetting | undefined> {
  if (template === undefined) return undefined;
  return concurrencySetting(await evaluateTemplate(template, scope));
}

async function minutes(
  template: Template | undefined,
  unset: number,
  scope: ExpressionScope,
): Promise<number> {
  const value = template === undefined ? unset : await evaluateNumber(template, scope);
  if (!(value > 0)) {
    throw new AppError('INVALID_WORKFLOW', 'a timeout must be a positive number of minutes');
  }
  return Math.min(value * MINUTE_MS, TIMEOUT_MS_MAX);
}

/** Only what is known before the job; its url is evaluated when it ends. */
async function environmentOf(
  template: Template | undefined,
  scope: ExpressionScope,
): Promise<JobSettings['environment']> {
  if (template === undefined) return undefined;
  const fields = template.kind === 'mapping' ? fieldsOf(template) : new Map([['name', template]]);
  const name = fields.get('name');
  const deployment = fields.get('deployment');
  const text = name === undefined ? '' : await evaluateText(name, scope);
  if (text === '') return undefined;
  const isDeployment = deployment === undefined || (await evaluateBoolean(deployment, scope));
  return { name: text, isDeployment };
}

function fieldsOf(template: Template & { readonly kind: 'mapping' }): Map<string, Template> {
  return new Map(
    template.entries.flatMap(({ key, value }) =>
      key.kind === 'literal' ? [[String(key.value), value]] : [],
    ),
  );
}
