import type { Position, Template } from '../model/workflow.ts';
import type { ProblemList } from './problems.ts';
import { itemsOf, literalText } from './template-access.ts';

/** A job as the graph sees it. */
export type GraphNode = { readonly key: string; readonly needs: Template | undefined };

/**
 * Checks that each need is a job, and that jobs can start in some order: unknown needs, cycles, and no
 * job to begin with. Names compare without case, as on GitHub. Cost is linear.
 */
export function checkNeeds(
  jobs: readonly GraphNode[],
  jobsAt: Position,
  problems: ProblemList,
): void {
  const waiting = new Map<string, Map<string, Position>>();
  const dependents = new Map<string, string[]>();
  const ready: string[] = [];
  for (const { key, needs } of jobs) {
    const open = new Map(
      itemsOf(needs).map((item) => [(literalText(item) ?? '').toLowerCase(), item.at]),
    );
    for (const need of open.keys()) {
      dependents.set(need, [...(dependents.get(need) ?? []), key]);
    }
    if (open.size === 0) {
      ready.push(key);
    } else {
      waiting.set(key, open);
    }
  }
  if (ready.length === 0) {
    problems.add(jobsAt, 'The workflow must contain at least one job with no dependencies.');
    return;
  }
  for (let done = ready.pop(); done !== undefined; done = ready.pop()) {
    for (const dependent of dependents.get(done.toLowerCase()) ?? []) {
      const open = waiting.get(dependent);
      open?.delete(done.toLowerCase());
      if (open?.size === 0) {
        waiting.delete(dependent);
        ready.push(dependent);
      }
    }
  }
  const known = new Map(jobs.map(({ key }) => [key.toLowerCase(), key]));
  for (const [key, open] of waiting) {
    for (const [need, at] of open) {
      const name = known.get(need);
      problems.add(
        at,
        name === undefined
          ? `Job '${key}' depends on unknown job '${need}'.`
          : `Job '${key}' depends on job '${name}' which creates a cycle in the dependency graph.`,
      );
    }
  }
}
