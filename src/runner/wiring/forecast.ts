import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import type { LocalContext } from '../cli/local-runner.ts';
import type { Forecast, ForeseenProblem } from '../cli/start-plan.ts';
import { createGit, originRepository } from '../host/git/run-git.ts';
import { parseUses, referenceIn } from '../language/action-reference.ts';
import { chosenMatrixJobs, type MatrixChoice } from '../language/matrix.ts';
import { hasExpression } from '../language/template-access.ts';
import type { NeededAction } from '../model/run.ts';
import type {
  JobDefinition,
  StepDefinition,
  StepsJobDefinition,
  Template,
  Workflow,
} from '../model/workflow.ts';
import { foreignLabel, labelsOf } from '../scheduler/host-labels.ts';
import { STATE_DIR } from '../storage/endpoint-file.ts';
import { configuredRepository } from '../sync/config-store.ts';
import { builtInProblem } from './foreseen-steps.ts';
import { matrixJobsShown, valuesShown } from './foreseen-values.ts';
import { openActions } from './wiring-basis.ts';

const EXIT_FAILURE = 1;
const DEFINITIONS: readonly string[] = ['action.yml', 'action.yaml', 'Dockerfile'];

/** What becomes of a job, as far as the files say: `maybe` is under a condition, or forgiven. */
type Fate = 'runs' | 'maybe' | 'fails' | 'leftOut' | 'skipped';

/**
 * What will keep jobs of a workflow from running or from succeeding, and the exit code that follows: containers,
 * matrices that cannot be, called workflows, actions and runners that are not there. Files are looked at, no
 * network, and of expressions those of a matrix alone: what stands under a condition may not come to it.
 */
export async function forecastOf(
  context: LocalContext,
  workflow: Workflow,
  choice?: MatrixChoice,
): Promise<Forecast> {
  const { missing, served } = await actionsOf(context, workflow);
  const problems: ForeseenProblem[] = [];
  let name: Promise<string> | undefined;
  const own = (): Promise<string> => (name ??= repositoryOf(context));
  const fates = await fatesOf(workflow, '', { context, choice, missing, served, own, problems });
  const all = [...fates.values()];
  const isNothing =
    all.includes('leftOut') && !all.some((fate) => fate === 'runs' || fate === 'maybe');
  const exitCode = all.includes('fails') || isNothing ? EXIT_FAILURE : 0;
  return { exitCode, problems };
}

type Sight = {
  readonly context: LocalContext;
  /** The matrix jobs that were asked for. */
  readonly choice: MatrixChoice | undefined;
  readonly missing: ReadonlySet<string>;
  /** Actions that this runner does itself. */
  readonly served: ReadonlySet<string>;
  /** `owner/name` of the project. */
  readonly own: () => Promise<string>;
  readonly problems: ForeseenProblem[];
};

async function fatesOf(
  workflow: Workflow,
  prefix: string,
  sight: Sight,
): Promise<ReadonlyMap<string, Fate>> {
  const fates = new Map<string, Fate>();
  const waiting = new Map(workflow.jobs);
  // Needs stand in any order; a circle of them is refused when the file is read.
  while (waiting.size > 0) {
    for (const [key, job] of waiting) {
      if (job.needs.some((need) => waiting.has(need))) continue;
      waiting.delete(key);
      const isKept = job.if === undefined && job.needs.some((need) => isStopping(fates.get(need)));
      fates.set(key, isKept ? 'skipped' : await fateOf(job, prefix + key, sight));
    }
  }
  return fates;
}

function isStopping(fate: Fate | undefined): boolean {
  return fate === 'fails' || fate === 'leftOut' || fate === 'skipped';
}

