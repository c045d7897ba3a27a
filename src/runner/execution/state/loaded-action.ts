import type { ActionDefinition } from '../../model/workflow.ts';

/** An action whose files are on this host. */
export type LoadedAction = {
  /** Absolute. */
  readonly dir: string;
  readonly definition: ActionDefinition;
  readonly isLocal: boolean;
  /** Of remote actions: GITHUB_ACTION_REPOSITORY and GITHUB_ACTION_REF. */
  readonly repository: string;
  readonly ref: string;
  /** The root of the repository that it lies in: what `$/` means within it. */
  readonly root: string;
};
