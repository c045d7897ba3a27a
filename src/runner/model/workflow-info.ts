import type { WorkflowInput } from './workflow.ts';

/** A problem of a workflow file as the wire shows it. */
export type WorkflowInfoError = {
  readonly message: string;
  readonly line: number;
  readonly col: number;
  readonly file?: string | undefined;
};

/** WorkflowInfo of the contract; `errors` only where there are some. */
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
  readonly errors?: readonly WorkflowInfoError[];
};