async function fateOf(job: JobDefinition, jobId: string, sight: Sight): Promise<Fate> {
  const isForgiven = job.kind === 'steps' && job.continueOnError !== undefined;
  const isSure = job.if === undefined && !isForgiven;
  const report = (message: string, isCertain = isSure): Fate => {
    sight.problems.push({ jobId, message, isSure: isCertain });
    return isCertain ? 'fails' : 'maybe';
  };
  const matrixJobs = shownOrRefused(job.strategy?.matrix, sight.choice);
  // That there is no job to run is forgiven by nothing.
  if (typeof matrixJobs === 'string') return report(matrixJobs, job.if === undefined);
  if (job.kind === 'call') {
    if (job.missing !== undefined) return report(job.missing);
    const inner = [...(await fatesOf(job.called, `${jobId}/`, sight)).values()];
    if (inner.includes('fails')) return isSure ? 'fails' : 'maybe';
    return inner.every((fate) => isStopping(fate)) ? 'leftOut' : 'runs';
  }
  const labels = await foreignLabels(job, matrixJobs, sight);
  const foreign = labels.filter((label) => label !== undefined);
  if (foreign.length > 0 && foreign.length === labels.length) {
    const message = `left out: it asks for '${foreign[0]}', which is another operating system`;
    sight.problems.push({ jobId, message, isSure });
    // Whatever its condition.
    return 'leftOut';
  }
  if (foreign.length > 0) {
    const names = [...new Set(foreign)].map((label) => `'${label}'`).join(', ');
    const part = `${foreign.length} of its ${labels.length} matrix jobs`;
    sight.problems.push({ jobId, message: `left out: ${part}, which ask for ${names}`, isSure });
  }
  for (const [name, template] of Object.entries({
    container: job.container,
    services: job.services,
  })) {
    if (template === undefined) continue;
    const message = `'${name}' needs a container, and steps run on this host only`;
    if (!hasExpression(template)) return report(message);
    sight.problems.push({ jobId, message, isSure: false });
    return 'maybe';
  }
  const left = matrixJobs?.filter((_, index) => labels[index] === undefined);
  return await stepsFate(job.steps, { jobId, isSure, matrixJobs: left }, sight);
}

/** For each matrix job that is shown the label that leaves it out; undefined for one that runs. */
async function foreignLabels(
  job: StepsJobDefinition,
  matrixJobs: readonly JsonObject[] | undefined,
  { context: { settings } }: Sight,
): Promise<readonly (string | undefined)[]> {
  if (settings.runsOn === 'any') return [];
  const values = (await valuesShown(job.runsOn, matrixJobs)) ?? [];
  return values.map((value) => foreignLabel(labelsOf(value), process.platform));
}

type ShownJob = {
  readonly jobId: string;
  readonly isSure: boolean;
  readonly matrixJobs: readonly JsonObject[] | undefined;
};

async function stepsFate(
  steps: readonly StepDefinition[],
  { jobId, isSure: isJobSure, matrixJobs }: ShownJob,
  sight: Sight,
): Promise<Fate> {
  let fate: Fate = isJobSure ? 'runs' : 'maybe';
  for (const step of steps.flatMap(stepsIn)) {
    if (step.kind !== 'uses') continue;
    const message =
      actionProblem(step.uses.trim(), steps, sight) ??
      (isServed(step.uses, sight) ? await builtInProblem(step, matrixJobs, sight.own) : undefined);
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

function isServed(uses: string, { served }: Sight): boolean {
  const reference = referenceIn(uses.trim());
  return reference?.kind === 'remote' && served.has(`${reference.repository}@${reference.ref}`);
}

/** As `github.repository` names it. */
async function repositoryOf({ workspace }: LocalContext): Promise<string> {
  return (
    (await configuredRepository(join(workspace, STATE_DIR, 'sync'))) ??
    (await originRepository(createGit(workspace))) ??
    `local/${basename(workspace)}`
  );
}

function shownOrRefused(
  matrix: Template | undefined,
  choice: MatrixChoice | undefined,
): readonly JsonObject[] | undefined | string {
  try {
    const shown = matrixJobsShown(matrix);
    return shown === undefined ? undefined : chosenMatrixJobs(shown, choice);
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

/** Of other repositories, nested ones left to the run; none are missing where runs fetch what they miss. */
async function actionsOf(
  { settings, workspace }: LocalContext,
  workflow: Workflow,
): Promise<Pick<Sight, 'missing' | 'served'>> {
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
  const namesOf = (wanted: NeededAction['source']): ReadonlySet<string> =>
    new Set(actions.flatMap(({ name, source }) => (source === wanted ? [name] : [])));
  const missing = settings.fetchActions ? new Set<string>() : namesOf('missing');
  return { missing, served: namesOf('built-in') };
}

function stepsIn(step: StepDefinition): readonly StepDefinition[] {
  return step.kind === 'parallel' ? step.steps : [step];
}
