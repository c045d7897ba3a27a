import type { WorkflowInput } from './workflow.ts';

/** A problem of a workflow file as the wire shows it. */
export type WorkflowInfoError = {
  readonly message: string;
  readonly line: number;
  readonly col: number;
  readonly file?: string | undefined;
};

/** A time at which `on: schedule` starts a workflow. */
export type WorkflowSchedule = {
  readonly cron: string;
  /** UTC where it names none. */
  readonly timezone?: string | undefined;
  /** The next time that the cron means, ISO 8601 in UTC; absent where there is none any more. */
  readonly nextAt?: string | undefined;
};

/** WorkflowInfo of the contract; `schedules`, `errors` and `warnings` only where there are some. */
export type WorkflowInfo = {
  readonly name: string;
  readonly fileName: string;
  /** Absolute. */
  readonly filePath: string;
  readonly triggers: readonly string[];
  readonly jobs: readonly {
    readonly id: string;
    readonly name: string;
    readonly needs: readonly string[];
  }[];
  readonly inputs?: Readonly<Record<string, WorkflowInput>>;
  readonly schedules?: readonly WorkflowSchedule[];
  readonly errors?: readonly WorkflowInfoError[];
  /** What fails some of its jobs, or a schedule whose next time cannot be found. */
  readonly warnings?: readonly WorkflowInfoError[];
};
