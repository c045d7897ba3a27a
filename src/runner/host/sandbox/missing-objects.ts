import { join } from 'node:path';
import type { GitOptions } from '../git/run-git.ts';
import { type GitSetting, withoutUser } from './git-settings.ts';
import type { Repository } from './repository.ts';

/**
 * How the runner's own git fetches objects that a partial clone left out, for a command in the git
 * directory of a run: with the project's own settings and credentials, which the run does not have, and
 * into the project's objects, so that they are fetched once.
 */
export function missingObjectsOptions(
  { commonDir }: Repository,
  settings: readonly GitSetting[],
): Pick<GitOptions, 'config' | 'env'> {
  const config: Record<string, string> = { 'include.path': join(commonDir, 'config') };
  for (const { key, value } of settings) {
    const plain = withoutUser(value);
    const isAddress = /^remote\..+\.url$/s.test(key);
    if (isAddress && plain !== value) config[`url.${value}.insteadOf`] = plain;
  }
  return { config, env: { GIT_OBJECT_DIRECTORY: join(commonDir, 'objects') } };
}
