import type { JsonObject, JsonValue } from '../../shared/json.ts';
import type { Annotation, Conclusion } from '../model/run.ts';
import type { PreparedSandbox } from '../model/storage.ts';
import type { JobDefinition, Workflow } from '../model/workflow.ts';
import type { Cancellation } from './cancellation.ts';
import type { CheckoutNotice } from './checkout-notice.ts';
import type { ConcurrencyGroups } from './concurrency-groups.ts';
import type { RunFacts } from './github-context.ts';
import type { Omissions } from './omissions.ts';
import type { FairPermits } from './permits.ts';
import type { RunMasks } from './run-masks.ts';
import type { RunRecorder } from './run-recorder.ts';
import type { SchedulerOptions } from './scheduler-options.ts';
import type { PlanPlace } from './state/run-plan.ts';

/** What all jobs of one run share while it is in progress. */
export type RunContext = {
  readonly options: SchedulerOptions;
  readonly recorder: RunRecorder;
  readonly slots: FairPermits;
  readonly groups: ConcurrencyGroups;
  readonly cancellation: Cancellation;
  readonly sandbox: PreparedSandbox;
  /** Held by jobs that work in the project itself: one at a time, whatever run they are of. */
  readonly projectJobs: FairPermits;
  readonly facts: Omit<RunFacts, 'hasToken'>;
  /** Jobs of an earlier attempt that are not run again. */
  readonly kept: ReadonlySet<string>;
  /** The `vars` context. */
  readonly variablesOf: (environment: string) => Promise<JsonObject>;
  /** Hides secrets in all that leaves the machine. */
  readonly masks: RunMasks;
  readonly annotate: (annotation: Annotation) => void;
  readonly checkoutNotice: CheckoutNotice;
  /** The id of a run of the project, given that or its number; undefined for no run. */
  readonly idOfRun: (text: string) => string | undefined;
  /** The workflow of the run itself. */
  readonly workflow: Workflow;
  /** What the runner itself left out, and what was chosen: a run of nothing is no success. */
  readonly omissions: Omissions;
};

/** The secrets that a job gets; only `names`, or all. */
export type SecretProvider = (request: {
  readonly jobId: string;
  readonly environment: string;
  readonly names: readonly string[] | undefined;
}) => Promise<JobSecretValues>;

export type JobSecretValues = {
  readonly byName: Readonly<Record<string, string>>;
  /** Hidden beside them: what they were made of. */
  readonly masks: readonly string[];
};

export const NO_SECRETS: JobSecretValues = { byName: {}, masks: [] };

/** The run's own workflow, or one that a job of it calls. */
export type WorkflowScope = {
  readonly workflow: Workflow;
  readonly place: PlanPlace;
  readonly inputs: JsonObject;
  readonly secrets: SecretProvider;
  readonly cancellation: Cancellation;
  /** Whether it, or a caller of it, declares `permissions`: then its jobs get the token. */
  readonly hasToken: boolean;
  /** Keys of the concurrency groups that the run and the calls above hold. */
  readonly heldGroups: ReadonlySet<string>;
};

export type JobResult = {
  /** As the run and the jobs that need it see it. */
  readonly result: Conclusion;
  readonly outputs: Readonly<Record<string, string>>;
  readonly hasTimedOut?: boolean | undefined;
};

/** One job of a node: the only one, or a matrix job of its matrix. */
export type NodeJob = {
  readonly scope: WorkflowScope;
  readonly definition: JobDefinition;
  readonly jobId: string;
  readonly name: string;
  readonly matrix: JsonObject | null;
  readonly strategy: JsonObject;
  readonly needs: JsonObject;
  /** Of this matrix job alone. */
  readonly cancellation: Cancellation;
};

export type MatrixJobRunner = (context: RunContext, matrixJob: NodeJob) => Promise<JobResult>;

/** The contexts of the keys of a job that are evaluated before it starts. */
export type MatrixJobContexts = Readonly<Record<string, JsonValue>> & {
  readonly github: JsonObject;
  readonly needs: JsonObject;
  readonly strategy: JsonObject;
  readonly matrix: JsonObject | null;
  readonly vars: JsonObject;
  readonly inputs: JsonObject;
};
