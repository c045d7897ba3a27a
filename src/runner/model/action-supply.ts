import type { NeededAction } from './run.ts';

/** What is written behind `uses` in one file, each once. */
export type ActionUses = {
  readonly uses: readonly string[];
  /** Of the workflow, as WorkflowSource has it: one of another repository names that. */
  readonly path: string;
};

/** What actions a run needs, found before its jobs start. */
export interface ActionSupply {
  /**
   * All that these uses lead to, nested ones included; with `mayFetch`, where the runner is set
   * up for that, what is missing is fetched. `treeDir` holds the local actions. Problems say why something
   * could not be fetched. Errors: CANCELLED.
   */
  prepare(request: {
    readonly needed: readonly ActionUses[];
    readonly treeDir: string;
    readonly mayFetch: boolean;
  }): Promise<{ readonly actions: readonly NeededAction[]; readonly problems: readonly string[] }>;
}
