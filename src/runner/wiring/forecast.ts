import { statSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { LocalContext } from '../cli/local-runner.ts';
import type { Forecast, ForeseenProblem } from '../cli/start-plan.ts';
import { parseUses } from '../language/action-reference.ts';
import { expandMatrix } from '../language/matrix.ts';
import { hasExpression, jsonFromTemplate } from '../language/template-access.ts';
import type { JobDefinition, StepDefinition, Template, Workflow } from '../model/workflow.ts';
import { foreignLabel, labelsOf } from '../scheduler/host-labels.ts';
import { STATE_DIR } from '../storage/endpoint-file.ts';
import { openActions } from './actions-wiring.ts';

const EXIT_FAILURE = 1;
const DEFINITIONS: readonly string[] = ['action.yml', 'action.yaml', 'Dockerfile'];

/** What becomes of a job, as far as the files say: `maybe` is under a condition, or forgiven. */
type Fate = 'runs' | 'maybe' | 'fails' | 'leftOut' | 'skipped';

/**
 * What will keep jobs of a workflow from running or from succeeding, and the exit code that follows: containers,
 * matrices that cannot be, called workflows, actions and runners that are not there. Files are looked at, no
 * network, and nothing is evaluated: what stands under a condition may not come to it.
 */
export async function forecastOf(context: LocalContext, workflow: Workflow): Promise<Forecast> {
  const missing = await missingActions(context, workflow);
  const problems: ForeseenProblem[] = [];
  const fates = fatesOf(workflow, '', { context, missing, problems });
  const all = [...fates.values()];
  const isNothing =
    all.includes('leftOut') && !all.some((fate) => fate === 'runs' || fate === 'maybe');
  const exitCode = all.includes('fails') || isNothing ? EXIT_FAILURE : 0;
  return { exitCode, problems };
}

type Sight = {
  readonly context: LocalContext;
  readonly missing: ReadonlySet<string>;
  readonly problems: ForeseenProblem[];
};

function fatesOf(workflow: Workflow, prefix: string, sight: Sight): ReadonlyMap<string, Fate> {
  const fates = new Map<string, Fate>();
  const waiting = new Map(workflow.jobs);
  // Needs stand in any order; a circle of them is refused when the file is read.
  while (waiting.size > 0) {
    for (const [key, job] of waiting) {
      if (job.needs.some((need) => waiting.has(need))) continue;
      waiting.delete(key);
      const isKept = job.if === undefined && job.needs.some((need) => isStopping(fates.get(need)));
      fates.set(key, isKept ? 'skipped' : fateOf(job, prefix + key, sight));
    }
  }
  return fates;
}

function isStopping(fate: Fate | undefined): boolean {
  return fate === 'fails' || fate === 'leftOut' || fate === 'skipped';
}

function fateOf(job: JobDefinition, jobId: string, sight: Sight): Fate {
  const isForgiven = job.kind === 'steps' && job.continueOnError !== undefined;
  const isSure = job.if === undefined && !isForgiven;
  const report = (message: string, fate: Fate): Fate => {
    sight.problems.push({ jobId, message, isSure });
    return isSure ? fate : 'maybe';
  };
  const matrix = matrixProblem(job.strategy?.matrix);
  if (matrix !== undefined) return report(matrix, 'fails');
  if (job.kind === 'call') {
    if (job.missing !== undefined) return report(job.missing, 'fails');
    const inner = [...fatesOf(job.called, `${jobId}/`, sight).values()];
    if (inner.includes('fails')) return isSure ? 'fails' : 'maybe';
    return inner.every((fate) => isStopping(fate)) ? 'leftOut' : 'runs';
  }
  const { settings } = sight.context;
  const labels = hasExpression(job.runsOn) ? [] : labelsOf(jsonFromTemplate(job.runsOn));
  const foreign = foreignLabel(labels, process.platform);
  if (foreign !== undefined && settings.runsOn !== 'any') {
    return report(
      `left out: it asks for '${foreign}', which is another operating system`,
      'leftOut',
    );
  }
  for (const [name, template] of Object.entries({
    container: job.container,
    services: job.services,
  })) {
    if (template === undefined) continue;
    const message = `'${name}' needs a container, and steps run on this host only`;
    if (!hasExpression(template)) return report(message, 'fails');
    sight.problems.push({ jobId, message, isSure: false });
    return 'maybe';
  }
  return stepsFate(job.steps, jobId, isSure, sight);
}

function stepsFate(
  steps: readonly StepDefinition[],
  jobId: string,
  isJobSure: boolean,
  sight: Sight,
): Fate {
  let fate: Fate = isJobSure ? 'runs' : 'maybe';
  for (const step of steps.flatMap(stepsIn)) {
    if (step.kind !== 'uses') continue;
    const message = actionProblem(step.uses.trim(), steps, sight);
    if (message === undefined) continue;
    const isSure = isJobSure && step.if === undefined && step.continueOnError === undefined;
    sight.problems.push({ jobId, message, isSure });
    if (isSure) fate = 'fails';
  }
  return fate;
}

function actionProblem(
  uses: string,
  steps: readonly StepDefinition[],
  { context, missing }: Sight,
): string | undefined {
  try {
    const reference = parseUses(uses);
    if (reference.kind === 'image') return undefined;
    if (reference.kind === 'remote') {
      const name = `${reference.repository}@${reference.ref}`;
      return missing.has(name)
        ? `the action ${name} is not here: \`runner actions fetch\` gets it`
        : undefined;
    }
    // What a checkout or a script puts elsewhere first is known by the run alone.
    const isMade = steps.some((step) => step.kind === 'uses' && step.with !== undefined);
    const dir = join(context.workspace, reference.path);
    const isHere = DEFINITIONS.some((file) => statSync(join(dir, file), { throwIfNoEntry: false }));
    return isHere || isMade ? undefined : `the action ${uses} is not in the project`;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

function matrixProblem(matrix: Template | undefined): string | undefined {
  if (matrix === undefined || hasExpression(matrix)) return undefined;
  try {
    expandMatrix(jsonFromTemplate(matrix));
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

/** Of other repositories, nested ones left to the run; none where runs fetch what they miss. */
async function missingActions(
  { settings, workspace }: LocalContext,
  workflow: Workflow,
): Promise<ReadonlySet<string>> {
  if (settings.fetchActions) return new Set();
  const uses = new Set<string>();
  const add = (current: Workflow): void => {
    for (const job of current.jobs.values()) {
      if (job.kind === 'call') add(job.called);
      else
        for (const step of job.steps.flatMap(stepsIn))
          if (step.kind === 'uses') uses.add(step.uses.trim());
    }
  };
  add(workflow);
  const library = openActions(settings, join(workspace, STATE_DIR));
  const needed = [{ uses: [...uses], path: workflow.path }];
  const { actions } = await library.collect(needed, workspace, 'none');
  return new Set(actions.flatMap(({ name, source }) => (source === 'missing' ? [name] : [])));
}

function stepsIn(step: StepDefinition): readonly StepDefinition[] {
  return step.kind === 'parallel' ? step.steps : [step];
}
