import { AppError } from '../../shared/app-error.ts';
import { workflowInfo } from '../language/workflow-info.ts';
import type { RunService, SecretSource, WorkflowCatalog } from '../model/ports.ts';
import { isRunId, type WorkflowRun } from '../model/run.ts';
import { LogSections } from './shared/log-sections.ts';
import { jobToShow } from './shared/render-run.ts';
import type { HomeView, RunView, WorkflowView } from './shared/views.ts';

/** All that the page has access to. */
export type PagePorts = {
  readonly runs: Pick<
    RunService,
    'list' | 'get' | 'logs' | 'annotations' | 'summary' | 'artifacts'
  >;
  readonly catalog: WorkflowCatalog;
  readonly secrets: Pick<SecretSource, 'environments'>;
};

const RUNS_SHOWN = 100;
const RUNS_OF_WORKFLOW = 50;
/** Lines of each step for readers without JavaScript. */
const TAIL_LINES = 200;

export interface PageViews {
  home(): Promise<HomeView>;
  /** Errors: those of WorkflowCatalog.find. */
  workflow(name: string): Promise<WorkflowView>;
  /** Errors: RUN_NOT_FOUND. */
  run(id: string): RunView;
  /** The last lines of the steps of a job; of the one that is shown when `jobId` names none. */
  tails(view: RunView, jobId: string | null): Promise<ReadonlyMap<number, readonly string[]>>;
}

export function createPageViews({ runs, catalog, secrets }: PagePorts): PageViews {
  return {
    home: async () => {
      const found = runs.list({ limit: RUNS_SHOWN + 1 });
      const now = new Date();
      return {
        kind: 'home',
        runs: found.slice(0, RUNS_SHOWN).map(withoutSteps),
        workflows: (await catalog.list()).map((file) => workflowInfo(file, now)),
        hasMore: found.length > RUNS_SHOWN,
      };
    },
    workflow: async (name) => {
      const info = workflowInfo(await catalog.find(name), new Date());
      const found = runs.list({ limit: RUNS_OF_WORKFLOW, workflow: info.fileName });
      const environments = await secrets.environments();
      return { kind: 'workflow', info, environments, runs: found.map(withoutSteps) };
    },
    run: (id) => {
      const run = isRunId(id) ? runs.get(id) : undefined;
      if (run === undefined) throw new AppError('RUN_NOT_FOUND', 'no run with this id');
      const annotations = runs.annotations(run.id);
      const summary = runs.summary(run.id);
      return { kind: 'run', run, annotations, summary, artifacts: runs.artifacts(run.id) };
    },
    tails: async ({ run }, jobId) => {
      const job = run.jobs.find(({ id }) => id === jobId) ?? jobToShow(run);
      const tails = new Map<number, string[]>();
      if (job === undefined) return tails;
      const sections = new LogSections((step, lines) => {
        tails.set(step, [...(tails.get(step) ?? []), ...lines]);
      });
      const decoder = new TextDecoder();
      for await (const part of runs.logs(run.id, { jobId: job.id, tail: TAIL_LINES })) {
        sections.push(typeof part === 'string' ? part : decoder.decode(part, { stream: true }));
      }
      return tails;
    },
  };
}

function withoutSteps(run: WorkflowRun): WorkflowRun {
  return { ...run, jobs: run.jobs.map((job) => ({ ...job, steps: [] })) };
}
