import { join } from 'node:path';
import { IdSource } from '../../shared/ids.ts';
import { systemClock } from '../../shared/time/clock.ts';
import type { LocalContext } from '../cli/local-runner.ts';
import type { PlanJob, PlanStep, StartPlan } from '../cli/start-plan.ts';
import { shownTemplate } from '../execution/state/shown-template.ts';
import { createGit } from '../host/git/run-git.ts';
import { createProjectHistory } from '../host/project/project-history.ts';
import { createWorkflowCatalog } from '../host/project/workflow-catalog.ts';
import { createSandboxFactory } from '../host/sandbox/sandbox-factory.ts';
import { sandboxRootOf } from '../host/sandbox/sandbox-root.ts';
import type { ProblemReporter, StartRequest } from '../model/ports.ts';
import type { StepDefinition, Workflow } from '../model/workflow.ts';
import { defaultSchedulerLimits } from '../scheduler/scheduler-options.ts';
import { prepareStart } from '../scheduler/start-request.ts';
import type { PlannedJob } from '../scheduler/state/journal-records.ts';
import { definitionAt } from '../scheduler/state/run-plan.ts';
import { STATE_DIR } from '../storage/endpoint-file.ts';
import { forecastOf } from './forecast.ts';
import { reporterOf } from './wiring-basis.ts';

/**
 * What a start would run, checked as the start itself would be. Nothing is written, locked or started, and no
 * stored secret or variable is read: what depends on them is shown as written.
 * Errors: those of RunService.start but those of its queue.
 */
export async function planStart(context: LocalContext, request: StartRequest): Promise<StartPlan> {
  const { workspace, logLevel, settings, environment } = context;
  const git = createGit(workspace);
  // Of the few things that can be wrong here; the logger takes longer to load than all else takes.
  const report: ProblemReporter = (event, error) => {
    const loaded = import('../../observability/logger.ts');
    void loaded.then(({ createLogger }) => reporterOf(createLogger(logLevel))(event, error));
  };
  const stateDir = join(workspace, STATE_DIR);
  const root = sandboxRootOf(workspace, settings.sandboxDir, environment);
  const { workflow, record, warnings } = await prepareStart(
    {
      catalog: createWorkflowCatalog(workspace),
      sandboxes: createSandboxFactory({ projectDir: workspace, stateDir, root, git, report }),
      history: createProjectHistory(git),
      secrets: {
        environments: () => Promise.resolve([]),
        variablesFor: () => Promise.resolve({}),
      },
      clock: systemClock,
      ids: new IdSource(systemClock),
      limits: defaultSchedulerLimits,
      projectDir: workspace,
    },
    // Their values would only be sealed.
    { ...request, secrets: undefined },
    () => ({ runNumber: 0, numericId: 0 }),
  );
  const { run, jobs } = record;
  const { name, fileName, trigger, inputs } = run;
  return {
    name,
    fileName,
    ...trigger,
    inputs,
    jobs: jobs.map((job) => planOfJob(workflow, job)),
    warnings,
    forecast: await forecastOf(context, workflow, request.matrix),
  };
}

function planOfJob(workflow: Workflow, { id, name, needs, matrix, node }: PlannedJob): PlanJob {
  const definition = definitionAt(workflow, node)?.definition;
  const steps = definition?.kind === 'steps' ? definition.steps.flatMap(stepsOf) : [];
  return { id, name, needs, matrix, if: definition?.if?.source, steps };
}

function stepsOf(step: StepDefinition): readonly PlanStep[] {
  if (step.kind === 'parallel') return step.steps.flatMap(stepsOf);
  const condition = step.if === undefined ? {} : { if: step.if.source };
  const uses = step.kind === 'uses' ? { uses: step.uses } : {};
  return [{ name: nameOf(step), ...uses, ...condition }];
}

function nameOf(step: Exclude<StepDefinition, { readonly kind: 'parallel' }>): string {
  if (step.name !== undefined) return shownTemplate(step.name);
  if (step.kind === 'uses') return step.uses;
  if (step.kind === 'run') return `Run ${shownTemplate(step.run).trim().split('\n')[0] ?? ''}`;
  return step.kind === 'cancel' ? `Cancel ${step.target}` : `Wait ${step.ids?.join(', ') ?? ''}`;
}
