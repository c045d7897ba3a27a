import type { JsonObject } from '../../../shared/json.ts';
import type { SealedValues } from '../../model/ports.ts';
import type {
  Annotation,
  Conclusion,
  Job,
  NeededAction,
  Sandbox,
  SandboxStrategy,
  Trigger,
  WorkflowRun,
} from '../../model/run.ts';

/** What a run was asked for beside what it shows: needed to start it, also after a restart. */
export type RunRequest = {
  readonly strategy?: SandboxStrategy | undefined;
  readonly hasExplicitRef: boolean;
  /** Pushes of steps go to the project's remotes. */
  readonly allowPush?: boolean | undefined;
  /** Variables for all steps, below the workflow's own `env`. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly actor: string;
  /** The commit came with an event; the project itself may not have it. */
  readonly isAdopted?: boolean | undefined;
  /** The pull request is from another repository: its run gets no secrets and is kept apart. */
  readonly fork?: ForkRequest | undefined;
  /** What was asked for of the workflow: keys of jobs, values of matrices. */
  readonly jobs?: readonly string[] | undefined;
  readonly matrix?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Secrets and variables that came with the start. */
  readonly sealed?: SealedValues | undefined;
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /** `github.event_name`. */
  readonly eventName: string;
  /** `inputs` context: booleans and numbers keep their types. */
  readonly inputs: JsonObject;
  /** `github.event`, as far as the request decides it. */
  readonly event: JsonObject;
};

/** What counts of the fork that a run is for. */
export type ForkRequest = {
  readonly needsApproval: boolean;
  /** The host's id of the account that opened the pull request. */
  readonly authorId?: string | undefined;
};

/** A job as it is known before it starts. */
export type PlannedJob = {
  readonly id: string;
  readonly name: string;
  readonly needs: readonly string[];
  readonly matrix?: JsonObject | undefined;
  /** Id of the graph node: the job's id without the number of its matrix job. */
  readonly node: string;
};

export type PlannedStep = {
  readonly number: number;
  readonly name: string;
  readonly id?: string | undefined;
};

export type SummaryMark = { readonly jobId: string; readonly number: number };

/** A job and what the run sees of it; `result` is set with the conclusion. */
export type JobEntry = {
  readonly job: Job;
  readonly node: string;
  readonly result?: Conclusion | undefined;
  readonly hasTimedOut?: boolean | undefined;
};

/** A whole state as plain data. */
export type RunSnapshot = {
  readonly run: Omit<WorkflowRun, 'jobs'>;
  readonly request: RunRequest;
  readonly jobs: readonly JobEntry[];
  readonly annotations: readonly Annotation[];
  readonly summaries: readonly SummaryMark[];
  readonly queuedAt: string;
};

/** What is known of a run before it starts: WorkflowRun without what the journal adds. */
export type RunHead = Pick<
  WorkflowRun,
  | 'id'
  | 'workflow'
  | 'fileName'
  | 'name'
  | 'runNumber'
  | 'numericId'
  | 'createdAt'
  | 'trigger'
  | 'inputs'
> & { readonly trigger: Trigger };

/**
 * The journal of a run, in the order of its life. Every change of a run, a job or a step is one
 * record; `at` is its time. applyRecord (run-state-reducer.ts) is the only meaning they have.
 */
export type RunRecord = { readonly at: string } & (
  | {
      readonly type: 'run.queued';
      readonly run: RunHead;
      readonly request: RunRequest;
      readonly jobs: readonly PlannedJob[];
      readonly annotations: readonly Annotation[];
    }
  | { readonly type: 'run.started'; readonly sandbox: Sandbox }
  | { readonly type: 'run.actions'; readonly actions: readonly NeededAction[] }
  | { readonly type: 'run.env'; readonly env: Readonly<Record<string, string>> }
  | { readonly type: 'run.approved' }
  | { readonly type: 'run.cancelRequested' }
  | { readonly type: 'run.completed'; readonly conclusion: Conclusion }
  /** Queued again; the jobs of `reset` lose what they had, the others keep it. */
  | { readonly type: 'run.rerun'; readonly reset: readonly string[] }
  /** The jobs of one node, or of all below it, are these instead. */
  | { readonly type: 'jobs.planned'; readonly node: string; readonly jobs: readonly PlannedJob[] }
  | {
      readonly type: 'job.started';
      readonly jobId: string;
      readonly name: string;
      readonly environment?: string | undefined;
      readonly sandbox?: { readonly path: string } | undefined;
    }
  | {
      readonly type: 'job.completed';
      readonly jobId: string;
      readonly conclusion: Conclusion;
      /** What the run and the jobs that need it see: success instead of failure under continue-on-error. */
      readonly result: Conclusion;
      /** It took longer than it may. */
      readonly hasTimedOut?: boolean | undefined;
      readonly outputs: Readonly<Record<string, string>>;
      readonly environmentUrl?: string | undefined;
    }
  | { readonly type: 'steps.known'; readonly jobId: string; readonly steps: readonly PlannedStep[] }
  | {
      readonly type: 'step.started';
      readonly jobId: string;
      readonly number: number;
      readonly name: string;
    }
  | {
      readonly type: 'step.completed';
      readonly jobId: string;
      readonly number: number;
      readonly name: string;
      readonly conclusion: Conclusion;
      readonly outcome: Conclusion;
      readonly outputs: Readonly<Record<string, string>>;
    }
  | { readonly type: 'annotation'; readonly annotation: Annotation }
  | { readonly type: 'summary'; readonly jobId: string; readonly number: number }
  /** The whole state, instead of all records before it. */
  | { readonly type: 'snapshot'; readonly state: RunSnapshot }
);

export type RunRecordType = RunRecord['type'];

/** A record of `type` without its time. */
export type RunRecordBody = RunRecord extends infer Each
  ? Each extends RunRecord
    ? Omit<Each, 'at'>
    : never
  : never;
