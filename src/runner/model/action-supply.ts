import type { NeededAction } from './run.ts';
import type { WorkflowSource } from './workflow.ts';

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
