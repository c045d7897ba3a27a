import type { RunnerEvent } from '../model/events.ts';
import type { LogQuery, StartRequest } from '../model/ports.ts';
import type { Annotation, Artifact, NeededAction, RunStatus, WorkflowRun } from '../model/run.ts';

/**
 * What happens in runs, and what befalls a stream of it: `gap` when lines were left out for a slow
 * reader, `reset` when events are lost, `lost` when the runner is gone for good.
 */
export type LinkEvent =
  | RunnerEvent
  | { readonly type: 'gap'; readonly runId: string; readonly dropped: number }
  | { readonly type: 'reset' }
  | { readonly type: 'lost' };

export type RunQuery = {
  readonly limit: number;
  readonly status?: RunStatus | undefined;
  readonly workflow?: string | undefined;
};

/** Runs that can be read, whether or not a runner serves the workspace. */
export interface RunReader {
  /** Newest first. */
  list(query: RunQuery): Promise<readonly WorkflowRun[]>;
  /** Errors: RUN_NOT_FOUND before the first part. */
  logs(id: string, query: LogQuery): AsyncIterable<Uint8Array | string>;
  close(): Promise<void>;
}

export type RerunChoice = {
  readonly failedOnly?: boolean | undefined;
  readonly job?: string | undefined;
};

/** A runner: in this process, or another one over HTTP. Errors are those of RunService. */
export interface RunnerLink extends RunReader {
  /** Delivers every event from now on, in order. Resolves once none is missed. Call it once. */
  subscribe(onEvent: (event: LinkEvent) => void): Promise<void>;
  start(
    request: StartRequest,
  ): Promise<{ readonly run: WorkflowRun; readonly warnings: readonly string[] }>;
  rerun(id: string, which: RerunChoice): Promise<WorkflowRun>;
  /** Lets a run of a fork go on that waits for it. */
  approve(id: string): Promise<void>;
  /** Once cancels, a second time kills. */
  cancel(id: string): Promise<void>;
  annotations(id: string): Promise<readonly Annotation[]>;
  summary(id: string): Promise<string>;
  artifacts(id: string): Promise<readonly Artifact[]>;
  /** Runs that would be cut short when this link closes; 0 when they live in another process. */
  runsLeft(): number;
}

/** Secrets by name, in this process or another. Errors are those of SecretService. */
export interface SecretLink {
  list(place: Omit<SecretLocation, 'name'>): Promise<readonly string[]>;
  /** Why the values of the vault cannot be had; undefined where they can. */
  vaultProblem(): Promise<string | undefined>;
  put(
    request: SecretLocation & { readonly value: string },
  ): Promise<{ readonly isCreated: boolean }>;
  remove(request: SecretLocation): Promise<void>;
  close(): Promise<void>;
}

/** What workflows use of other repositories. */
export type ActionNeeds = {
  readonly actions: readonly NeededAction[];
  readonly problems: readonly string[];
};

/** Actions of the project. `workflow`: those of one; undefined: of all. */
export interface ActionLink {
  /** Errors: those of WorkflowCatalog.find. */
  needs(workflow: string | undefined): Promise<ActionNeeds>;
  /** Gets what is missing; `isUpdate`: asks again which commit each is. Errors: as `needs`. */
  fetch(workflow: string | undefined, isUpdate: boolean): Promise<ActionNeeds>;
  /** Names of what is here, used or not. */
  names(): readonly string[];
  /** Removes what was fetched and no workflow uses. Answers with the names. */
  prune(): Promise<readonly string[]>;
}

export type SecretLocation = {
  readonly name: string;
  readonly environment?: string | undefined;
  readonly backend?: string | undefined;
};

/** The part of a status of secrets that says whether the vault can be read. */
export type VaultStatus = {
  readonly backends: readonly {
    readonly name: string;
    readonly available: boolean;
    readonly reason?: string | undefined;
  }[];
};

/** Why the values of the vault cannot be had, by a status of secrets. */
export function vaultProblemIn({ backends }: VaultStatus): string | undefined {
  const vault = backends.find(({ name }) => name === 'vault');
  return vault?.available === false ? (vault.reason ?? 'the vault cannot be read') : undefined;
}
