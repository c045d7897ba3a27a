/**
 * What the runner records of an execution and shows on its wire. Terms: a run executes one workflow;
 * a run has jobs (a job of a matrix is a job); a job has steps, numbered from 1 in the order shown.
 */
import type { JsonObject } from '../../shared/json.ts';

export type RunStatus = 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled';
export type ActivityStatus = 'queued' | 'in_progress' | 'completed';
export type Conclusion = 'success' | 'failure' | 'cancelled' | 'skipped';
export type SandboxStrategy = 'worktree' | 'copy' | 'none';

export type Step = {
  /** From 1; unique in its job; pre and post steps have numbers of their own. */
  readonly number: number;
  readonly name: string;
  /** The `id:` of the workflow, when there is one. */
  readonly id?: string | undefined;
  readonly status: ActivityStatus;
  /** After `continue-on-error`. */
  readonly conclusion?: Conclusion | undefined;
  /** Before `continue-on-error`. */
  readonly outcome?: Conclusion | undefined;
  /** Masked text; '' in events and summaries. */
  readonly log: string;
  readonly outputs: Readonly<Record<string, string>>;
  readonly startedAt?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly durationMs?: number | undefined;
};

export type Job = {
  /** `key`, `key:2` for the second job of a matrix, `caller/key` in a reusable workflow. */
  readonly id: string;
  readonly name: string;
  readonly status: ActivityStatus;
  readonly conclusion?: Conclusion | undefined;
  readonly steps: readonly Step[];
  readonly startedAt?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly durationMs?: number | undefined;
  readonly outputs: Readonly<Record<string, string>>;
  /** Ids of the jobs it waits for, as in the workflow (keys, not matrix jobs). */
  readonly needs: readonly string[];
  readonly matrix?: JsonObject | undefined;
  /** The attempt of the run in which this job was last executed. */
  readonly attempt: number;
  readonly environment?: { readonly name: string; readonly url?: string | undefined } | undefined;
  /** The folder that it works in, while it is there. */
  readonly sandbox?: { readonly path: string } | undefined;
};

export type Trigger = {
  readonly event: string;
  /** refs/heads/x, refs/tags/x, a sha as given, or '' outside git. */
  readonly ref: string;
  /** 40 hexadecimal digits; all zero outside git. */
  readonly sha: string;
};

/** The folder of a run, below which each of its jobs has one; the project itself for `none`. */
export type Sandbox = { readonly path: string; readonly strategy: SandboxStrategy };

/** An action, or a workflow of another repository, that a run needs. */
export type NeededAction = {
  /** `owner/repo@ref`. */
  readonly name: string;
  /** `fetched`: by git, at a commit that is pinned. `placed`: a folder that somebody put there. */
  readonly source: 'built-in' | 'fetched' | 'placed' | 'mirror' | 'missing';
  /** Of those fetched; 40 or 64 hexadecimal digits. */
  readonly commit?: string | undefined;
};

export type WorkflowRun = {
  readonly id: string;
  /** The workflow's name, else its file name. */
  readonly workflow: string;
  /** File name below .github/workflows. */
  readonly fileName: string;
  /** Evaluated `run-name`, else `workflow`. */
  readonly name: string;
  /** 1 for the first run of its workflow, 2 for the second… */
  readonly runNumber: number;
  /** `github.run_id`, unique in the project. Absent on runs that older versions recorded: theirs is `id`. */
  readonly numericId?: number | undefined;
  /** 1, and one more with each rerun. */
  readonly attempt: number;
  readonly status: RunStatus;
  /** Present as long as a queued run of a fork waits for somebody to approve it. */
  readonly waitingFor?: 'approval' | undefined;
  /** When a run that needed it was approved. */
  readonly approvedAt?: string | undefined;
  readonly conclusion?: Conclusion | undefined;
  readonly jobs: readonly Job[];
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly startedAt?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly durationMs?: number | undefined;
  readonly trigger: Trigger;
  readonly inputs?: Readonly<Record<string, string>> | undefined;
  /** Workflow-level `env`, evaluated and masked. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly sandbox?: Sandbox | undefined;
  /** Actions of other repositories that its files use, nested ones included; found before its jobs started. */
  readonly actions?: readonly NeededAction[] | undefined;
  readonly cancelRequestedAt?: string | undefined;
};

export type AnnotationLevel = 'notice' | 'warning' | 'error';
export type Annotation = {
  readonly level: AnnotationLevel;
  /** Masked, at most 4,096 characters. */
  readonly message: string;
  readonly title?: string | undefined;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly endLine?: number | undefined;
  readonly column?: number | undefined;
  readonly endColumn?: number | undefined;
  /** Absent on annotations of the run itself. */
  readonly jobId?: string | undefined;
  readonly stepNumber?: number | undefined;
};

export type Artifact = {
  readonly id: string;
  readonly name: string;
  /** Absolute path of the stored file. */
  readonly path: string;
  readonly size: number;
  readonly mimeType: string;
  readonly runId: string;
  /** Hexadecimal SHA-256 of the stored file. */
  readonly sha256: string;
  readonly createdAt: string;
};

const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** True for what may be the id of a run, and with that the name of its folders. */
export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}
