import type { WorkflowSource } from './workflow.ts';

/** An action, or a workflow of another repository, that a run needs. */
export type NeededAction = {
  /** `owner/repo@ref`. */
  readonly name: string;
  /** `fetched`: by git, at a commit that is pinned. `placed`: a folder that somebody put there. */
  readonly source: 'built-in' | 'fetched' | 'placed' | 'mirror' | 'missing';
  /** Of those fetched; 40 or 64 hexadecimal digits. */
  readonly commit?: string | undefined;
};

/** What actions a run needs, found before its jobs start. */
export interface ActionSupply {
  /**
   * All that the files of a workflow use, nested ones included; with `mayFetch`, where the runner is set
   * up for that, what is missing is fetched. `treeDir` holds the local actions. Problems say why something
   * could not be fetched. Errors: CANCELLED.
   */
  prepare(request: {
    readonly sources: readonly WorkflowSource[];
    readonly treeDir: string;
    readonly mayFetch: boolean;
  }): Promise<{ readonly actions: readonly NeededAction[]; readonly problems: readonly string[] }>;
}
