import type { AppError } from '../../shared/app-error.ts';
import type {
  Annotation,
  Artifact,
  NeededAction,
  RunStatus,
  SandboxStrategy,
  WorkflowRun,
} from './run.ts';
import type { EventCommit } from './storage.ts';
import type { FileProblem, Workflow, WorkflowSource } from './workflow.ts';

/** A file below .github/workflows, readable or not. */
export type WorkflowFile = {
  readonly fileName: string;
  /** Absolute. */
  readonly filePath: string;
  /** `name:`, else the file name; present as far as the file could be read. */
  readonly name: string;
  /** The plain document (YAML 1.2 core), absent when the text is no YAML. */
  readonly document?: unknown;
  readonly workflow?: Workflow | undefined;
  /** What `workflow` was read from: this file, then those that it calls. Present with it. */
  readonly sources?: readonly WorkflowSource[] | undefined;
  readonly problems: readonly FileProblem[];
  /** Workflows that are called and not there: the jobs that call them fail, the others run. */
  readonly missing?: readonly FileProblem[] | undefined;
};

/** The workflows of the project: read on each call, cached by modification time. */
export interface WorkflowCatalog {
  list(): Promise<readonly WorkflowFile[]>;
  /**
   * By exact file name, else name without extension, else `name:`; case-sensitive, then without case.
   * Errors: WORKFLOW_NOT_FOUND, AMBIGUOUS_WORKFLOW (metadata lists paths), INVALID_NAME for path
   * separators or `..`.
   */
  find(name: string): Promise<WorkflowFile>;
}

export type StartRequest = {
  readonly workflow: string;
  readonly inputs?: Readonly<Record<string, string>> | undefined;
  readonly sandbox?:
    | {
        readonly strategy?: SandboxStrategy | undefined;
        readonly ref?: string | undefined;
        /** Pushes of its steps go to the project's remotes. */
        readonly allowPush?: boolean | undefined;
      }
    | undefined;
  /** Variables for all steps, below the workflow's own `env`. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** `github.event_name`; default `workflow_dispatch`. */
  readonly event?: string | undefined;
  /** The document of the event, or a part of it: what a start by hand leaves out is filled in. */
  readonly payload?: unknown;
  /** The workflow was chosen by its triggers: they are not asked again, and nothing is filled in. */
  readonly isSelected?: boolean | undefined;
  /** Keys of the jobs to run, with those that they need; default: all. */
  readonly jobs?: readonly string[] | undefined;
  /** Values, as texts, to which matrix jobs of matrices that have the key are narrowed. */
  readonly matrix?: Readonly<Record<string, readonly string[]>> | undefined;
  /** Values of this run alone: they win over those that are kept. */
  readonly secrets?: Readonly<Record<string, string>> | undefined;
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /** Starts it whatever its triggers say. */
  readonly isForced?: boolean | undefined;
  readonly actor?: string | undefined;
  /** The commit of an event, and the workflow file in it, instead of those of the project. */
  readonly at?: { readonly commit: EventCommit; readonly file: WorkflowFile } | undefined;
  /** For a pull request of another repository. */
  readonly fork?:
    | { readonly needsApproval: boolean; readonly authorId?: string | undefined }
    | undefined;
};

export type RunFilter = {
  readonly status?: RunStatus | undefined;
  readonly workflow?: string | undefined;
  readonly limit: number;
  /** Only runs before this one, given by its id or number. */
  readonly before?: string | undefined;
};

export type LogQuery = {
  readonly jobId?: string | undefined;
  readonly stepNumber?: number | undefined;
  /** Only the last lines of each step. */
  readonly tail?: number | undefined;
  /** Headers of steps notify the number of the line below them: ` from line 5` behind the step's number. */
  readonly isNumbered?: boolean | undefined;
};

