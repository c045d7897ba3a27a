import type { JsonObject, JsonValue } from '../../../shared/json.ts';
import type { FilteredEvent } from '../../language/event-filters.ts';
import type { WorkflowTrigger } from '../../model/workflow.ts';
import { objectOf, textAt } from './payload.ts';

/** Does the trigger name the workflow that a `workflow_run` reports? Other events name none. */
export function isAfter({ workflows }: WorkflowTrigger, payload: JsonObject): boolean {
  if (workflows === undefined) return true;
  const name = textAt(payload, 'workflow', 'name') ?? textAt(payload, 'workflow_run', 'name');
  return name !== undefined && workflows.includes(name);
}

/** What the filters of `on:` look at of an event, as far as its payload says it. */
export function filteredEventOf(event: string, payload: JsonObject): FilteredEvent {
  const action = textAt(payload, 'action');
  const base = textAt(payload, 'pull_request', 'base', 'ref');
  if (base !== undefined) return { ref: `refs/heads/${base}`, action };
  const queue = textAt(payload, 'merge_group', 'base_ref');
  if (queue !== undefined) return { ref: queue, action };
  const tag = textAt(payload, 'release', 'tag_name');
  if (tag !== undefined) return { ref: `refs/tags/${tag}`, action };
  const branch = textAt(payload, 'workflow_run', 'head_branch');
  if (branch !== undefined) return { ref: `refs/heads/${branch}`, action };
  const ref = textAt(payload, 'ref') ?? textAt(payload, 'repository', 'default_branch') ?? '';
  const changedPaths = event === 'push' ? changedPathsOf(payload['commits']) : undefined;
  return { ref, action, changedPaths };
}

/** Paths that the commits of a push name; undefined when none of them says. */
function changedPathsOf(commits: JsonValue | undefined): readonly string[] | undefined {
  if (!Array.isArray(commits) || commits.length === 0) return undefined;
  const paths = new Set<string>();
  let isSaid = false;
  for (const commit of commits as readonly JsonValue[]) {
    for (const kind of ['added', 'modified', 'removed']) {
      const list = objectOf(commit)?.[kind];
      if (!Array.isArray(list)) continue;
      isSaid = true;
      for (const path of list as readonly JsonValue[])
        if (typeof path === 'string') paths.add(path);
    }
  }
  return isSaid ? [...paths] : undefined;
}
