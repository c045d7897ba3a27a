import type { Annotation, Artifact, WorkflowRun } from '../../model/run.ts';
import type { WorkflowInfo } from '../../model/workflow-info.ts';

/** What the pages show; the browser fetches the same as JSON. Runs are without logs. */
export type HomeView = {
  readonly kind: 'home';
  readonly runs: readonly WorkflowRun[];
  readonly workflows: readonly WorkflowInfo[];
  /** There are more runs than these. */
  readonly hasMore: boolean;
};

export type WorkflowView = {
  readonly kind: 'workflow';
  readonly info: WorkflowInfo;
  /** Known environments, for inputs of that type. */
  readonly environments: readonly string[];
  readonly runs: readonly WorkflowRun[];
};

export type RunView = {
  readonly kind: 'run';
  readonly run: WorkflowRun;
  readonly annotations: readonly Annotation[];
  /** Markdown. */
  readonly summary: string;
  readonly artifacts: readonly Artifact[];
};

export type PageView = HomeView | WorkflowView | RunView;
