import type { Sandbox, SandboxStrategy, Trigger } from './run.ts';
import type { WorkflowSource } from './workflow.ts';

/** A state change as the journal of a run keeps it: one line of JSON. The scheduler defines its content. */
export type JournalRecord = { readonly type: string; readonly at: string } & Readonly<
  Record<string, unknown>
>;

/** How a run that was recorded before this process started is found again. */
export type RecoveredRun = {
  readonly runId: string;
  /** In the order they were appended; a line torn by a crash at the end is dropped and reported. */
  readonly records: readonly JournalRecord[];
};

/**
 * Everything the runner knows of runs, below `.runner/runs/<id>/`. One writer: the process that holds
 * the lock of `.runner`. What a promise of `append` resolved for survives kill -9 and power loss; log
 * lines survive kill -9 once `write` returned.
 */
export interface RunStore {
  /** Reads what is there; called once, before anything else. Oldest run first, by id: ids sort by time. */
  recover(): Promise<readonly RecoveredRun[]>;
  /**
   * Keeps what the workflow of a run was read from, before the first record of the run is appended.
   * Errors: DISK_FULL, STORE_UNAVAILABLE.
   */
  keepWorkflow(runId: string, sources: readonly WorkflowSource[]): Promise<void>;
  /** What `keepWorkflow` kept; undefined for a run that was recorded without it. Errors: STORE_UNAVAILABLE. */
  readWorkflow(runId: string): Promise<readonly WorkflowSource[] | undefined>;
  /** Appends in the order of the calls; calls that come together share one flush. */
  append(runId: string, record: JournalRecord): Promise<void>;
  /** Replaces the journal of a finished run by one record, atomically. */
  compact(runId: string, record: JournalRecord): Promise<void>;
  /** Begins the log of a step anew: what an earlier attempt wrote there is gone. */
  openLog(runId: string, jobId: string, stepNumber: number): LogWriter;
  /** The lines of a step so far, as UTF-8 with `\n`; from the `tail` last lines on. Empty when there are none. */
  readLog(
    runId: string,
    jobId: string,
    stepNumber: number,
    tail?: number,
  ): AsyncIterable<Uint8Array>;
  /** Deletes journal, logs, summaries and leftovers of a run. */
  remove(runId: string): Promise<void>;
  writeSummary(runId: string, jobId: string, stepNumber: number, markdown: string): Promise<void>;
  readSummary(runId: string, jobId: string, stepNumber: number): string;
  /** Errors: DISK_FULL when less than the minimum is free. Cached for a second. */
  assertDiskSpace(): Promise<void>;
  close(): Promise<void>;
}

export interface LogWriter {
  /**
   * Hands the lines to the system before it returns; a promise asks for a pause until it resolves.
   * Throws DISK_FULL, STORE_UNAVAILABLE.
   */
  write(lines: readonly string[]): Promise<void> | undefined;
  /** Throws like `write` for what the disk refused after the system had taken it. */
  close(): void;
}

/** The folder that one job works in. */
export type JobWorkspace = {
  /** GITHUB_WORKSPACE. */
  readonly path: string;
  /** The root of its repository: the same, unless the project lies below the root of its own. */
  readonly root: string;
  /**
   * An empty folder for what else the job has, out of the project; undefined where jobs work in the project itself.
   * It goes with the job, kept or not.
   */
  readonly jobDir: string | undefined;
  /**
   * Puts the files of the run into a folder, instead of what is there, as `root` begins with them;
   * undefined where jobs work in the project itself. Errors: DISK_FULL, STORE_UNAVAILABLE.
   */
  readonly fill: ((dir: string) => Promise<void>) | undefined;
  /** The job has ended: its folder goes, unless it is kept until the run is removed. Idempotent. */
  readonly end: (isKept: boolean) => Promise<void>;
};

export type WorkspaceRequest = {
  readonly jobId: string;
  /** Nothing is in it; `fill` is what brings the files. */
  readonly isEmpty: boolean;
  /** `fill` may be called. */
  readonly mayFill: boolean;
  /** No further job of the run will ask for a workspace. */
  readonly isLast: boolean;
};

export type PreparedSandbox = {
  /** The folder of the run, below which its jobs have theirs; the project itself for `none`. */
  readonly sandbox: Sandbox;
  /** The project as the run began with it: what jobs of forks are made from. */
  readonly source: string;
  /** Files and folders of a copy that git sees as changed or untracked; undefined where nobody counted them. */
  readonly changes?: number | undefined;
  /** RUNNER_TOOL_CACHE, which stays for later runs; undefined for `none`. */
  readonly toolCache: string | undefined;
  /** Takes the pushes of all jobs; undefined where there is no git, or pushes go to the real remotes. */
  readonly pushTarget: string | undefined;
  /**
   * A folder for a job that is about to start, with the files that the run began with: nothing of other
   * jobs is there. Errors: DISK_FULL, STORE_UNAVAILABLE.
   */
  readonly openWorkspace: (request: WorkspaceRequest) => Promise<JobWorkspace>;
  /**
   * Takes what steps have pushed so far into the project's repository, below `refs/runner/<run>/`, and
   * answers with what is new there. Errors: GIT_FAILED, RESULT_TOO_LARGE.
   */
  readonly takePushed: () => Promise<readonly PushedRef[]>;
  /** Removes what was made for the run, but workspaces that are kept; nothing for `none`. Idempotent. */
  readonly release: () => Promise<void>;
};

