import type { JsonObject } from '../../model/run.ts';
import type { JobEnvironment } from '../state/job-environment.ts';
import type { JobState } from '../state/job-state.ts';
import { githubVariables } from './step-variables.ts';

/** Where programs are when nobody says. */
const PATH_DEFAULT = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * All variables of a process: the harmless part of the runner's own, `env`, then what the runner itself
 * sets, which no `env` can change. `extra` (INPUT_*, STATE_*, command files) goes last.
 */
export function processEnvironment(
  job: JobState,
  environment: JobEnvironment,
  env: Readonly<Record<string, string>>,
  github: JsonObject,
  extra: Readonly<Record<string, string>>,
): Record<string, string> {
  const variables: Record<string, string> = {
    ...job.baseVariables,
    ...env,
    ...job.runnerVariables,
    ...githubVariables(github),
    ...extra,
  };
  variables['PATH'] = environment.pathInFrontOf(variables['PATH'] ?? PATH_DEFAULT);
  return variables;
}
