import type { JsonObject, JsonValue } from '../../shared/json.ts';
import type { JobIsolation } from './isolation.ts';
import type { Annotation, Conclusion } from './run.ts';
import type { StepsJobDefinition, Workflow } from './workflow.ts';

/**
 * The port between the scheduler and the execution of one job (runner/execution). The scheduler
 * decides whether, when and with what a job runs; the executor runs its steps and reports them.
 */
export type JobRequest = {
  readonly runId: string;
  /** The id of a run, given that or its number; the text itself for no run. Absent: numbers mean nothing. */
  readonly idOfRun?: ((text: string) => string) | undefined;
  readonly runNumber: number;
  readonly attempt: number;
  /** `key`, `key:2`, `caller/key`. */
  readonly jobId: string;
  /** Evaluated display name. */
  readonly jobName: string;
  /** The file that the job stands in (a called one, for reusable workflows): its env and defaults. */
  readonly workflow: Workflow;
  readonly job: StepsJobDefinition;
  readonly contexts: JobContexts;
  /** `job.workflow_*`. */
  readonly workflowContext: JsonObject;
  /** GITHUB_WORKSPACE: the job's own folder. */
  readonly workspaceDir: string;
  /** The files of the run, for actions/checkout; absent where the workspace is all there is. */
  readonly tree?: JobTree | undefined;
  /** A repository that takes the pushes of the run. */
  readonly pushTarget?: string | undefined;
  /** The project itself; remote and `$/` actions and the cache are found from its `.runner`. */
  readonly projectDir: string;
  /** An empty folder of this job alone: scripts, file commands, RUNNER_TEMP, the event file. Removed by the caller. */
  readonly jobDir: string;
  /** RUNNER_TOOL_CACHE; absent: below the project's `.runner`, or the home of a job kept apart. */
  readonly toolCacheDir?: string | undefined;
  /**
   * RUNNER_TRACKING_ID of all processes of the job. The scheduler finds it again after a crash, and
   * kills what the job left.
   */
  readonly trackingId?: string | undefined;
  /** Whether pushes of steps go to the project's remotes. Default: they do not. */
  readonly mayPush?: boolean | undefined;
  /** Of a job of a fork: what keeps it apart from the runner. */
  readonly isolation?: JobIsolation | undefined;
  /** Variables for all steps, below the workflow's own `env`. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** The whole `event.json`, as GITHUB_EVENT_PATH shows it. */
  readonly event: JsonObject;
  /** Every value to hide, beside those that steps add. */
  readonly masks: readonly string[];
  /** Of the whole job; the executor enforces it. */
  readonly timeoutMs: number;
  /** Bytes of log that the job may write. */
  readonly logBytesMax: number;
};

/** The files that a run began with. */
export type JobTree = {
  /** Where the workspace has them: above it when the project lies below the root of its repository. */
  readonly root: string;
  /** Whether the workspace began with them; otherwise it began empty. */
  readonly isInWorkspace: boolean;
  /** Whether they are those of a commit, and not the user's uncommitted ones. */
  readonly isCommit: boolean;
  /** How many files and folders differ from the commit, as far as that is known. */
  readonly changes?: number | undefined;
  /** Puts them into a folder, instead of what is there. Errors: DISK_FULL, STORE_UNAVAILABLE. */
  fill(dir: string): Promise<void>;
};

/** Contexts that are fixed when the job starts. `env`, `steps`, `job` and `runner` are the executor's. */
export type JobContexts = {
  readonly github: JsonObject;
  readonly inputs: JsonObject;
  readonly needs: JsonObject;
  readonly strategy: JsonObject;
  readonly matrix: JsonObject | null;
  readonly vars: JsonObject;
  readonly secrets: JsonObject;
};

export type JobOutcome = {
  /** Before the job's own `continue-on-error`, which the scheduler applies. */
  readonly conclusion: Conclusion;
  /** It was cancelled since it took longer than it may: its run fails. */
  readonly hasTimedOut?: boolean | undefined;
  /** Evaluated `outputs:`; those that hold a secret are left out, with a warning annotation. */
  readonly outputs: Readonly<Record<string, string>>;
  /** Evaluated `environment.url`. */
  readonly environmentUrl?: string | undefined;
};

/**
 * `cancel`: SIGINT, 7.5 s, SIGTERM, 2.5 s, SIGKILL to the process group; `if: always()/cancelled()`
 * steps still run. `force`: SIGKILL now, no further step. `timeout`: as cancel, but the run fails.
 */
export type CancelKind = 'cancel' | 'force' | 'timeout';

export interface JobExecution {
  /** Never rejects: what goes wrong inside is a failed job with an annotation. */
  readonly outcome: Promise<JobOutcome>;
  cancel(kind: CancelKind): void;
}

/**
 * What a job says while it runs. Everything is masked. Calls are in order and return at once; a
 * promise from `log` asks the caller to hold further lines back until it resolves (the disk lags).
 */
export interface JobReport {
  /** The steps as far as they are known; called at the start and again when steps are added (post). */
  stepsKnown(
    steps: readonly {
      readonly number: number;
      readonly name: string;
      readonly id?: string | undefined;
    }[],
  ): void;
  /** `name` is final now that it was evaluated. */
  stepStarted(number: number, name: string): void;
  log(number: number, lines: readonly string[]): Promise<void> | undefined;
  /** Lines of the job could not be kept: no step succeeds any more, forgiven or not. */
  readonly isLogLost?: boolean | undefined;
  /** A step that was skipped is completed without having been started. */
  stepCompleted(
    number: number,
    result: {
      readonly conclusion: Conclusion;
      readonly outcome: Conclusion;
      readonly outputs: Readonly<Record<string, string>>;
      readonly name: string;
    },
  ): void;
  annotate(annotation: Annotation): void;
  /** Markdown that the step wrote to GITHUB_STEP_SUMMARY, at most 1 MiB. */
  summary(number: number, markdown: string): void;
}

export interface JobExecutor {
  execute(request: JobRequest, report: JobReport): JobExecution;
}

/** The state of a job or run that status functions look at. */
export type StatusView = {
  readonly isCancelled: boolean;
  /** Conclusions of what came before: steps of the job so far, or the needs of a job. */
  readonly hasFailure: boolean;
  /**
   * Job level only: all jobs before it, near and far, succeeded. Skipped and cancelled ones neither
   * succeeded nor failed, so that `success()` is this and `failure()` is `hasFailure`. Absent: `!hasFailure`.
   */
  readonly hasSucceeded?: boolean | undefined;
  /** Job level only: conclusion of one need, for success(name) and failure(name). */
  readonly conclusionOf?: ((name: string) => Conclusion | undefined) | undefined;
};

/** What an expression may see. A context that is absent is a null, as on GitHub. */
export type ExpressionScope = {
  readonly contexts: Readonly<Record<string, JsonValue | undefined>>;
  /** Absent where status functions are not available. */
  readonly status?: StatusView | undefined;
  /** The folder that hashFiles looks in; absent where it is not available. */
  readonly hashRoot?: string | undefined;
  /** Instead of looking into `hashRoot` itself. */
  readonly hashFiles?:
    | ((args: readonly string[], signal: AbortSignal | undefined) => Promise<string>)
    | undefined;
  /** Ends a hashFiles that is going on, which then is an error. */
  readonly signal?: AbortSignal | undefined;
};
