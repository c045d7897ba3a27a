import { join } from 'node:path';
import type { Logger } from '../observability/logger.ts';
import { assert } from '../shared/assert.ts';
import type { Clock } from '../shared/clock.ts';
import { IdSource } from '../shared/ids.ts';
import { readOrMakeApiToken } from './api-token-file.ts';
import { EventHub } from './api/event-hub.ts';
import { IdempotencyKeys } from './api/idempotency.ts';
import { InboxEvents } from './api/inbox-events.ts';
import { LogFollower } from './api/log-follower.ts';
import { Schedule } from './api/schedule.ts';
import { STATE_DIR } from './endpoint-file.ts';
import { EventFan } from './event-fan.ts';
import { createArtifactStore } from './execution/artifacts/artifact-store.ts';
import { createCacheStore } from './execution/cache/cache-store.ts';
import { createJobExecutor } from './execution/job-executor.ts';
import { originRepository } from './git/origin-repository.ts';
import { createGit } from './git/run-git.ts';
import { createForkIsolation } from './isolation/fork-isolation.ts';
import { createWorkflowCatalog } from './language/workflow-catalog.ts';
import type { EventPublisher } from './model/events.ts';
import type { ForkIsolation } from './model/isolation.ts';
import type { ProblemReporter, WorkflowCatalog } from './model/ports.ts';
import type { RunStore, SandboxFactory } from './model/storage.ts';
import { ownSecretsOf } from './own-secrets.ts';
import { createSupervision, type Supervision } from './process/supervision.ts';
import { RunnerMetrics } from './runner-metrics.ts';
import { createSandboxFactory } from './sandbox/sandbox-factory.ts';
import { createRunService, type Scheduler } from './scheduler/run-service.ts';
import {
  defaultSchedulerLimits,
  type ProjectIdentity,
  type SchedulerLimits,
} from './scheduler/scheduler-options.ts';
import { MasterKey, userConfigDir } from './secrets/key-source.ts';
import type { SecretService } from './secrets/secret-api.ts';
import { createSecretService } from './secrets/secret-service.ts';
import { createTextSealer } from './secrets/text-sealer.ts';
import type { RunnerSettings } from './settings.ts';
import { openJsonlFile } from './storage/jsonl-file.ts';
import { openRunStore } from './storage/run-store.ts';
import { createSyncService, type SyncService } from './sync/sync-service.ts';
import { openApprovedAuthors, type ApprovedAuthors } from './triggers/approved-authors.ts';

export type PartsOptions = {
  readonly logger: Logger;
  readonly version: string;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute. */
  readonly workspace: string;
  readonly pingMs?: number | undefined;
  /** Whether the first job is likely to come at once: what it needs is started beside the rest. */
  readonly isEager?: boolean | undefined;
  /** Is told of every event too, after the streams: the command line. */
  readonly events?: EventPublisher | undefined;
};

/** Everything behind the listeners. */
export type RunnerParts = {
  readonly workspace: string;
  readonly version: string;
  readonly logger: Logger;
  /** Below it the artifacts lie. */
  readonly runsDir: string;
  readonly catalog: WorkflowCatalog;
  readonly runs: Scheduler;
  readonly hub: EventHub;
  readonly follower: LogFollower;
  readonly secrets: SecretService;
  readonly sync: SyncService;
  readonly keys: IdempotencyKeys;
  readonly inboxEvents: InboxEvents;
  readonly schedule: Schedule | undefined;
  readonly metrics: RunnerMetrics;
  /**
   * The token that opens the API: RUNNER_API_TOKEN, else the one of `.runner/api-token`. A secret of the
   * runner's own, which no job may see and every job's log must mask.
   */
  readonly apiToken: string;
  /** Must whoever changes something over the API show the token, from wherever the call comes? */
  readonly isTokenDemanded: () => boolean;
  /** Closes the stores, after the runs were shut down. */
  stop(): Promise<void>;
};

const DAY_MS = 24 * 60 * 60 * 1000;
const KEYS_ROTATE_BYTES = 4 * 1024 * 1024;

/** A thing to be closed when a later one fails, and at the end, in the order given here. */
type Closing = () => Promise<void>;

/**
 * Opens and wires all parts of one workspace.
 * Errors: STORE_UNAVAILABLE when another runner has it, and those of each part; what was opened is
 * closed again.
 */