/** A branch or tag that a step has pushed: `heads/…` or `tags/…`. */
export type PushedRef = { readonly name: string; readonly sha: string };

/** Where commits come from that the project does not have. */
export interface CommitFetcher {
  /**
   * Fetches a commit or ref into the git directory `dir`; `repository` (`owner/name`) is another one of
   * the same host. False: it could not be had.
   */
  fetch(dir: string, what: string, repository?: string): Promise<boolean>;
}

/** A git directory for the commits of one event, beside the project's. Errors of all: those of Git. */
export interface CommitRepository {
  readonly dir: string;
  /** Commits that are the project's own, to be held while a run needs them. */
  readonly held: ReadonlySet<string>;
  /** The commit that a revision leads to; undefined when it is not here. */
  commitOf(revision: string): Promise<string | undefined>;
  /** The same, of what the project itself has; to be asked before anything is fetched. */
  commitHere(revision: string): Promise<string | undefined>;
  parentsOf(sha: string): Promise<readonly string[]>;
  /** From the project's remote `origin`, with its settings and credentials. False: it could not be had. */
  fetchFromOrigin(what: string): Promise<boolean>;
  /** The commit that joins two, undefined when they conflict. */
  merge(base: string, head: string): Promise<string | undefined>;
  /** A folder with `.github/workflows` of a commit as far as they are plain files. */
  workflowsOf(sha: string): Promise<string>;
  /** Copies what is here and not in the project. */
  copyObjects(to: string): Promise<void>;
  close(): Promise<void>;
}

/** The commit that a run is made for, when it does not come from the project's own branches. */
export type EventCommit = {
  readonly ref: string;
  readonly sha: string;
  readonly repository: CommitRepository;
};

export interface SandboxFactory {
  /**
   * What a run of this project at `ref` (default HEAD) would be triggered with.
   * Errors: INVALID_REF for an unknown ref or a ref with strategy none, INVALID_REQUEST for strategy
   * worktree without a commit.
   */
  resolve(
    ref: string | undefined,
    strategy: SandboxStrategy | undefined,
  ): Promise<{ readonly ref: string; readonly sha: string }>;
  /**
   * Keeps the commit of a run that is about to be queued from being removed by `git gc` in the project,
   * until `release`. What cannot be kept is reported. Idempotent.
   */
  hold(runId: string, trigger: Trigger, strategy: SandboxStrategy | undefined): Promise<void>;
  /** For the commits of an event. Errors: GIT_FAILED when the project is in no repository that git takes. */
  openCommits(): Promise<CommitRepository>;
  /** Keeps what a run needs of the commit of an event, until `forget`. Errors: those of the file system. */
  adopt(runId: string, commit: EventCommit): Promise<void>;
  /** The run has ended: nothing of it is held any more. What its steps pushed stays. Idempotent. */
  release(runId: string): Promise<void>;
  /** The run is removed: what was kept of it and what its steps pushed goes, too. Idempotent. Errors: GIT_FAILED. */
  forget(runId: string): Promise<void>;
  /**
   * Takes the state of the project that all jobs of the run start from. Strategy undefined: a work tree
   * or a copy. Errors: INVALID_REQUEST for a project without git that is too large to be copied unasked.
   */
  prepare(request: {
    readonly runId: string;
    readonly trigger: Trigger;
    readonly strategy: SandboxStrategy | undefined;
    readonly hasExplicitRef: boolean;
    /** No file of the commit is written: others than the runner's user are to use them. */
    readonly isWithoutFiles?: boolean | undefined;
    /** Its commit was adopted: the project itself may not have it. */
    readonly isAdopted?: boolean | undefined;
    /** Pushes of steps go to the project's remotes, for this run alone. */
    readonly mayPush?: boolean | undefined;
  }): Promise<PreparedSandbox>;
  /** Errors: DISK_FULL when less than the minimum is free where workspaces are made. */
  assertDiskSpace(): Promise<void>;
  /**
   * Removes what ended processes left: sandboxes and held commits of runs that no longer wait, and what
   * was pushed by runs that are not known any more. What a killed run had pushed is taken first.
   */
  cleanUp(runs: {
    readonly live: ReadonlySet<string>;
    readonly known: ReadonlySet<string>;
  }): Promise<void>;
}
