import { availableParallelism } from 'node:os';
import type { LoopReport } from '../../shared/loop-report.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { EventPublisher } from '../model/events.ts';
import type { JobExecutor } from '../model/execution.ts';
import type { ForkIsolation } from '../model/isolation.ts';
import type {
  ActionSupply,
  ArtifactStore,
  DeploymentRecorder,
  ProblemReporter,
  ProjectHistory,
  SecretSource,
  ValueSealer,
  WorkflowCatalog,
} from '../model/ports.ts';
import type { RunStore, SandboxFactory } from '../model/storage.ts';

/** Every limit of the scheduler. All counts are inclusive. */
export type SchedulerLimits = {
  readonly runsInProgressMax: number;
  /** Over all runs. */
  readonly jobsInProgressMax: number;
  /** Waiting for a slot, a group or the project; beyond it QUEUE_FULL. */
  readonly queuedRunsMax: number;
  /** Matrix jobs included. */
  readonly jobsPerRunMax: number;
  readonly retainedRunsMax: number;
  readonly retainedAgeMs: number;
  /** Of each step in getWithLogs. */
  readonly stepLogBytesMax: number;
  /** Of all steps together in getWithLogs: what one answer may hold in memory. */
  readonly runLogBytesMax: number;
  /** What a job may write; handed to the executor. */
  readonly jobLogBytesMax: number;
  readonly annotationsPerRunMax: number;
  /** After so long a shutdown kills what still runs. */
  readonly shutdownTimeoutMs: number;
};

const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;

export const defaultSchedulerLimits: SchedulerLimits = {
  runsInProgressMax: 4,
  jobsInProgressMax: availableParallelism(),
  queuedRunsMax: 100,
  jobsPerRunMax: 1000,
  retainedRunsMax: 500,
  retainedAgeMs: 30 * DAY_MS,
  stepLogBytesMax: 16 * MIB,
  runLogBytesMax: 128 * MIB,
  jobLogBytesMax: 256 * MIB,
  annotationsPerRunMax: 5000,
  shutdownTimeoutMs: 60_000,
};

/** Where the project comes from and goes to; what workflows see in `github`. */
export type ProjectIdentity = {
  /** `owner/name`. */
  readonly repository: string;
  readonly serverUrl: string;
  readonly apiUrl: string;
  readonly graphqlUrl: string;
  /** Passed on as `github.token` to workflows that declare `permissions`; '' for none. */
  readonly token: string;
};

export type SchedulerOptions = {
  readonly catalog: WorkflowCatalog;
  readonly store: RunStore;
  readonly sandboxes: SandboxFactory;
  /** Absent: nothing is known of the project's commits. */
  readonly history?: ProjectHistory | undefined;
  readonly executor: JobExecutor;
  readonly secrets: SecretSource;
  /** Absent: no secrets can come with a start. */
  readonly sealer?: ValueSealer | undefined;
  readonly artifacts: ArtifactStore;
  readonly deployments: DeploymentRecorder;
  readonly events: EventPublisher;
  readonly clock: Clock;
  /** Makes run ids: unique, sortable by time, of the characters [0-9A-Za-z-]. */
  readonly ids: { readonly uuid: () => string };
  readonly limits: SchedulerLimits;
  /** Absolute. The state lies in its `.runner`. */
  readonly projectDir: string;
  readonly report: ProblemReporter;
  /** Hears of each removal of old runs. */
  readonly retention: LoopReport;
  /** Default: the project's folder as `local/<name>` on github.com. */
  readonly identity?: ProjectIdentity | undefined;
  /** Notified of the account whose pull request was approved. */
  readonly onApproved?: ((authorId: string) => Promise<void>) | undefined;
  /** Finds the actions that a run needs before its jobs start. Absent: each job looks for its own. */
  readonly actions?: ActionSupply | undefined;
  /** What keeps jobs of forks apart. Absent: they are not run. */
  readonly isolation?: ForkIsolation | undefined;
  /** Pushes of steps go to the project's remotes (RUNNER_ALLOW_PUSH). Default: they do not. */
  readonly allowPush?: boolean | undefined;
  /** A job's workspace is empty until actions/checkout fills it (RUNNER_STRICT_CHECKOUT). */
  readonly strictCheckout?: boolean | undefined;
  /** Whose workspaces stay until their run is removed (RUNNER_KEEP_WORKSPACES). Default: nobody's. */
  readonly keepWorkspaces?: 'none' | 'failed' | 'all' | undefined;
  /** `any` runs jobs whatever operating system they ask for, and says nothing of the architecture (RUNNER_RUNS_ON). */
  readonly runsOn?: 'host' | 'any' | undefined;
  /** Default: process.platform. */
  readonly platform?: NodeJS.Platform | undefined;
  /** Default: process.arch. */
  readonly architecture?: NodeJS.Architecture | undefined;
};
