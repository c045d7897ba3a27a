import type { StepVariables } from '../../host/process/step-environment.ts';
import type { Supervision } from '../../host/process/supervision.ts';
import type { ArtifactStore, ProblemReporter } from '../../model/ports.ts';
import type { CacheStore } from '../cache/cache-store.ts';

/** What the execution of jobs is wired with. */
export type ExecutorDependencies = {
  readonly artifacts: ArtifactStore;
  readonly cache: CacheStore;
  /** The environment of the runner; only its harmless part reaches a step. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What steps get of it beside the usual; default: nothing more. */
  readonly stepVariables?: StepVariables | undefined;
  /** Programs for JavaScript actions by major version, beside the runner's own node. */
  readonly nodePrograms?: ReadonlyMap<number, string> | undefined;
  /** Gives each job a parent of all its processes. Without it what a job leaves is found by its environment. */
  readonly supervision?: Supervision | undefined;
  /** Told of errors that are the runner's own. */
  readonly onProblem?: ProblemReporter | undefined;
  /** Waiting times of the cancel ladder, for those who cannot wait 10 s. */
  readonly ladder?: { readonly interruptMs: number; readonly terminateMs: number } | undefined;
};
