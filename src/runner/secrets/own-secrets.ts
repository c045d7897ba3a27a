import { secretValuesOf, secretVariablesIn, type Environment } from '../../config/load-options.ts';
import { RUNNER_OPTIONS, type RunnerSettings } from '../settings/settings.ts';
import { readApiToken } from '../storage/api-token-file.ts';

/** Secrets of jobs that came with the environment, and the identity that sops takes from there. */
const OTHER_SECRETS = /^(RUNNER_SECRET_.+|SOPS_AGE_KEY)$/;

/** Variables of `environment` whose values are secrets of the runner or of its jobs. */
export function secretVariables(environment: Environment): readonly string[] {
  const others = Object.keys(environment).filter(
    (name) => OTHER_SECRETS.test(name) && (environment[name] ?? '') !== '',
  );
  return [...secretVariablesIn(RUNNER_OPTIONS, environment), ...others.toSorted()];
}

/**
 * Takes secrets out of the environment that programs started without one of their own inherit. What the
 * kernel shows as the environment of this process (/proc) stays as it was at its start.
 *
 * @returns all of `environment` as it was.
 */
export function withdrawSecrets(environment: NodeJS.ProcessEnv): Environment {
  const whole = { ...environment };
  for (const name of secretVariables(whole)) delete environment[name];
  return whole;
}

/**
 * What no log may show of the runner itself: its secret settings, and the token that it made up.
 * Errors: those of the file system, when there is such a token and it cannot be read.
 */
export async function ownSecretsOf(
  settings: RunnerSettings,
  stateDir: string,
): Promise<readonly string[]> {
  const token = await readApiToken(stateDir);
  return [...secretValuesOf(RUNNER_OPTIONS, settings), ...(token === undefined ? [] : [token])];
}
