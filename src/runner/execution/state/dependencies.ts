import type { ActionLibrary } from '../../host/actions/action-library.ts';
import type { StepVariables } from '../../host/process/step-environment.ts';
import type { Supervision } from '../../host/process/supervision.ts';
import type { ToolRegistry } from '../../host/tools/tool-registry.ts';
import type { ArtifactStore, ProblemReporter } from '../../model/ports.ts';
import type { CacheStore } from '../cache/cache-store.ts';

/** What the execution of jobs is wired with. */
export type ExecutorDependencies = {
  readonly artifacts: ArtifactStore;
  readonly cache: CacheStore;
  /** The environment of the runner; only its harmless part reaches a step. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Actions of other repositories. Default: those in `.runner/actions` of the job's project. */
  readonly actions?: ActionLibrary | undefined;
  /** What jobs ask for by the setup actions, and the Node of JavaScript actions. Without it only the runner's own node is there. */
  readonly tools?: ToolRegistry | undefined;
  /** What steps get of it beside the usual; default: nothing more. */
  readonly stepVariables?: StepVariables | undefined;
  /** Gives each job a parent of all its processes. Without it what a job leaves is found by its environment. */
  readonly supervision?: Supervision | undefined;
  /** Notified of errors that are the runner's own. */
  readonly onProblem?: ProblemReporter | undefined;
  /** Waiting times of the kill escalation, for those who cannot wait 10 s. */
  readonly killEscalation?:
    | { readonly interruptMs: number; readonly terminateMs: number }
    | undefined;
};
