import type { JobState } from '../state/job-state.ts';
import type { StepLog } from '../state/step-log.ts';

/**
 * The node for `using: node<N>`: the one of the same or the next higher major version that is there,
 * else the runner's own, with a warning.
 */
export function nodeFor(job: JobState, using: string, log: StepLog): string {
  const wanted = Number(/^node(\d+)$/.exec(using)?.[1] ?? Number.NaN);
  const own = Number(process.versions.node.split('.', 1)[0]);
  const programs = new Map(job.dependencies.nodePrograms);
  programs.set(own, process.execPath);
  const fitting = [...programs.keys()].filter((major) => major >= wanted).sort((a, b) => a - b);
  const program = programs.get(fitting[0] ?? own) ?? process.execPath;
  if (fitting.length === 0) {
    log.warn(`The action wants ${using}, which is not here: it runs with node ${own}`);
  }
  return program;
}
