import type { WorkflowTrigger } from '../model/workflow.ts';
import { filterPattern } from './filter-pattern.ts';

/** What of an event the filters of `on:` look at. */
export type FilteredEvent = {
  /** refs/heads/x or refs/tags/x; of a pull request its base branch. */
  readonly ref: string;
  /** Activity, such as `opened`. */
  readonly action?: string | undefined;
  /** Of workflow_run: the name of the workflow that ran; absent when it is not known, then `workflows` passes. */
  readonly workflow?: string | undefined;
  /** Paths that the event changed, with `/`; absent when they are not known, then path filters pass. */
  readonly changedPaths?: readonly string[] | undefined;
};

const TAGS = 'refs/tags/';
/** Pull requests without `types:` only listen to these; of other events every activity starts a run. */
const PULL_REQUEST_TYPES: readonly string[] = ['opened', 'synchronize', 'reopened'];

/**
 * Whether an event of the kind `trigger.event` passes the filters of the trigger.
 * A push of a tag passes branch filters only when there is no filter at all, and the other way round.
 * Source: GitHub's "Workflow syntax", on.<event>.
 */
export function matchesTrigger(trigger: WorkflowTrigger, event: FilteredEvent): boolean {
  return mismatchOf(trigger, event) === undefined;
}

/** A filter that keeps an event out, and what it looked at. */
export type Mismatch = {
  readonly filter: 'types' | 'workflows' | 'branches' | 'tags' | 'paths';
  /** What the event has: an activity, a workflow, a branch or tag, paths that changed. */
  readonly seen: readonly string[];
  /** What the filter lists, as written. */
  readonly wanted: readonly string[];
};

/** The first filter of the trigger that an event of its kind does not pass; undefined: it passes all. */
export function mismatchOf(trigger: WorkflowTrigger, event: FilteredEvent): Mismatch | undefined {
  const { action, workflow, changedPaths = [] } = event;
  if (!matchesType(trigger, event)) {
    return { filter: 'types', seen: [action ?? ''], wanted: trigger.types ?? PULL_REQUEST_TYPES };
  }
  if (!matchesWorkflow(trigger, event)) {
    return { filter: 'workflows', seen: [workflow ?? ''], wanted: trigger.workflows ?? [] };
  }
  if (!matchesRef(trigger, event)) {
    const isTag = event.ref.startsWith(TAGS);
    const { branches, branchesIgnore, tags, tagsIgnore } = trigger;
    return {
      filter: isTag ? 'tags' : 'branches',
      seen: [event.ref],
      wanted: (isTag ? (tags ?? tagsIgnore) : (branches ?? branchesIgnore)) ?? [],
    };
  }
  if (!matchesPaths(trigger, event)) {
    return {
      filter: 'paths',
      seen: changedPaths,
      wanted: trigger.paths ?? trigger.pathsIgnore ?? [],
    };
  }
  return undefined;
}

function matchesType(trigger: WorkflowTrigger, { action }: FilteredEvent): boolean {
  const isPullRequest = trigger.event === 'pull_request' || trigger.event === 'pull_request_target';
  const types = trigger.types ?? (isPullRequest ? PULL_REQUEST_TYPES : undefined);
  return types === undefined || action === undefined || types.includes(action);
}

function matchesWorkflow({ workflows }: WorkflowTrigger, { workflow }: FilteredEvent): boolean {
  return workflows === undefined || workflow === undefined || workflows.includes(workflow);
}

function matchesRef(trigger: WorkflowTrigger, { ref }: FilteredEvent): boolean {
  const { branches, branchesIgnore, tags, tagsIgnore } = trigger;
  const hasBranchFilter = branches !== undefined || branchesIgnore !== undefined;
  const hasTagFilter = tags !== undefined || tagsIgnore !== undefined;
  if (!hasBranchFilter && !hasTagFilter) {
    return true;
  }
  if (ref.startsWith(TAGS)) {
    return hasTagFilter && passes(ref.slice(TAGS.length), tags, tagsIgnore);
  }
  const branch = ref.startsWith('refs/heads/') ? ref.slice('refs/heads/'.length) : ref;
  return hasBranchFilter && passes(branch, branches, branchesIgnore);
}

function matchesPaths(trigger: WorkflowTrigger, event: FilteredEvent): boolean {
  const { paths, pathsIgnore } = trigger;
  const { changedPaths } = event;
  // A push of a tag has no path filter.
  if (changedPaths === undefined || event.ref.startsWith(TAGS)) {
    return true;
  }
  if (paths === undefined && pathsIgnore === undefined) {
    return true;
  }
  return changedPaths.some((path) => passes(path, paths, pathsIgnore));
}

function passes(
  name: string,
  wanted: readonly string[] | undefined,
  ignored: readonly string[] | undefined,
): boolean {
  const isWanted = wanted === undefined || isSelected(name, wanted);
  return isWanted && !(ignored !== undefined && isSelected(name, ignored));
}

/** In the order of the list, a matching pattern takes the name in, a matching `!` pattern out again. */
function isSelected(name: string, patterns: readonly string[]): boolean {
  let isIn = false;
  for (const pattern of patterns) {
    const { matches, isNegative } = filterPattern(pattern);
    if (matches(name)) {
      isIn = !isNegative;
    }
  }
  return isIn;
}
