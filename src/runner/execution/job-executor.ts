import type { JobExecutor } from '../model/execution.ts';
import { JobRun } from './job-run.ts';
import type { ExecutorDependencies } from './state/dependencies.ts';

/**
 * Runs jobs on this host, each in its own folder, with real processes. See JobExecutor for what it
 * promises; one executor serves any number of jobs at once.
 */
export function createJobExecutor(dependencies: ExecutorDependencies): JobExecutor {
  return {
    execute(request, report) {
      const run = new JobRun(request, report, dependencies);
      return { outcome: run.run(), cancel: (kind) => run.cancel(kind) };
    },
  };
}
