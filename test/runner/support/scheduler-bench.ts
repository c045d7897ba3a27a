import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createArtifactStore } from '../../../src/runner/execution/artifacts/artifact-store.ts';
import { createGit } from '../../../src/runner/host/git/run-git.ts';
import { createWorkflowCatalog } from '../../../src/runner/host/project/workflow-catalog.ts';
import { createSandboxFactory } from '../../../src/runner/host/sandbox/sandbox-factory.ts';
import type { JobExecutor } from '../../../src/runner/model/execution.ts';
import type {
  ArtifactStore,
  ProblemReporter,
  SecretSource,
} from '../../../src/runner/model/ports.ts';
import type { Annotation } from '../../../src/runner/model/run.ts';
import type { RunStore } from '../../../src/runner/model/storage.ts';
import { createRunService, type Scheduler } from '../../../src/runner/scheduler/run-service.ts';
import {
  defaultSchedulerLimits,
  type SchedulerLimits,
  type SchedulerOptions,
} from '../../../src/runner/scheduler/scheduler-options.ts';
import { openRunStore } from '../../../src/runner/storage/run-store.ts';
import { IdSource } from '../../../src/shared/ids.ts';
import { systemClock } from '../../../src/shared/time/clock.ts';
import { EventRecorder } from './event-recorder.ts';
import { createRunnerProject, type RunnerProject } from './runner-project.ts';

/** Ladder of cancels that tests wait for: the order is the same, only faster. */
const FAST_KILL_ESCALATION = { interruptMs: 300, terminateMs: 200 };

export type BenchOptions = {
  readonly project?: RunnerProject | undefined;
  readonly workflows?: Readonly<Record<string, string>> | undefined;
  readonly limits?: Partial<SchedulerLimits> | undefined;
  readonly executor?: JobExecutor | undefined;
  readonly secrets?: SecretSource | undefined;
  /** Wraps the store on disk. */
  readonly storeOf?: ((store: RunStore) => RunStore) | undefined;
  readonly overrides?: Partial<SchedulerOptions> | undefined;
};

export type Bench = AsyncDisposable & {
  readonly service: Scheduler;
  readonly events: EventRecorder;
  readonly project: RunnerProject;
  readonly store: RunStore;
  readonly problems: readonly string[];
  readonly deployments: readonly string[];
  /** Shuts down and closes the store; the project stays. */
  readonly stop: () => Promise<void>;
  /** Annotations of level error. */
  readonly errors: (runId: string) => readonly Annotation[];
  /** Starts a run and waits for its end. */
  readonly run: (
    workflow: string,
    inputs?: Readonly<Record<string, string>>,
  ) => Promise<Awaited<ReturnType<EventRecorder['completed']>>>;
};

/** Secrets and variables by environment ('' for all), as the real source merges them. */
export function secretsFrom(
  secrets: Readonly<Record<string, Readonly<Record<string, string>>>>,
  variables: Readonly<Record<string, Readonly<Record<string, string>>>> = {},
): SecretSource & { readonly reads: { jobId: string; names: readonly string[] }[] } {
  const reads: { jobId: string; names: readonly string[] }[] = [];
  return {
    reads,
    secretsFor: ({ jobId, environment, names }) => {
      const all = { ...secrets[''], ...secrets[environment] };
      const entries = Object.entries(all).filter(([name]) => names?.includes(name) ?? true);
      reads.push({ jobId, names: entries.map(([name]) => name) });
      return Promise.resolve(Object.fromEntries(entries));
    },
    variablesFor: (environment) => Promise.resolve({ ...variables[''], ...variables[environment] }),
    environments: () => Promise.resolve(Object.keys(secrets).filter((name) => name !== '')),
  };
}

/** The whole scheduler on the real store, catalog, sandboxes and executor, without its wire. */
export async function createBench(options: BenchOptions = {}): Promise<Bench> {
  const project = options.project ?? (await createRunnerProject(options.workflows));
  const stateDir = join(project.dir, '.runner');
  const problems: string[] = [];
  const deployments: string[] = [];
  const report = (event: string, error: Error): void => {
    problems.push(`${event}: ${error.message}`);
  };
  const onDisk = await openRunStore({ stateDir, diskFloorBytes: 0, report });
  const store = options.storeOf?.(onDisk) ?? onDisk;
  const events = new EventRecorder();
  const artifacts = await createArtifactStore(join(stateDir, 'runs'));
  const service = await createRunService({
    catalog: createWorkflowCatalog(project.dir),
    store,
    sandboxes: createSandboxFactory({
      projectDir: project.dir,
      stateDir,
      root: { base: `${project.dir}-sandboxes`, dir: join(`${project.dir}-sandboxes`, 'project') },
      git: createGit(project.dir),
      report,
    }),
    executor: options.executor ?? (await createRealExecutor(stateDir, artifacts, report)),
    secrets: options.secrets ?? secretsFrom({}),
    artifacts,
    deployments: {
      isRecorded: () => true,
      deploymentStarted: (_run, jobId, environment) => {
        deployments.push(`started ${jobId} ${environment}`);
      },
      deploymentEnded: (run, jobId, environment, url) => {
        const job = run.jobs.find((each) => each.id === jobId);
        deployments.push(`ended ${jobId} ${environment} ${job?.conclusion} ${url ?? '-'}`);
      },
    },
    events,
    clock: systemClock,
    ids: new IdSource(systemClock),
    limits: { ...defaultSchedulerLimits, ...options.limits },
    projectDir: project.dir,
    report,
    retention: {
      succeeded: () => undefined,
      failed: (error) => problems.push(`retention: ${String(error)}`),
    },
    ...options.overrides,
  });
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= service.shutdown().then(() => store.close());
    return stopped;
  };
  return {
    service,
    events,
    project,
    store,
    problems,
    deployments,
    stop,
    errors: (runId) => service.annotations(runId).filter(({ level }) => level === 'error'),
    run: async (workflow, inputs) => {
      const { run } = await service.start({
        workflow,
        ...(inputs === undefined ? {} : { inputs }),
      });
      return await events.completed(run.id);
    },
    [Symbol.asyncDispose]: async () => {
      await stop();
      await rm(`${project.dir}-sandboxes`, { recursive: true, force: true });
      if (options.project === undefined) await project[Symbol.asyncDispose]();
    },
  };
}

/** Loaded when wanted: most tests of the scheduler do without processes. */
async function createRealExecutor(
  stateDir: string,
  artifacts: ArtifactStore,
  report: ProblemReporter,
): Promise<JobExecutor> {
  const { createCacheStore } = await import('../../../src/runner/execution/cache/cache-store.ts');
  const { createJobExecutor } = await import('../../../src/runner/execution/job-run.ts');
  return createJobExecutor({
    artifacts,
    cache: await createCacheStore(join(stateDir, 'cache')),
    environment: process.env,
    killEscalation: FAST_KILL_ESCALATION,
    onProblem: report,
  });
}

/** The whole text of a stream of chunks. */
export async function textOf(chunks: AsyncIterable<Uint8Array | string>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(Buffer.from(chunk));
  return Buffer.concat(parts).toString('utf8');
}