export async function startParts(
  settings: RunnerSettings,
  options: PartsOptions,
): Promise<RunnerParts> {
  const closings: Closing[] = [];
  const stop = async (): Promise<void> => {
    for (let close = closings.pop(); close !== undefined; close = closings.pop()) await close();
  };
  try {
    return await wire(settings, options, closings, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

async function wire(
  settings: RunnerSettings,
  options: PartsOptions,
  closings: Closing[],
  stop: () => Promise<void>,
): Promise<RunnerParts> {
  const { logger, clock, workspace, version } = options;
  const report = reporterOf(logger);
  const supervision = createSupervision(report);
  closings.push(() => supervision.close());
  if (options.isEager === true) supervision.warmUp();
  const stateDir = join(workspace, STATE_DIR);
  const runsDir = join(stateDir, 'runs');
  const store = await openRunStore({ stateDir, diskFloorBytes: settings.diskFloorBytes, report });
  closings.push(() => store.close());
  const apiToken = settings.apiToken ?? (await readOrMakeApiToken(stateDir));
  const sync = await openSync(settings, options, stateDir, report);
  closings.push(() => sync.close());
  const secrets = await openSecrets(settings, options, stateDir, sync, report);
  closings.push(() => secrets.close());
  // A fresh clone has the vault, but not yet its mirror.
  await secrets.refreshVault({ userAgent: 'start of the runner' });
  const keys = await openKeys(stateDir, clock, report, closings);
  const catalog = createWorkflowCatalog(workspace);
  const announcing = announcers(settings, options, store);
  const { hub, follower, metrics } = announcing;
  closings.push(() => Promise.resolve(hub.close()));
  const more = options.events === undefined ? [] : [options.events];
  const events = new EventFan([hub, follower, metrics, ...more]);
  const sandboxes = createSandboxFactory({
    projectDir: workspace,
    sandboxesDir: join(stateDir, 'sandboxes'),
    git: createGit(workspace),
    report,
  });
  const authors = await openApprovedAuthors(join(stateDir, 'approved-authors'));
  const isolation = await createForkIsolation({
    projectDir: workspace,
    marksDir: join(stateDir, 'fork-folders'),
    report,
  });
  const basis = {
    store,
    catalog,
    secrets,
    sync,
    events,
    stateDir,
    runsDir,
    report,
    sandboxes,
    authors,
    isolation,
    supervision,
  };
  const runs = await openScheduler(settings, options, basis);
  announcing.begin(runs);
  closings.push(() => runs.shutdown());
  sync.deployments.settleOrphans((id) => {
    const run = runs.get(id);
    return run !== undefined && run.completedAt === undefined;
  });
  const schedule = settings.enableSchedule ? new Schedule(catalog, runs, clock, report) : undefined;
  schedule?.start();
  const inboxEvents = new InboxEvents({
    catalog,
    catalogOf: (dir) => createWorkflowCatalog(dir, workspace),
    runs,
    sandboxes,
    fetcher: sync.commitFetcher,
    forkApproval: settings.forkApproval,
    authors,
    isolation,
  });
  const about = { workspace, version, logger, runsDir };
  const services = { catalog, runs, secrets, sync, keys, inboxEvents, schedule };
  const credential = { apiToken, isTokenDemanded: () => isolation.isInUse };
  return { ...about, ...services, ...credential, hub, follower, metrics, stop };
}

/**
 * The secrets alone, with the lock of the workspace, for programs that run nothing.
 * Errors: as startParts.
 */
export async function startSecrets(
  settings: RunnerSettings,
  options: PartsOptions,
): Promise<Pick<RunnerParts, 'secrets' | 'stop'>> {
  const report = reporterOf(options.logger);
  const stateDir = join(options.workspace, STATE_DIR);
  const { diskFloorBytes } = settings;
  const store = await openRunStore({ stateDir, diskFloorBytes, report });
  const closings: Closing[] = [() => store.close()];
  const stop = async (): Promise<void> => {
    for (let close = closings.pop(); close !== undefined; close = closings.pop()) await close();
  };
  try {
    const sync = await openSync(settings, options, stateDir, report);
    closings.push(() => sync.close());
    const secrets = await openSecrets(settings, options, stateDir, sync, report);
    closings.push(() => secrets.close());
    return { secrets, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Takers of events, which the scheduler needs; two of them need the scheduler in turn. */
function announcers(
  settings: RunnerSettings,
  options: PartsOptions,
  store: RunStore,
): Pick<RunnerParts, 'hub' | 'follower' | 'metrics'> & { begin(runs: Scheduler): void } {
  let scheduler: Scheduler | undefined;
  const runs = (): Scheduler => {
    // Nobody can ask before the listeners are bound.
    assert(scheduler !== undefined, 'the scheduler is there when it is asked for');
    return scheduler;
  };
  const hub = new EventHub({
    subscribersMax: settings.maxSubscribers,
    bufferBytesMax: settings.subscriberBufferBytes,
    pingMs: options.pingMs,
  });
  return {
    hub,
    follower: new LogFollower(runs, (...place) => store.readLog(...place)),
    metrics: new RunnerMetrics({
      counts: () => runs().counts(),
      hub: () => hub.stats,
      build: { version: options.version, commit: settings.commit },
      queuedMax: settings.maxQueuedRuns,
      activeMax: settings.maxConcurrentRuns,
    }),
    begin: (started) => {
      scheduler = started;
    },
  };
}

function openSecrets(
  settings: RunnerSettings,
  { environment, clock }: PartsOptions,
  stateDir: string,
  sync: SyncService,
  report: ProblemReporter,
): Promise<SecretService> {
  return createSecretService({
    stateDir,
    secretsKey: settings.secretsKey,
    configDir: userConfigDir(environment),
    environment,
    host: sync.hostSecrets,
    ownSecrets: [() => ownSecretsOf(settings, stateDir), () => sync.secrets()],
    clock,
    report,
  });
}

function openSync(
  settings: RunnerSettings,
  { clock, workspace, environment }: PartsOptions,
  stateDir: string,
  report: ProblemReporter,
): Promise<SyncService> {
  const masterKey = new MasterKey(settings.secretsKey, userConfigDir(environment));
  const { hostApiUrl, hostGitUrl, hostToken, webhookSecret } = settings;
  return createSyncService({
    stateDir,
    projectDir: workspace,
    settings: { hostApiUrl, hostGitUrl, hostToken, webhookSecret },
    sealer: createTextSealer(masterKey),
    clock,
    report,
  });
}

async function openKeys(
  stateDir: string,
  clock: Clock,
  report: ProblemReporter,
  closings: Closing[],
): Promise<IdempotencyKeys> {
  const file = await openJsonlFile({
    path: join(stateDir, 'idempotency.jsonl'),
    rotateBytes: KEYS_ROTATE_BYTES,
    keepFiles: 1,
    report,
  });
  closings.push(() => file.close());
  return IdempotencyKeys.open(clock, file, (error) => {
    report('idempotency.not_kept', error instanceof Error ? error : new Error(String(error)));
  });
}

type SchedulerParts = {
  readonly store: RunStore;
  readonly catalog: WorkflowCatalog;
  readonly secrets: SecretService;
  readonly sync: SyncService;
  readonly events: EventFan;
  readonly stateDir: string;
  readonly runsDir: string;
  readonly report: ProblemReporter;
  readonly sandboxes: SandboxFactory;
  readonly authors: ApprovedAuthors;
  readonly isolation: ForkIsolation;
  readonly supervision: Supervision;
};

async function openScheduler(
  settings: RunnerSettings,
  { clock, workspace, environment }: PartsOptions,
  parts: SchedulerParts,
): Promise<Scheduler> {
  const { store, catalog, secrets, sync, events, stateDir, runsDir, report } = parts;
  const { sandboxes, authors, isolation, supervision } = parts;
  const artifacts = await createArtifactStore(runsDir);
  const cache = await createCacheStore(join(stateDir, 'cache'));
  const git = createGit(workspace);
  const identity =
    identityOf(settings, sync) ?? originIdentity(settings, await originRepository(git));
  return createRunService({
    catalog,
    store,
    sandboxes,
    onApproved: (authorId) => authors.add(authorId),
    isolation,
    executor: createJobExecutor({ artifacts, cache, environment, supervision, onProblem: report }),
    secrets,
    artifacts,
    deployments: sync.deployments,
    events,
    clock,
    ids: new IdSource(clock),
    limits: limitsOf(settings),
    projectDir: workspace,
    report,
    identity,
    runsOn: settings.runsOn,
    allowPush: settings.allowPush,
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

/** What workflows see in `github`, when the sync configuration says which repository this is. */
function identityOf(settings: RunnerSettings, sync: SyncService): ProjectIdentity | undefined {
  const { owner, repo } = sync.getConfig().host;
  if (owner === '' || repo === '') return undefined;
  return identityAt(settings, `${owner}/${repo}`, settings.hostToken ?? '');
}

/** Else the repository that the project was cloned from. Nobody said that the token is for that one. */
function originIdentity(
  settings: RunnerSettings,
  repository: string | undefined,
): ProjectIdentity | undefined {
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

/** Problems that nobody can be told of, as lines of the log. */
export function reporterOf(logger: Logger): ProblemReporter {
  return (event, error) => {
    logger.warn({ error: error.message, cause: causeText(error) }, event);
  };
}

function causeText(error: Error): string | undefined {
  return error.cause instanceof Error ? error.cause.message : undefined;
}