/** Runs as the API and the command line see them. */
export interface RunService {
  /**
   * Records a queued run; it is on disk when the promise resolves.
   * Errors: those of WorkflowCatalog.find, INVALID_WORKFLOW, INVALID_INPUTS, INVALID_REF, INVALID_REQUEST for an event
   * that there is not or a payload of another form, EVENT_NOT_MATCHED, QUEUE_FULL, DISK_FULL, SHUTTING_DOWN.
   */
  start(
    request: StartRequest,
  ): Promise<{ readonly run: WorkflowRun; readonly warnings: readonly string[] }>;
  /** Errors: RUN_NOT_FOUND, RUN_NOT_FINISHED, INVALID_REQUEST for an unknown job. */
  rerun(
    id: string,
    which: { readonly failedOnly?: boolean | undefined; readonly job?: string | undefined },
  ): Promise<WorkflowRun>;
  /** Lets a run go on that waits for it. Errors: RUN_NOT_FOUND, RUN_NOT_WAITING. */
  approve(id: string): Promise<WorkflowRun>;
  /** Whether a job of a fork is going on, or processes of one may be left. */
  isForkRunning(): boolean;
  /**
   * A second call on a run that is being cancelled kills at once.
   * Errors: RUN_NOT_FOUND, RUN_NOT_CANCELLABLE.
   */
  cancel(id: string): Promise<{
    readonly id: string;
    readonly status: RunStatus;
    readonly cancelRequestedAt: string;
  }>;
  /** Newest first; steps without their logs. */
  list(filter: RunFilter): readonly WorkflowRun[];
  /** By its id or its number, which all others are not given. Steps without their logs. */
  get(id: string): WorkflowRun | undefined;
  /** The run with the log of each step in it, each at most 16 MiB. Errors: RUN_NOT_FOUND. */
  getWithLogs(id: string): Promise<WorkflowRun>;
  /** The plain-text log in the form of the contract, in chunks. Errors: RUN_NOT_FOUND before the first. */
  logs(id: string, query: LogQuery): AsyncIterable<Uint8Array | string>;
  annotations(id: string): readonly Annotation[];
  /** Markdown of all steps, in order. */
  summary(id: string): string;
  artifacts(id: string): readonly Artifact[];
  /** Errors: RUN_NOT_FOUND, RUN_NOT_FINISHED. */
  remove(id: string): Promise<void>;
  counts(): { readonly queued: number; readonly inProgress: number };
  /** So many of those queued go on only when somebody approves them. */
  waitingForApproval(): number;
}

/** Artifacts of runs: files below `.runner`, indexed by run and name; names are never joined to paths. */
export interface ArtifactStore {
  /**
   * Stores files as one artifact: a single file as it is, several as a zip. Immutable.
   * Errors: DUPLICATE_ARTIFACT, INVALID_NAME, INVALID_VALUE, DISK_FULL, RESULT_TOO_LARGE.
   */
  add(request: {
    readonly runId: string;
    readonly name: string;
    /** Absolute source and name within the artifact (with `/`). */
    readonly files: readonly {
      readonly source: string;
      readonly entry: string;
      /** The real path of a folder that the file must lie in when it is read, or of the file itself. */
      readonly within?: string | undefined;
    }[];
    readonly isOverwriting: boolean;
    /** Default 1. What an earlier attempt of the run stored under the name is replaced. */
    readonly attempt?: number | undefined;
    /** Default false. The only file itself is the artifact; its `entry` is `name`. */
    readonly isUnarchived?: boolean | undefined;
  }): Promise<Artifact>;
  list(runId: string): readonly Artifact[];
  find(runId: string, name: string): Artifact | undefined;
  /**
   * Unpacks (or copies) into `targetDir`, refusing entries that would leave it. Returns whether the file is
   * what was stored. Errors: ARTIFACT_NOT_FOUND, INVALID_NAME, INVALID_VALUE, RESULT_TOO_LARGE.
   */
  extract(
    artifact: Artifact,
    targetDir: string,
    how?: {
      /** Default false. An archive is laid there as it is. */
      readonly isPacked?: boolean | undefined;
      /** Default false: INVALID_VALUE for a file that is not what was stored. */
      readonly isDamageAccepted?: boolean | undefined;
    },
  ): Promise<boolean>;
  removeRun(runId: string): Promise<void>;
}

