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

/** Finds secrets of the runner itself, which no log may show; may be asked for each job. */
export type OwnSecretSource = () => Promise<readonly string[]>;

/**
 * The secret settings, and the token that the runner made up: two sources, so that a token file that is
 * spoilt keeps no setting from being masked. Errors of the second: those of readApiToken.
 */
export function ownSecretSources(
  settings: RunnerSettings,
  stateDir: string,
): readonly OwnSecretSource[] {
  return [
    () => Promise.resolve(secretValuesOf(RUNNER_OPTIONS, settings)),
    async () => {
      const token = await readApiToken(stateDir);
      return token === undefined ? [] : [token];
    },
  ];
}
