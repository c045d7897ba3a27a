import { join } from 'node:path';
import { IdSource } from '../../shared/ids.ts';
import { createArtifactStore } from '../execution/artifacts/artifact-store.ts';
import { createCacheStore } from '../execution/cache/cache-store.ts';
import { createJobExecutor } from '../execution/job-run.ts';
import type { ActionLibrary } from '../host/actions/action-library.ts';
import { type Git, originRepository } from '../host/git/run-git.ts';
import type { Supervision } from '../host/process/supervision.ts';
import { createProjectHistory } from '../host/project/project-history.ts';
import type { ToolRegistry } from '../host/tools/tool-registry.ts';
import type { EventPublisher } from '../model/events.ts';
import type { ForkIsolation } from '../model/isolation.ts';
import type { WorkflowCatalog } from '../model/ports.ts';
import type { SandboxFactory } from '../model/storage.ts';
import { createRunService, type Scheduler } from '../scheduler/run-service.ts';
import {
  type ProjectIdentity,
  type SchedulerLimits,
  defaultSchedulerLimits,
} from '../scheduler/scheduler-options.ts';
import type { ApprovedAuthors } from '../scheduler/triggers/approved-authors.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import type { SyncService } from '../sync/sync-service.ts';
import type { Foundation } from './foundation.ts';
import type { WiringBasis } from './wiring-basis.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

type SchedulerNeeds = {
  readonly git: Git;
  /** Where the project comes from, if that is known. */
  readonly identity: ProjectIdentity | undefined;
  readonly sandboxes: SandboxFactory;
  readonly isolation: ForkIsolation;
  readonly supervision: Supervision;
  readonly catalog: WorkflowCatalog;
  readonly events: EventPublisher;
  readonly authors: ApprovedAuthors;
  readonly tools: ToolRegistry;
  readonly actions: ActionLibrary;
};

/** The scheduler with all that runs jobs for it. Recovered runs go on from here. */
export async function openScheduler(
  basis: WiringBasis,
  { store, sync, secrets, sealer }: Foundation,
  needs: SchedulerNeeds,
): Promise<Scheduler> {
  const { settings, clock, workspace, environment, stateDir, runsDir, report, loops } = basis;
  const { git, identity, sandboxes, isolation, supervision, catalog } = needs;
  const { events, authors, tools, actions } = needs;
  const artifacts = await createArtifactStore(runsDir);
  const cache = await createCacheStore(join(stateDir, 'cache'));
  return createRunService({
    catalog,
    store,
    sandboxes,
    history: createProjectHistory(git),
    onApproved: (authorId) => authors.add(authorId),
    isolation,
    executor: createJobExecutor({
      artifacts,
      cache,
      environment,
      tools,
      actions,
      stepVariables: { passed: settings.passEnv, path: settings.stepPath },
      supervision,
      onProblem: report,
    }),
    secrets,
    sealer,
    artifacts,
    deployments: sync.deployments,
    events,
    clock,
    ids: new IdSource(clock),
    limits: limitsOf(settings),
    projectDir: workspace,
    report,
    retention: loops.loop('retention'),
    identity,
    strictCheckout: settings.strictCheckout,
    keepWorkspaces: settings.keepWorkspaces,
    runsOn: settings.runsOn,
    allowPush: settings.allowPush,
    actions,
  });
}

function limitsOf(settings: RunnerSettings): SchedulerLimits {
  return {
    ...defaultSchedulerLimits,
    runsInProgressMax: settings.maxConcurrentRuns,
    jobsInProgressMax: settings.maxConcurrentJobs,
    queuedRunsMax: settings.maxQueuedRuns,
    retainedRunsMax: settings.retainedRuns,
    retainedAgeMs: settings.retainedDays * DAY_MS,
    jobLogBytesMax: settings.maxJobLogBytes,
    shutdownTimeoutMs: settings.shutdownTimeoutMs,
  };
}

/**
 * What workflows see in `github`: the repository that the synchronisation names, else the one that the
 * project was cloned from. Nobody said that the token is for that one. Undefined when there is neither.
 */
export async function identityOf(
  settings: RunnerSettings,
  sync: SyncService,
  git: Git,
): Promise<ProjectIdentity | undefined> {
  const { owner, repo } = sync.getConfig().host;
  if (owner !== '' && repo !== '') {
    return identityAt(settings, `${owner}/${repo}`, settings.hostToken ?? '');
  }
  const repository = await originRepository(git);
  return repository === undefined ? undefined : identityAt(settings, repository, '');
}

function identityAt(settings: RunnerSettings, repository: string, token: string): ProjectIdentity {
  const apiUrl = settings.hostApiUrl.replace(/\/+$/, '');
  return {
    repository,
    serverUrl: settings.hostGitUrl.replace(/\/+$/, ''),
    apiUrl,
    graphqlUrl: apiUrl.endsWith('/v3') ? `${apiUrl.slice(0, -3)}/graphql` : `${apiUrl}/graphql`,
    token,
  };
}
