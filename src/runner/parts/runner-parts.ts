import { join } from 'node:path';
import type { Logger } from '../../observability/logger.ts';
import type { IdempotencyKeys } from '../face/api/idempotency.ts';
import type { EventHub } from '../face/events/event-hub.ts';
import type { LogFollower } from '../face/events/log-follower.ts';
import { createGit } from '../host/git/run-git.ts';
import { createForkIsolation } from '../host/isolation/fork-isolation.ts';
import { createSupervision } from '../host/process/supervision.ts';
import { createWorkflowCatalog } from '../host/project/workflow-catalog.ts';
import { createSandboxFactory } from '../host/sandbox/sandbox-factory.ts';
import { sandboxRootOf } from '../host/sandbox/sandbox-root.ts';
import type { WorkflowCatalog } from '../model/ports.ts';
import type { Scheduler } from '../scheduler/run-service.ts';
import { openApprovedAuthors } from '../scheduler/triggers/approved-authors.ts';
import { InboxEvents } from '../scheduler/triggers/inbox-events.ts';
import { Schedule } from '../scheduler/triggers/schedule.ts';
import type { SecretService } from '../secrets/secret-api.ts';
import type { RunnerSettings } from '../settings/settings.ts';
import { readOrMakeApiToken } from '../storage/api-token-file.ts';
import type { SyncService } from '../sync/sync-service.ts';
import { openActions } from './actions-part.ts';
import { createAnnouncers } from './announcers.ts';
import { type Closings, openOrClose } from './closings.ts';
import { openFoundation } from './foundation.ts';
import { openIdempotencyKeys } from './idempotency-keys.ts';
import { basisOf, type PartsBasis, type PartsOptions } from './parts-basis.ts';
import { identityOf } from './project-identity.ts';
import type { RunnerMetrics } from './runner-metrics.ts';
import { openScheduler } from './scheduler-parts.ts';
import { openTools } from './tools-part.ts';

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
  options: PartsOptions,
): Promise<RunnerParts> {
  return openOrClose((closings) => wire(basisOf(settings, options), closings));
}

async function wire(basis: PartsBasis, closings: Closings): Promise<RunnerParts> {
  const { settings, logger, clock, workspace, version, stateDir, runsDir, report } = basis;
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
  const announcers = await createAnnouncers(basis, store);
  const { hub, follower, metrics } = announcers;
  closings.push(() => Promise.resolve(hub.close()));
  const { events } = announcers;
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
  announcers.begin(runs);
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
  const stop = (): Promise<void> => closings.closeAll();
  return { ...about, ...services, ...credential, hub, follower, metrics, stop };
}
