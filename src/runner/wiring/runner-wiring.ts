import { join } from 'node:path';
import type { BackgroundLoops } from '../../observability/background-loops.ts';
import type { Logger } from '../../observability/logger.ts';
import { IdempotencyKeys } from '../api/idempotency.ts';
import type { EventHub } from '../events/event-hub.ts';
import type { LogFollower } from '../events/log-follower.ts';
import { createGit } from '../host/git/run-git.ts';
import { createForkIsolation } from '../host/isolation/fork-isolation.ts';
import { createSupervision } from '../host/process/supervision.ts';
import { createWorkflowCatalog } from '../host/project/workflow-catalog.ts';
import { createSandboxFactory } from '../host/sandbox/sandbox-factory.ts';
import { sandboxRootOf } from '../host/sandbox/sandbox-root.ts';
import { removeFormerJobTools } from '../host/tools/former-job-tools.ts';
import { ToolRegistry, toolsDirOf } from '../host/tools/tool-registry.ts';
import type { WorkflowCatalog } from '../model/ports.ts';
import type { Scheduler } from '../scheduler/run-service.ts';
import { openApprovedAuthors } from '../scheduler/triggers/approved-authors.ts';
import { InboxEvents } from '../scheduler/triggers/inbox-events.ts';
import { Schedule } from '../scheduler/triggers/schedule.ts';
import type { SecretService } from '../secrets/secret-api.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import { readOrMakeApiToken } from '../storage/api-token-file.ts';
import { openJsonlFile } from '../storage/jsonl-file.ts';
import type { SyncService } from '../sync/sync-service.ts';
import { createEmitters } from './emitters.ts';
import { openFoundation } from './foundation.ts';
import type { RunnerMetrics } from './runner-metrics.ts';
import { identityOf, openScheduler } from './scheduler-wiring.ts';
import {
  basisOf,
  type Closings,
  openActions,
  openOrClose,
  type WiringBasis,
  type WiringOptions,
} from './wiring-basis.ts';

/** Everything behind the listeners. */
export type RunnerWiring = {
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
  readonly loops: BackgroundLoops;
  /** Undefined without `hasMetrics`. */
  readonly metrics: RunnerMetrics | undefined;
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

/**
 * Opens and wires all parts of one workspace.
 * Errors: STORE_UNAVAILABLE when another runner has it, and those of each part; what was opened is
 * closed again.
 */
export async function startParts(
  settings: RunnerSettings,
  options: WiringOptions,
): Promise<RunnerWiring> {
  return openOrClose((closings) => wire(basisOf(settings, options), closings));
}

async function wire(basis: WiringBasis, closings: Closings): Promise<RunnerWiring> {
  const { settings, logger, clock, workspace, version, stateDir, runsDir, report, loops } = basis;
  const supervision = basis.early?.supervision ?? createSupervision(report);
  closings.push(() => supervision.close());
  basis.early?.reportTo(report);
  if (basis.isEager === true) supervision.warmUp();
  const foundation = await openFoundation(basis, closings);
  const { store, sync, secrets } = foundation;
  const apiToken = settings.apiToken ?? (await readOrMakeApiToken(stateDir));
  // A fresh clone has the vault, but not yet its mirror.
  await secrets.refreshVault({ userAgent: 'start of the runner' });
  const keys = await openIdempotencyKeys(basis, closings);
  const catalog = createWorkflowCatalog(workspace);
  const emitters = await createEmitters(basis, store);
  const { hub, follower, metrics } = emitters;
  if (metrics !== undefined) loops.showIn(metrics.store, 'runner');
  closings.push(() => Promise.resolve(hub.close()));
  const { events } = emitters;
  const git = createGit(workspace);
  const identity = await identityOf(settings, sync, git);
  const sandboxes = createSandboxFactory({
    projectDir: workspace,
    stateDir,
    root: sandboxRootOf(workspace, settings.sandboxDir, basis.environment),
    repositoryName: identity?.repository.split('/')[1],
    diskFloorBytes: settings.diskFloorBytes,
    git,
    report,
  });
  const authors = await openApprovedAuthors(join(stateDir, 'approved-authors'));
  const isolation = await createForkIsolation({
    projectDir: workspace,
    marksDir: join(stateDir, 'fork-folders'),
    report,
  });
  const tools = await openTools(basis);
  const actions = openActions(settings, stateDir);
  const machine = { git, identity, sandboxes, isolation, supervision, tools, actions };
  const runs = await openScheduler(basis, foundation, { ...machine, catalog, events, authors });
  emitters.begin(runs);
  closings.push(() => runs.shutdown());
  sync.deployments.settleOrphans((id) => {
    const run = runs.get(id);
    return run !== undefined && run.completedAt === undefined;
  });
  const schedule = settings.enableSchedule
    ? new Schedule(catalog, runs, clock, report, loops.loop('schedules'))
    : undefined;
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
  const services = { catalog, runs, secrets, sync, keys, inboxEvents, schedule, loops };
  const credential = { apiToken, isTokenDemanded: () => isolation.isInUse };
  const stop = (): Promise<void> => closings.closeAll();
  return { ...about, ...services, ...credential, hub, follower, metrics, stop };
}

/** The tools of jobs; what killed runners of older versions left of theirs is removed. */
async function openTools({ settings, environment }: WiringBasis): Promise<ToolRegistry> {
  const root = settings.toolsDir ?? toolsDirOf(environment);
  const seen =
    settings.stepPath === undefined ? environment : { ...environment, PATH: settings.stepPath };
  await removeFormerJobTools(root);
  return new ToolRegistry({ environment: seen, root, mayInstall: settings.installTools });
}

const KEYS_ROTATE_BYTES = 4 * 1024 * 1024;

/** The keys of requests that were answered, with what is kept of them. Errors: STORE_UNAVAILABLE. */
async function openIdempotencyKeys(
  { stateDir, clock, report }: WiringBasis,
  closings: Closings,
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