/** Secrets and variables as a job gets them: environment over default. */
export interface SecretSource {
  /** Only `names` (all when undefined), so that the audit says what a job could read. */
  secretsFor(request: {
    readonly runId: string;
    readonly jobId: string;
    readonly environment: string;
    readonly names: readonly string[] | undefined;
  }): Promise<Readonly<Record<string, string>>>;
  variablesFor(environment: string): Promise<Readonly<Record<string, string>>>;
  /**
   * What a job of this environment (undefined: of any) that names these secrets hides, all when undefined: their
   * values and the runner's own secrets. Never rejects; what cannot be decrypted is left out.
   */
  masksFor?(
    environment: string | undefined,
    names: readonly string[] | undefined,
  ): Promise<readonly string[]>;
  /** Environments that have a secret or a variable of their own. */
  environments(): Promise<readonly string[]>;
}

/**
 * The ledger is notified of each job that names an environment. Never throws, never delays the job. `mask` hides
 * the secrets of the run in what is recorded, since records leave the machine.
 */
export interface DeploymentRecorder {
  /** Whether it records this deployment: masks need not be made for others. */
  isRecorded(run: WorkflowRun, jobId: string, environment: string): boolean;
  deploymentStarted(run: WorkflowRun, jobId: string, environment: string, mask: TextMask): void;
  deploymentEnded(
    run: WorkflowRun,
    jobId: string,
    environment: string,
    url: string | undefined,
    mask: TextMask,
  ): void;
}

export type TextMask = (text: string) => string;

/** What git knows of the project, for events that are made here. Nothing of it is an error: what git does not say is undefined. */
export interface ProjectHistory {
  commit(sha: string): Promise<CommitFacts | undefined>;
  /** Paths, relative to the repository, that differ between two commits. */
  changedPaths(from: string, to: string): Promise<readonly string[] | undefined>;
  /** The same from where `to` left `base`. */
  changedPathsSince(base: string, to: string): Promise<readonly string[] | undefined>;
  /** Paths of the working tree that differ from HEAD, those that git does not know included. */
  uncommittedPaths(): Promise<readonly string[] | undefined>;
  /** The name of the branch that the remote `origin` has for its default, else `main` or `master` where there is one. */
  defaultBranch(): Promise<string | undefined>;
}

export type CommitFacts = {
  readonly sha: string;
  readonly parents: readonly string[];
  readonly message: string;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly author: { readonly name: string; readonly email: string };
};

/** A text that only who has the key of the local secrets can read. */
export type SealedValues = { readonly salt: string; readonly value: string };

/** Errors of both: BACKEND_UNAVAILABLE. */
export interface ValueSealer {
  /** `context` says what the text is; nothing else opens it. */
  seal(context: string, text: string): Promise<SealedValues>;
  open(context: string, sealed: SealedValues): Promise<string>;
}

/** For problems that no caller can be notified of. */
export type ProblemReporter = (event: string, error: AppError | Error) => void;

/** What is written behind `uses` in one file, each once. */
export type ActionUses = {
  readonly uses: readonly string[];
  /** Of the workflow, as WorkflowSource has it: one of another repository names that. */
  readonly path: string;
};

/** What actions a run needs, found before its jobs start. */
export interface ActionSupply {
  /**
   * All that these uses lead to, nested ones included; with `mayFetch`, where the runner is set
   * up for that, what is missing is fetched. `treeDir` holds the local actions. Problems say why something
   * could not be fetched. Errors: CANCELLED.
   */
  prepare(request: {
    readonly needed: readonly ActionUses[];
    readonly treeDir: string;
    readonly mayFetch: boolean;
  }): Promise<{ readonly actions: readonly NeededAction[]; readonly problems: readonly string[] }>;
}
