import type { Workflow } from '../model/workflow.ts';
import { checkoutUse } from './checkout-use.ts';
import type { JobEntry } from './state/journal-records.ts';
import { definitionAt } from './state/run-plan.ts';

/** More jobs than that are counted. */
const NAMES_MAX = 20;

/** The warning that jobs have no actions/checkout: one for all jobs of an attempt of a run. */
export class CheckoutNotice {
  readonly #workflow: Workflow;
  #isGiven = false;

  constructor(workflow: Workflow) {
    this.#workflow = workflow;
  }

  /**
   * The text, when the first such job starts; undefined for later ones. It names this one and those that may still
   * start; those that only the run will know (a matrix that is computed and calls a workflow) are left out.
   */
  onStart(jobs: Iterable<JobEntry>): string | undefined {
    if (this.#isGiven) return undefined;
    this.#isGiven = true;
    const names = new Set<string>();
    for (const { job, node } of jobs) {
      if (job.status === 'completed') continue;
      const definition = definitionAt(this.#workflow, node)?.definition;
      if (definition?.kind !== 'steps' || checkoutUse(definition.steps).isThere) continue;
      names.add(node.replaceAll(/:\d+(?=\/|$)/g, ''));
    }
    const shown = [...names].slice(0, NAMES_MAX).join(', ');
    const more = names.size > NAMES_MAX ? ` and ${names.size - NAMES_MAX} more` : '';
    return `No actions/checkout in ${shown}${more}: here such jobs have the files of the run, on GitHub an empty workspace. RUNNER_STRICT_CHECKOUT starts them empty here, too`;
  }
}
